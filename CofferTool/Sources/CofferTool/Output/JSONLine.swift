internal import Foundation

/// A line of JSON under construction: an object whose members stand in the order in which they are added.
struct JSONLine {
    private(set) var text = ""

    /// An object within another.
    init() {}

    /// An object whose first member says what it is.
    init(type: String) {
        add("type", type)
    }

    /// The finished line, without a line end.
    var finished: String { "{" + text + "}" }

    mutating func add(_ key: String, _ value: String) { add(key, json: Self.quoted(value)) }
    mutating func add(_ key: String, _ value: Int) { add(key, json: String(value)) }
    mutating func add(_ key: String, _ value: Bool) { add(key, json: value ? "true" : "false") }
    mutating func add(_ key: String, _ values: [String]) {
        add(key, json: "[" + values.map(Self.quoted).joined(separator: ",") + "]")
    }

    /// Adds a member whose value is JSON already.
    mutating func add(_ key: String, json: String) {
        if !text.isEmpty { text += "," }
        text += Self.quoted(key) + ":" + json
    }

    /// Adds members that stand in another line.
    mutating func add(members: String) {
        if !text.isEmpty, !members.isEmpty { text += "," }
        text += members
    }

    /// `string` as a JSON string (RFC 8259 §7). Control characters are escaped, DEL and those above it among them, as
    /// terminals act on them.
    static func quoted(_ string: String) -> String {
        var quoted = "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            case _ where scalar.properties.generalCategory == .control:
                quoted += TerminalText.escape(scalar)
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}

/// A document as it leaves a store: one line of JSON whose first member is `_id`.
struct ExportedDocument {
    let line: String

    /// `json` is the document's canonical body: an object on one line, without an `_id`.
    init(id: String, json: Data) {
        let members = String(decoding: json.dropFirst().dropLast(), as: UTF8.self)
        line = "{\"_id\":" + JSONLine.quoted(id) + (members.isEmpty ? "" : ",") + members + "}"
    }

    /// `json` with attachments as a document's first revision has them, which is what an import makes of it: a `revpos`
    /// of 1.
    static func withFirstRevisionsAttachments(_ json: Data) throws(JSONCursor.Obstacle) -> Data {
        let bytes = json.span
        var generations: [Range<Int>] = []
        for attachments in try values(of: "_attachments", in: .init(range: 0..<bytes.count, line: 1), bytes) {
            for stub in try values(of: nil, in: attachments, bytes) {
                generations += try values(of: "revpos", in: stub, bytes).map(\.range)
            }
        }
        var result = Data(capacity: json.count)
        var end = 0
        for range in generations {
            result += json[end..<range.lowerBound] + Data("1".utf8)
            end = range.upperBound
        }
        return result + json[end...]
    }

    /// The values that an object has under a key, or under any.
    private static func values(
        of key: String?, in object: JSONCursor.Extent, _ bytes: Span<UInt8>
    ) throws(JSONCursor.Obstacle) -> [JSONCursor.Extent] {
        var found: [JSONCursor.Extent] = []
        var cursor = JSONCursor(at: object)
        try cursor.skipObject(bytes) { name, value in
            if key.map({ JSONString(name).isEqual(to: $0, bytes) }) ?? true { found.append(value) }
        }
        return found
    }
}

/// `bytes` in lower-case hex.
func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}
