@_spi(Tool) internal import CofferKeys

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

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

    /// What the key is for; a command learns it.
    private(set) var request = KeyRequest()

    /// The option or variable that named it, for messages; nil if that is plain.
    private(set) var option: String?

    /// Whatever named them, two that are read alike are the same.
    static func == (one: KeySource, other: KeySource) -> Bool {
        one.encoding == other.encoding && one.origin == other.origin && one.request == other.request
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(encoding)
        hasher.combine(origin)
        hasher.combine(request)
    }

    init(encoding: CofferKeys.KeySource.Encoding = .password, origin: Origin) {
        self.encoding = encoding
        self.origin = origin
    }

    /// - Parameter option: what named it, such as `--key`.
    init(_ text: String, of option: String? = nil) throws(Failure) {
        self.option = option
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
                    + "keyring:NAME, never as the key itself; the prefix hex+, base64+ or raw+ says that it is 32 bytes"
            )
        }
    }

    /// The same source for a key that is to do that, of the store there, if one is meant.
    func asked(for purpose: KeyRequest.Purpose, of store: StorePath? = nil) -> KeySource {
        // Nobody else learns it, and the UUID has to be read.
        let store = isCommand ? store : nil
        return asked(for: KeyRequest(purpose, storePath: store?.path, storeUUID: store?.uuid))
    }

    /// The same source for a key of that store.
    func asked(for request: KeyRequest) -> KeySource {
        var source = self
        source.request = request
        return source
    }

    /// The source that `--key` names, or else `COFFER_KEY_SOURCE` in the environment; nil if neither does. An empty variable
    /// doesn't count.
    static func given(_ key: String?) throws(Failure) -> KeySource? {
        if let key { return try KeySource(key, of: "--key") }
        guard let text = unsafe getenv(variable).map({ unsafe String(cString: $0) }), !text.isEmpty else { return nil }
        do {
            return try KeySource(text, of: variable)
        } catch {
            throw Failure.usage("\(variable): \(error.message)", hint: error.hint)
        }
    }

    /// It holds the name of a source, and never a key.
    static let variable = "COFFER_KEY_SOURCE"

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
