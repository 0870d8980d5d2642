@_spi(Tool) internal import CofferKeys
internal import Foundation

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

/// A file that says where the keys of stores are, and holds none: on each line a pattern, white space, and a source.
///
///     # The first line that matches counts.
///     /srv/stores/*.coffer    credential:coffer
///     people.coffer           hex+file:/etc/coffer/people-key
///
/// A pattern with a slash is for the store's path, any other for its name; `*` and `?` are as in a shell.
struct KeyProfile {
    /// It names the file; if it is empty, there is no profile. By default that is `coffer/profile` in `$XDG_CONFIG_HOME` or `~/.config`.
    static let variable = "COFFER_PROFILE"

    private let lines: [(pattern: String, source: KeySource)]

    /// Where the user's profile says that the key of that store is; nil if there is no profile, or no line for it.
    static func source(of store: StorePath) throws(Failure) -> KeySource? {
        if let named = environment(variable) {
            return named.isEmpty ? nil : try KeyProfile(contentsOf: named).source(of: store)
        }
        let folder = environment("XDG_CONFIG_HOME") ?? environment("HOME").map { $0 + "/.config" }
        guard let folder, !folder.isEmpty else { return nil }
        let path = folder + "/coffer/profile"
        guard unsafe access(path, F_OK) == 0 else { return nil }
        return try KeyProfile(contentsOf: path).source(of: store)
    }

    private static func environment(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    /// - Throws: if others could have written it, since it names commands to run, or if a line is invalid.
    private init(contentsOf path: String) throws(Failure) {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure.keyUnavailable(Failure.system(errno, path).message) }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            throw Failure.keyUnavailable(Failure.system(errno, path).message)
        }
        guard status.st_uid == geteuid() || status.st_uid == 0, status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
            throw Failure.keyUnavailable(
                "\(path): others than you can write it, and it names commands that are run",
                hint: "chmod go-w FILE keeps them out")
        }
        let contents = try InputFile.contents(of: descriptor, named: path)
        guard let text = String(validating: contents, as: UTF8.self) else {
            throw Failure.keyUnavailable("\(path): it is not text in UTF-8")
        }
        var lines: [(String, KeySource)] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let words = line.split(maxSplits: 1, whereSeparator: \.isWhitespace)
            guard let pattern = words.first, !pattern.hasPrefix("#") else { continue }
            let source = words.count == 2 ? words[1].trimmingCharacters(in: .whitespaces) : ""
            guard let source = try? KeySource(source) else {
                throw Failure.keyUnavailable(
                    "\(path):\(index + 1): it has no pattern and source of a key, such as *.coffer credential:coffer")
            }
            lines.append((String(pattern), source))
        }
        self.lines = lines
    }

    private func source(of store: StorePath) -> KeySource? {
        lines.first { pattern, _ in
            unsafe fnmatch(pattern, pattern.contains("/") ? store.path : store.fileName, 0) == 0
        }?.source
    }
}
