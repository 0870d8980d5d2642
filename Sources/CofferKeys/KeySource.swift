public import Coffer
internal import CofferSealing
public import Foundation

/// The source of a key: a file, a variable of the environment, a descriptor, a command, a credential of systemd's or a
/// keyring of the kernel's.
///
/// ```swift
/// let key = try SymmetricKey(from: .credential("coffer"))
/// ```
///
/// What is read there is a password in UTF-8, of at most 65,536 bytes, after which one line end (LF or CRLF) does not count;
/// or 32 bytes, in the ``Encoding`` that is said. Nothing is read before a key is asked for. A source holds no secret itself,
/// but a path or a command may say more than a log should hold, so it describes itself by its kind alone.
public struct KeySource: Hashable, Sendable, CustomStringConvertible {
    /// The encoding of the key in the source.
    public enum Encoding: Hashable, CaseIterable, Sendable {
        /// A password as it stands; one line end after it does not count.
        case password
        /// 64 hexadecimal digits; one line end after them does not count.
        case hex
        /// 32 bytes in base64 (RFC 4648 §4); one line end after them does not count.
        case base64
        /// 32 bytes as they are.
        case raw
    }

    enum Origin: Hashable {
        case file(String)
        case environment(String)
        case descriptor(Int32)
        case standardInput
        case command(String)
        case credential(String)
        case keyring(String)
    }

    /// The encoding of the key in the source.
    public let encoding: Encoding

    let origin: Origin

    /// A file.
    public static func file(_ path: String, as encoding: Encoding = .password) -> KeySource {
        KeySource(origin: .file(path), encoding: encoding)
    }

    /// A variable of the process's environment. Others of the same user can read it for as long as the process lives
    /// (proc(5)), so that it serves where nothing better is to be had.
    public static func environment(_ name: String, as encoding: Encoding = .password) -> KeySource {
        KeySource(origin: .environment(name), encoding: encoding)
    }

    /// A descriptor that is open, such as a pipe's, which is read to its end and closed.
    public static func descriptor(_ number: Int32, as encoding: Encoding = .password) -> KeySource {
        KeySource(origin: .descriptor(number), encoding: encoding)
    }

    /// Standard input, up to its end. A terminal is refused, which would show what is typed.
    public static func standardInput(as encoding: Encoding = .password) -> KeySource {
        KeySource(origin: .standardInput, encoding: encoding)
    }

    /// The standard output of a command, run by `/bin/sh -c`. The command must exit with 0.
    ///
    /// Its input is empty, and its errors go where this process's go. What a ``KeyRequest`` says is in its environment.
    public static func command(_ line: String, as encoding: Encoding = .password) -> KeySource {
        KeySource(origin: .command(line), encoding: encoding)
    }

    /// A credential that systemd has given to the service, as `LoadCredential=` and `LoadCredentialEncrypted=` do: the file
    /// of that name in `$CREDENTIALS_DIRECTORY` (systemd.exec(5), Credentials).
    public static func credential(_ name: String, as encoding: Encoding = .password) -> KeySource {
        KeySource(origin: .credential(name), encoding: encoding)
    }

    /// A key of type `user` in the kernel's key management (keyrings(7)): looked for by its description in the keyrings of
    /// the thread, the process and the session, and then in the user's own. Linux alone has it.
    public static func keyring(_ description: String, as encoding: Encoding = .password) -> KeySource {
        KeySource(origin: .keyring(description), encoding: encoding)
    }

    /// A source as text names it: `file:PATH`, `env:NAME`, `fd:N`, `stdin`, `cmd:COMMAND`, `credential:NAME` or
    /// `keyring:NAME`, with `hex+`, `base64+` or `raw+` before it where it is 32 bytes and no password.
    ///
    /// - Throws: ``KeySourceError/Code-swift.enum/invalidSource`` for any other text, which may be a secret itself and is not
    ///   repeated.
    public init(parsing text: String) throws(KeySourceError) {
        let (encoding, rest) = Encoding.split(text)
        self.init(origin: try Self.origin(rest), encoding: encoding)
    }

    init(origin: Origin, encoding: Encoding) {
        self.origin = origin
        self.encoding = encoding
    }

    private static func origin(_ text: Substring) throws(KeySourceError) -> Origin {
        if text == "stdin" { return .standardInput }
        guard let colon = text.firstIndex(of: ":") else { throw .invalidSource }
        let value = String(text[text.index(after: colon)...])
        guard !value.isEmpty, !value.utf8.contains(0) else { throw .invalidSource }
        switch text[..<colon] {
        case "file": return .file(value)
        case "env": return .environment(value)
        case "cmd": return .command(value)
        case "credential": return .credential(value)
        case "keyring": return .keyring(value)
        case "fd":
            guard let number = Int32(value), number == 0 || number > 2 else { throw .invalidSource }
            return .descriptor(number)
        default: throw .invalidSource
        }
    }

    /// The kind of source.
    public var description: String {
        switch origin {
        case .file: "a file"
        case .environment: "a variable of the environment"
        case .descriptor: "a descriptor"
        case .standardInput: "standard input"
        case .command: "a command"
        case .credential: "a credential of systemd's"
        case .keyring: "a key of the kernel's"
        }
    }
}

extension KeySource.Encoding {
    /// What `text` says before a source, and the source.
    @_spi(Tool) public static func split(_ text: String) -> (encoding: Self, source: Substring) {
        let prefixes: [(String, Self)] = [("hex+", .hex), ("base64+", .base64), ("raw+", .raw)]
        guard let (prefix, encoding) = prefixes.first(where: { text.hasPrefix($0.0) }) else {
            return (.password, text[...])
        }
        return (encoding, text.dropFirst(prefix.count))
    }
}

/// For `coffer`, which asks for keys at a terminal, and reads some of them before it becomes another user.
@_spi(Tool) extension KeySource {
    /// Whether reading it takes up standard input, so that nothing else can be read from there.
    public var usesStandardInput: Bool { origin == .standardInput || origin == .descriptor(0) }

    /// Whether what can be read there depends on who reads it, and when.
    public var needsRights: Bool {
        switch origin {
        case .file, .command, .credential, .keyring: true
        case .environment, .descriptor, .standardInput: false
        }
    }

    /// Whether it may answer differently for each store.
    public var isCommand: Bool { if case .command = origin { true } else { false } }
}

extension SymmetricKey {
    /// Reads a key where `source` says.
    ///
    /// It waits for as long as the source lets it: a pipe until its writer closes it, a command until it ends. May be called
    /// from any thread. Reading the environment is safe only while nobody changes it (`setenv`). The bytes that were read are
    /// overwritten; a password is a Swift string for a moment, of which a copy may stay in memory, as with
    /// ``Coffer/SymmetricKey/init(password:)``.
    ///
    /// - Parameters:
    ///   - source: where the key is.
    ///   - request: what a command learns. Default: that a store is to be opened.
    /// - Throws: ``KeySourceError``, which is never a wrong key.
    public convenience init(from source: KeySource, for request: KeyRequest = KeyRequest()) throws(KeySourceError) {
        self.init(copying: try source.key(for: request))
    }
}

extension KeySource {
    fileprivate func key(for request: KeyRequest) throws(KeySourceError) -> SymmetricKey {
        do {
            return try reading(for: request).key
        } catch let error as KeySourceError {
            throw error
        } catch {
            throw .unavailable("\(self) could not be read")
        }
    }
}

/// The purpose of a key, passed to a command in its environment so that it can answer for each store.
public struct KeyRequest: Hashable, Sendable {
    /// The purpose of the key.
    public enum Purpose: String, Hashable, Sendable {
        /// To open the store as it is.
        case old
        /// To open it from now on.
        case new
        /// To go on opening it beside the new one.
        case kept
    }

    /// The store's path: `COFFER_STORE_PATH`. Nil where no store is meant.
    public var storePath: String?

    /// The store's UUID, in lower case: `COFFER_STORE_UUID`. A copy has the same.
    public var storeUUID: UUID?

    /// `COFFER_KEY_PURPOSE`: `old`, `new` or `kept`.
    public var purpose: Purpose

    /// - Parameters:
    ///   - purpose: what the key is to do. Default: to open the store as it is.
    ///   - storePath: the store's path.
    ///   - storeUUID: the store's UUID.
    public init(_ purpose: Purpose = .old, storePath: String? = nil, storeUUID: UUID? = nil) {
        self.purpose = purpose
        self.storePath = storePath
        self.storeUUID = storeUUID
    }

    /// The variables that a request can set.
    static let variables: Set = ["COFFER_KEY_PURPOSE", "COFFER_STORE_PATH", "COFFER_STORE_UUID"]

    var environment: [String: String] {
        var environment = ["COFFER_KEY_PURPOSE": purpose.rawValue]
        environment["COFFER_STORE_PATH"] = storePath
        environment["COFFER_STORE_UUID"] = storeUUID?.uuidString.lowercased()
        return environment
    }
}

/// Why a source has given no key.
///
/// It is never the `wrongKey` (401) of a store: no store was asked. Neither the message nor the hint
/// holds anything of what was read, nor a name or path that leads nowhere, since that may be a secret in the wrong place.
public struct KeySourceError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error.
    public enum Code: Hashable, Sendable {
        /// A text names no source.
        case invalidSource
        /// There is nothing to be read, or it can't be read: no such file, variable or credential, a command that failed.
        case unavailable
        /// What was read is not a key: empty, too long, not UTF-8, not 32 bytes, not hexadecimal digits.
        case unusable
    }

    /// The kind of error.
    public let code: Code

    /// A description of what happened, in English, without a full stop.
    public let message: String

    /// A remedy; nil if it is obvious.
    public let hint: String?

    /// The HTTP status that says the same, as every error of Coffer's has one: 400.
    public var status: Int { 400 }

    /// An error with that message.
    @_spi(Tool) public init(_ code: Code, _ message: String, hint: String? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
    }

    /// The message, with its status, and the hint.
    public var description: String { "\(message) (\(status))" + (hint.map { "; \($0)" } ?? "") }

    static let invalidSource = KeySourceError(
        .invalidSource, "this is not a key source",
        hint: "a key is given as file:PATH, env:NAME, fd:N, stdin, cmd:COMMAND, credential:NAME or keyring:NAME, "
            + "never as the key itself; the prefix hex+, base64+ or raw+ says that it is 32 bytes")

    static func unavailable(_ message: String, hint: String? = nil) -> KeySourceError {
        KeySourceError(.unavailable, message, hint: hint)
    }

    static func unusable(_ message: String, hint: String? = nil) -> KeySourceError {
        KeySourceError(.unusable, message, hint: hint)
    }
}

extension KeySourceError: LocalizedError {
    /// The description, so that `localizedDescription`, which alerts show, says what happened too. It is in English.
    public var errorDescription: String? { description }
}
