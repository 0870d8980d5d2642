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
