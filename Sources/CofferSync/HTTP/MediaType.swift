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
