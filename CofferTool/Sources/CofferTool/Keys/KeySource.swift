/// Where a key comes from, as `--key` names it: `prompt`, `file:PATH`, `env:NAME`, `fd:N`, `stdin` or `cmd:COMMAND`, with
/// `hex+`, `base64+` or `raw+` before it when it is 32 bytes and not a password.
///
/// A secret is never an argument itself. One that was given as an argument all the same is not repeated in messages.
struct KeySource: Hashable {
    /// What the source holds.
    enum Encoding: Hashable, CaseIterable {
        /// A password as it stands; one line end after it does not count.
        case password
        /// 64 hexadecimal digits.
        case hex
        /// 32 bytes in base64 (RFC 4648 §4).
        case base64
        /// 32 bytes as they are.
        case raw
    }

    /// What is read.
    enum Origin: Hashable {
        case prompt
        case file(String)
        case environment(String)
        case descriptor(Int32)
        case standardInput
        case command(String)
    }

    let encoding: Encoding
    let origin: Origin

    init(encoding: Encoding = .password, origin: Origin) {
        self.encoding = encoding
        self.origin = origin
    }

    init(_ text: String) throws(Failure) {
        let prefixes: [(String, Encoding)] = [("hex+", .hex), ("base64+", .base64), ("raw+", .raw)]
        let match = prefixes.first { text.hasPrefix($0.0) }
        encoding = match?.1 ?? .password
        origin = try Self.origin(text.dropFirst(match?.0.count ?? 0))
    }

    private static func origin(_ text: Substring) throws(Failure) -> Origin {
        switch text {
        case "prompt": return .prompt
        case "stdin": return .standardInput
        default: break
        }
        guard let colon = text.firstIndex(of: ":") else { throw unknown }
        let value = String(text[text.index(after: colon)...])
        switch (text[..<colon], value.isEmpty) {
        case ("file", false): return .file(value)
        case ("env", false): return .environment(value)
        case ("cmd", false): return .command(value)
        case ("fd", false):
            guard let number = Int32(value), number == 0 || number > 2 else { throw unknown }
            return .descriptor(number)
        default: throw unknown
        }
    }

    private static let unknown = Failure.usage(
        "this is not a source of a key",
        hint: "a key is given as prompt, file:PATH, env:NAME, fd:N, stdin or cmd:COMMAND, never by itself; "
            + "hex+, base64+ or raw+ before it say that it is 32 bytes")

    /// Whether reading the key takes up standard input, so that nothing else can be read from there.
    var usesStandardInput: Bool { origin == .standardInput || origin == .descriptor(0) }
}
