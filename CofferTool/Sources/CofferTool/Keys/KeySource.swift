@_spi(Tool) internal import CofferKeys

/// Where a key or another secret comes from, as `--key` names it: `prompt`, or what CofferKeys reads, with `hex+`, `base64+`
/// or `raw+` before it when it is 32 bytes and not a password.
///
/// A secret is never an argument itself. One that was given as an argument all the same is not repeated in messages.
struct KeySource: Hashable {
    enum Origin: Hashable {
        /// Somebody at the terminal.
        case prompt
        case named(CofferKeys.KeySource)
    }

    let encoding: CofferKeys.KeySource.Encoding
    let origin: Origin

    init(encoding: CofferKeys.KeySource.Encoding = .password, origin: Origin) {
        self.encoding = encoding
        self.origin = origin
    }

    init(_ text: String) throws(Failure) {
        let (encoding, source) = CofferKeys.KeySource.Encoding.split(text)
        self.encoding = encoding
        if source == "prompt" {
            origin = .prompt
            return
        }
        do {
            origin = .named(try CofferKeys.KeySource(parsing: text))
        } catch {
            throw Failure.usage(
                error.message,
                hint: "a key is given as prompt, file:PATH, env:NAME, fd:N, stdin, cmd:COMMAND, credential:NAME or "
                    + "keyring:NAME, never by itself; hex+, base64+ or raw+ before it say that it is 32 bytes")
        }
    }

    private var named: CofferKeys.KeySource? {
        if case .named(let source) = origin { source } else { nil }
    }

    /// Whether reading the key takes up standard input, so that nothing else can be read from there.
    var usesStandardInput: Bool { named?.usesStandardInput ?? false }

    /// Whether what can be read there depends on who reads it, and when: files, and what commands find.
    var needsRights: Bool { named?.needsRights ?? false }

    /// Whether it may answer differently for each store.
    var isCommand: Bool { named?.isCommand ?? false }
}
