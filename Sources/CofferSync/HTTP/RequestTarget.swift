internal import CofferSealing
internal import CofferModel

/// The target of a request: what stands behind the host, in parts.
package struct RequestTarget: Sendable {
    /// The parts of the path between slashes, decoded. `/db/a%2Fb` has two.
    package let path: [String]
    /// The query's fields, decoded, in order.
    package let query: [(name: String, value: String)]

    /// Nil for what is not percent-encoded UTF-8 from a slash on.
    package init?(_ target: String) {
        guard target.hasPrefix("/") else { return nil }
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var path: [String] = []
        for part in parts[0].dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            guard let text = part.percentDecoded() else { return nil }
            path.append(text)
        }
        if path.last == "" { path.removeLast() }
        var query: [(name: String, value: String)] = []
        for field in parts.dropFirst().joined().split(separator: "&") {
            let sides = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = sides[0].percentDecoded(plusIsSpace: true),
                let value = (sides.count > 1 ? sides[1] : "").percentDecoded(plusIsSpace: true)
            else { return nil }
            query.append((name, value))
        }
        self.path = path
        self.query = query
    }

    /// The query's first field of that name.
    package subscript(name: String) -> String? { query.first { $0.name == name }?.value }

    /// Whether the query's field of that name is `true`.
    package func isTrue(_ name: String) -> Bool { self[name] == "true" }

    /// The query's field of that name as a count.
    ///
    /// - Throws: ``SyncError`` 400 for what is not a number, and for one below zero.
    package func count(_ name: String) throws(SyncError) -> Int? {
        guard let text = self[name] else { return nil }
        guard let count = Int(text), count >= 0 else { throw SyncError(400, "\(name) is not a count") }
        return count
    }
}

extension StringProtocol {
    /// The text with everything but letters, digits and `-._~` as percent and two hex digits: fit for any place in a URL.
    package var percentEncoded: String {
        var text: [UInt8] = []
        text.reserveCapacity(utf8.count)
        for byte in utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                text.append(byte)
            default:
                let digits = Array("0123456789ABCDEF".utf8)
                text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil where a percent is not followed by two hex digits, and where the bytes are not UTF-8.
    package func percentDecoded(plusIsSpace: Bool = false) -> String? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(utf8.count)
        var rest = utf8[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%") {
                guard let high = rest.popFirst()?.hexDigitValue, let low = rest.popFirst()?.hexDigitValue else {
                    return nil
                }
                bytes.append(high << 4 | low)
            } else {
                bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

/// The value of a parameter as it was sent: in a query, or as a member of a body.
enum ParameterValue {
    case text(String)
    case json(JSONValue)

    // MARK: What it says

    /// - Throws: ``SyncError`` 400 for a text that is not JSON.
    func json(_ name: String) throws(SyncError) -> JSONValue {
        switch self {
        case .json(let json): return json
        case .text(let text):
            guard let json = try? JSONValue(json: text.utf8) else { throw SyncError(400, "\(name) is not JSON") }
            return json
        }
    }

    /// - Throws: ``SyncError`` 400 for another value than a list in JSON.
    func list(_ name: String) throws(SyncError) -> [JSONValue] {
        guard let list = try json(name).arrayValue else { throw SyncError(400, "\(name) is not a list") }
        return list
    }

    /// - Throws: ``SyncError`` 400 for another value than a string in JSON.
    func id(_ name: String) throws(SyncError) -> String {
        guard let id = try json(name).stringValue else { throw SyncError(400, "\(name) is not a string in JSON") }
        return id
    }

    /// - Throws: ``SyncError`` 400 for what is not a number, and for one below zero.
    func count(_ name: String) throws(SyncError) -> Int {
        let count: Int? =
            switch self {
            case .text(let text): Int(text)
            case .json(let json): Int(jsonValue: json)
            }
        guard let count, count >= 0 else { throw SyncError(400, "\(name) is not a count") }
        return count
    }

    /// - Throws: ``SyncError`` 400 for another word than `true` and `false`.
    func isTrue(_ name: String) throws(SyncError) -> Bool {
        guard let flag = word.flatMap(Bool.init) else { throw SyncError(400, "\(name) is neither true nor false") }
        return flag
    }

    /// - Throws: ``SyncError`` 400 for a word that is not among these.
    func word(_ name: String, among words: [String]) throws(SyncError) -> String {
        guard let word, words.contains(word) else {
            throw SyncError(400, "\(name) must be one of \(words.joined(separator: ", "))")
        }
        return word
    }

    /// An id that stands as it is, or in JSON.
    var plainText: String {
        switch self {
        case .text(let text): text
        case .json(let json): json.stringValue ?? json.description
        }
    }

    /// In bodies, too, CouchDB takes the words.
    private var word: String? {
        switch self {
        case .text(let text): text
        case .json(let json): json.stringValue ?? json.boolValue.map { String($0) }
        }
    }
}
