#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Text on its way to a terminal, which acts on some characters instead of showing them.
///
/// JSON escapes only the first 32 of them. DEL and the C1 characters may begin a command to the terminal, and those that set
/// the direction of writing show a value in another order than it has.
enum TerminalText {
    /// Whether standard output and standard error are terminals.
    static let isOutput = isatty(STDOUT_FILENO) == 1
    static let isErrors = isatty(STDERR_FILENO) == 1

    /// `text` with each of these characters as `\uXXXX`, which in a string of JSON means the same. Line ends and tabs stay.
    static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isActive) else { return text }
        var escaped = ""
        for scalar in text.unicodeScalars {
            if isActive(scalar) { escaped += escape(scalar) } else { escaped.unicodeScalars.append(scalar) }
        }
        return escaped
    }

    /// Whether the text holds characters that change the direction of writing.
    static func setsDirection(_ text: String) -> Bool {
        text.unicodeScalars.contains(where: \.properties.isBidiControl)
    }

    /// A character below U+10000, as JSON escapes it.
    static func escape(_ scalar: Unicode.Scalar) -> String {
        let digits = String(scalar.value, radix: 16)
        return "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    private static func isActive(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "\n", "\t": false
        // Nearly all text is ASCII, of which nothing more has to be asked.
        case " "..."~": false
        default: scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
        }
    }
}
