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
