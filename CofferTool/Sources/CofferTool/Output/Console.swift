internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Where the command writes: results to standard output, everything else to standard error.
final class Console {
    /// Whether results and failures are written as objects of JSON, one on each line.
    let isJSON: Bool

    /// Whether a terminal gets results without the characters that it would act on.
    var escapesResults = TerminalText.isOutput

    private var pending: [UInt8] = []
    private static let pendingByteCountLimit = 1 << 16

    init(isJSON: Bool) {
        self.isJSON = isJSON
    }

    /// Writes one line of a result. It may not leave the process before ``flush()``.
    func printResult(_ line: String) throws(Failure) {
        pending.append(contentsOf: (escapesResults ? TerminalText.escaped(line) : line).utf8)
        pending.append(UInt8(ascii: "\n"))
        if pending.count >= Self.pendingByteCountLimit { try flush() }
    }

    /// Writes one line of a result, parts of which stand out on a terminal, unless `NO_COLOR` is set.
    func printResult(_ parts: [(text: String, standsOut: Bool)]) throws(Failure) {
        let hasStyles = TerminalText.isOutput && ProcessInfo.processInfo.environment["NO_COLOR", default: ""].isEmpty
        for part in parts {
            let text = escapesResults ? TerminalText.escaped(part.text) : part.text
            let (start, end) = part.standsOut && hasStyles ? ("\u{1B}[1m", "\u{1B}[22m") : ("", "")
            pending.append(contentsOf: (start + text + end).utf8)
        }
        pending.append(UInt8(ascii: "\n"))
        if pending.count >= Self.pendingByteCountLimit { try flush() }
    }

    /// Writes bytes that are a result, as they are.
    func printContent(_ content: Data) throws(Failure) {
        try flush()
        try Self.write(content, to: STDOUT_FILENO)
    }

    /// Writes what is pending to standard output.
    func flush() throws(Failure) {
        defer { pending.removeAll(keepingCapacity: true) }
        try Self.write(pending, to: STDOUT_FILENO)
    }

    /// Writes a line to standard error that is neither a result nor a failure.
    func printNote(_ text: String) {
        guard isJSON else { return Self.printProgress("coffer: note: \(text)") }
        var line = JSONLine(type: "note")
        line.add("message", text)
        Self.printProgress(line.finished)
    }

    /// Writes to standard error what was done all the same and may be a mistake, and what to do about it.
    func printWarning(_ text: String, code: String, hint: String) {
        guard isJSON else { return Self.printProgress("coffer: warning: \(text)\ncoffer: hint: \(hint)") }
        var line = JSONLine(type: "warning")
        line.add("code", code)
        line.add("message", text)
        line.add("hint", hint)
        Self.printProgress(line.finished)
    }

    /// Writes a line to standard error that says how far the work is. Safe from any thread.
    static func printProgress(_ line: String) { printError(line + "\n") }

    private static func printError(_ text: String) {
        let text = TerminalText.isErrors ? TerminalText.escaped(text) : text
        try? write(Array(text.utf8), to: STDERR_FILENO)
    }

    /// Writes why the command failed to standard error.
    func printFailure(_ failure: Failure) {
        var text = ""
        if isJSON {
            var line = JSONLine(type: "error")
            failure.add(to: &line)
            text = line.finished + "\n"
        } else {
            let toTerminal = TerminalText.isErrors
            text = "coffer: error: \(Self.printable(failure.message, toTerminal: toTerminal))\n"
            if let hint = failure.hint { text += "coffer: hint: \(Self.printable(hint, toTerminal: toTerminal))\n" }
        }
        Self.printError(text)
    }

    /// `text` as it may go to a terminal on a line of its own: as it is, or as a JSON string where it holds control
    /// characters, or looks like one. Where it does go to a terminal, what sets the direction of writing counts too.
    static func printable(_ text: String, toTerminal: Bool = TerminalText.isOutput) -> String {
        let isPlain =
            !text.hasPrefix("\"") && !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
            && !(toTerminal && TerminalText.setsDirection(text))
        return isPlain ? text : JSONLine.quoted(text)
    }

    /// Writes all of `bytes`. `name` is what messages call the descriptor.
    static func write(
        _ bytes: some ContiguousBytes & Collection, to descriptor: Int32, named name: String? = nil
    ) throws(Failure) {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { all in
                let rest = unsafe UnsafeRawBufferPointer(rebasing: all[written...])
                #if canImport(Glibc)
                return unsafe Glibc.write(descriptor, rest.baseAddress, rest.count)
                #else
                return unsafe Darwin.write(descriptor, rest.baseAddress, rest.count)
                #endif
            }
            if count >= 0 {
                written += count
            } else if errno == EPIPE && descriptor == STDOUT_FILENO {
                throw Failure.readerGone
            } else if errno != EINTR {
                let standard = descriptor == STDOUT_FILENO ? "standard output" : "standard error"
                throw Failure.system(errno, name ?? standard)
            }
        }
    }
}

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

/// How many things there are, as people say it.
extension Int {
    /// Such as "1 store" or "2 stores".
    func counted(_ noun: String) -> String { "\(self) \(noun)\(self == 1 ? "" : "s")" }

    /// The same of a total, such as "1 of 5 stores"; "1 store" where there is no other.
    func counted(_ noun: String, of total: Int) -> String {
        total == 1 ? counted(noun) : "\(self) of \(total.counted(noun))"
    }

    /// The verb that goes with such a count: the first for one, the other for all else.
    func verb(_ one: String, _ many: String) -> String { self == 1 ? one : many }
}
