/// The header fields of a message or of a part of one, in order. Names are compared without regard to case.
package struct HTTPFields: Sendable {
    package private(set) var all: [(name: String, value: String)] = []

    package init() {}

    /// The value of the first field of that name. Setting replaces all of that name; nil removes them.
    package subscript(name: String) -> String? {
        get { all.first { Self.isSame($0.name, name) }?.value }
        set {
            all.removeAll { Self.isSame($0.name, name) }
            if let newValue { add(name, newValue) }
        }
    }

    /// The values of all fields of that name.
    package func values(of name: String) -> [String] {
        all.filter { Self.isSame($0.name, name) }.map(\.value)
    }

    package mutating func add(_ name: String, _ value: String) { all.append((name, value)) }

    /// Whether a comma-separated field holds that word.
    package func contains(_ word: String, in name: String) -> Bool {
        values(of: name).contains { value in
            value.split(separator: ",").contains { Self.isSame($0.trimmed, word) }
        }
    }

    static func isSame(_ left: some StringProtocol, _ right: some StringProtocol) -> Bool {
        left.utf8.count == right.utf8.count && zip(left.utf8, right.utf8).allSatisfy { $0.lowercased == $1.lowercased }
    }
}

extension HTTPFields: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral fields: (String, String)...) {
        for (name, value) in fields { add(name, value) }
    }
}

extension UInt8 {
    /// ASCII's upper-case letters as lower-case ones.
    fileprivate var lowercased: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self + 32 : self
    }
}

extension StringProtocol {
    /// Without spaces and tabs around it.
    package var trimmed: String {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        let start = drop(while: isBlank)
        guard let end = start.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(start[...end])
    }
}

/// What a Content-Type says: `multipart/related; boundary="a b"`.
package struct MediaType: Sendable {
    /// In lower case, such as `multipart/related`.
    package let name: String
    /// Names in lower case.
    package private(set) var parameters: [String: String] = [:]

    /// Nil for what is not such a field.
    package init?(_ text: String) {
        var fields = Self.split(text)[...]
        guard let first = fields.popFirst()?.trimmed.lowercased(), first.contains("/") else { return nil }
        name = first
        for field in fields {
            guard let sign = field.firstIndex(of: "=") else { continue }
            let value = field[field.index(after: sign)...].trimmed
            parameters[field[..<sign].trimmed.lowercased()] = Self.unquoted(value)
        }
    }

    /// The boundary of a multipart type; nil for other types, and for a boundary that RFC 2046 doesn't allow.
    package var boundary: String? {
        guard name.hasPrefix("multipart/"), let boundary = parameters["boundary"],
            (1...70).contains(boundary.utf8.count),
            boundary.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }), boundary.utf8.last != UInt8(ascii: " ")
        else { return nil }
        return boundary
    }

    /// The fields between semicolons that don't stand in quotes.
    private static func split(_ text: String) -> [String] {
        var fields = [""]
        var (isQuoted, isEscaped) = (false, false)
        for character in text {
            if isEscaped {
                isEscaped = false
            } else if isQuoted, character == "\\" {
                isEscaped = true
            } else if character == "\"" {
                isQuoted.toggle()
            } else if character == ";", !isQuoted {
                fields.append("")
                continue
            }
            fields[fields.count - 1].append(character)
        }
        return fields
    }

    private static func unquoted(_ text: String) -> String {
        guard text.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") else { return text }
        var value = ""
        var isEscaped = false
        for character in text.dropFirst().dropLast() {
            if character == "\\", !isEscaped {
                isEscaped = true
            } else {
                value.append(character)
                isEscaped = false
            }
        }
        return value
    }
}

extension MediaType {
    /// The `filename` of a Content-Disposition; nil if there isn't one.
    package static func fileName(ofDisposition text: String) -> String? {
        MediaType("x/" + text)?.parameters["filename"]
    }

    /// A Content-Disposition with that file name; nil if a field can't hold it.
    package static func disposition(fileName: String) -> String? {
        var text = "attachment; filename=\""
        for character in fileName.unicodeScalars {
            guard character.value >= 0x20, character.value != 0x7F else { return nil }
            if character == "\"" || character == "\\" { text.append("\\") }
            text.unicodeScalars.append(character)
        }
        return text + "\""
    }
}
