internal import CofferModel
internal import CofferSealing

/// Where the values of a text begin and end that is JSON (RFC 8259), whatever its numbers are and however deep it nests.
///
/// A document holds no integer beyond 64 bits and no more than ``JSONLimits/depth`` containers in each other, while other
/// databases do. One document that can't be held must not keep those beside it from being read: this takes them apart.
struct JSONOutline: Sendable {
    private let text: [UInt8]
    /// What of the text is this value.
    private let range: Range<Int>

    /// Nil for what is not JSON.
    init?(_ text: [UInt8]) {
        guard String(validating: text, as: UTF8.self) != nil else { return nil }
        var scanner = JSONScanner(text, at: 0)
        scanner.skipWhitespace()
        let start = scanner.at
        guard scanner.skipValue() else { return nil }
        range = start..<scanner.at
        scanner.skipWhitespace()
        guard scanner.at == text.count else { return nil }
        self.text = text
    }

    private init(_ text: [UInt8], _ range: Range<Int>) {
        self.text = text
        self.range = range
    }

    /// The value's own text.
    var bytes: [UInt8] { Array(text[range]) }

    /// Nil where it is not a string, or one with half of a surrogate pair.
    var stringValue: String? {
        text[range.lowerBound] == UInt8(ascii: "\"") ? (try? JSONValue(json: text[range]))?.stringValue : nil
    }

    /// Nil where it is not an array.
    ///
    /// - Throws: ``SyncError`` 413 for more than `limit` elements.
    func elements(upTo limit: Int) throws(SyncError) -> [JSONOutline]? {
        guard text[range.lowerBound] == UInt8(ascii: "[") else { return nil }
        var elements: [JSONOutline] = []
        var scanner = JSONScanner(text, at: range.lowerBound + 1)
        while scanner.beginsItem() {
            guard elements.count < limit else { throw SyncError(413, "more than \(limit) elements") }
            elements.append(JSONOutline(text, scanner.valueRange()))
        }
        return elements
    }

    /// The members in their order, those whose names occur more than once too. Nil if this is not an object, or a name is not text.
    ///
    /// - Throws: ``SyncError`` 413 for more than `limit` members.
    func members(upTo limit: Int) throws(SyncError) -> [(name: String, value: JSONOutline)]? {
        guard text[range.lowerBound] == UInt8(ascii: "{") else { return nil }
        var members: [(name: String, value: JSONOutline)] = []
        var scanner = JSONScanner(text, at: range.lowerBound + 1)
        while scanner.beginsItem() {
            guard members.count < limit else { throw SyncError(413, "more than \(limit) members") }
            let key = JSONOutline(text, scanner.valueRange())
            scanner.skipColon()
            guard let name = key.stringValue else { return nil }
            members.append((name, JSONOutline(text, scanner.valueRange())))
        }
        return members
    }

    /// The value of the first member with that name, or nil if there isn't one or this is not an object.
    subscript(name: String) -> JSONOutline? {
        guard text[range.lowerBound] == UInt8(ascii: "{") else { return nil }
        var scanner = JSONScanner(text, at: range.lowerBound + 1)
        while scanner.beginsItem() {
            let key = JSONOutline(text, scanner.valueRange())
            scanner.skipColon()
            let value = JSONOutline(text, scanner.valueRange())
            if key.stringValue?.utf8.elementsEqual(name.utf8) == true { return value }
        }
        return nil
    }
}

/// JSON that no document can hold.
struct UnholdableJSON: Error {
    let outline: JSONOutline
    /// Without what stands there.
    let reason: String
}

extension CheckedJSON {
    /// The same as ``init(_:valueLimit:)`` for what another database sends.
    ///
    /// - Throws: ``UnholdableJSON`` for what is JSON all the same; `invalidJSON` (400) for anything else.
    init?(received text: [UInt8], valueLimit: Int) throws {
        do throws(CofferError) {
            guard let checked = try CheckedJSON(text, valueLimit: valueLimit) else { return nil }
            self = checked
        } catch {
            guard error.code == .invalidJSON, let outline = JSONOutline(text) else { throw error }
            throw UnholdableJSON(
                outline: outline, reason: "no document here can hold it: \(error.detail ?? error.code.description)")
        }
    }
}

/// Skips values without recursion, so that no depth is too much.
private struct JSONScanner {
    private let text: [UInt8]
    private(set) var at: Int

    init(_ text: [UInt8], at start: Int) {
        self.text = text
        at = start
    }

    private var byte: UInt8? { at < text.count ? text[at] : nil }

    mutating func skipWhitespace() {
        while let byte, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { at += 1 }
    }

    private mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard byte == UInt8(ascii: character) else { return false }
        at += 1
        return true
    }

    /// Whether another element or member begins here, within a container of text that was checked.
    mutating func beginsItem() -> Bool {
        skipWhitespace()
        if skip(",") { skipWhitespace() }
        return byte != UInt8(ascii: "]") && byte != UInt8(ascii: "}")
    }

    mutating func skipColon() {
        skipWhitespace()
        _ = skip(":")
        skipWhitespace()
    }

    /// The place of the value that begins here, in text that was checked.
    mutating func valueRange() -> Range<Int> {
        let start = at
        _ = skipValue()
        return start..<at
    }

    /// Skips one value; false where there isn't one.
    mutating func skipValue() -> Bool {
        // What ends each of the containers around.
        var ends: [UInt8] = []
        while true {
            skipWhitespace()
            if skip("[") {
                skipWhitespace()
                if !skip("]") {
                    ends.append(UInt8(ascii: "]"))
                    continue
                }
            } else if skip("{") {
                skipWhitespace()
                if !skip("}") {
                    ends.append(UInt8(ascii: "}"))
                    guard skipKey() else { return false }
                    continue
                }
            } else if !skipScalar() {
                return false
            }
            var isInside = false
            while !isInside, let end = ends.last {
                skipWhitespace()
                if skip(",") {
                    isInside = true
                    skipWhitespace()
                    guard end == UInt8(ascii: "]") || skipKey() else { return false }
                } else {
                    guard byte == end else { return false }
                    at += 1
                    ends.removeLast()
                }
            }
            if ends.isEmpty { return true }
        }
    }

    private mutating func skipKey() -> Bool {
        guard skipString() else { return false }
        skipWhitespace()
        return skip(":")
    }

    private mutating func skipScalar() -> Bool {
        if byte == UInt8(ascii: "\"") { return skipString() }
        for literal in ["true", "false", "null"] where text[at...].starts(with: literal.utf8) {
            at += literal.utf8.count
            return true
        }
        return skipNumber()
    }

    private mutating func skipString() -> Bool {
        guard skip("\"") else { return false }
        while let byte, byte >= 0x20 {
            at += 1
            if byte == UInt8(ascii: "\"") { return true }
            guard byte == UInt8(ascii: "\\") else { continue }
            guard let escaped = self.byte, #""\/bfnrtu"#.utf8.contains(escaped) else { return false }
            at += 1
            guard escaped == UInt8(ascii: "u") else { continue }
            guard at + 4 <= text.count, text[at..<(at + 4)].allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit })
            else { return false }
            at += 4
        }
        return false
    }

    private mutating func skipNumber() -> Bool {
        _ = skip("-")
        guard skip("0") || skipDigits() else { return false }
        if skip("."), !skipDigits() { return false }
        if skip("e") || skip("E") {
            _ = skip("+") || skip("-")
            return skipDigits()
        }
        return true
    }

    /// Whether there was at least one.
    private mutating func skipDigits() -> Bool {
        let start = at
        while let byte, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { at += 1 }
        return at > start
    }
}
