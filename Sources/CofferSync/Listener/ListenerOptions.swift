public import Coffer

/// How a ``Listener`` serves.
public struct ListenerOptions: Sendable {
    /// Who may do what.
    public enum Access: Sendable {
        /// Those who say one of these names with its password, by HTTP's Basic scheme or `_session`.
        case passwords([String: String])
        /// Everybody who reaches the port, on loopback only. Any program of any user of the machine can do that.
        case unauthenticatedLoopback
    }

    /// The address that is listened at. Default: `127.0.0.1`, which only this machine reaches. What is sent elsewhere is not
    /// encrypted: put a proxy with TLS before it.
    public var host = "127.0.0.1"

    /// The port. Default: 0, one that is free.
    public var port = 0

    /// Who may do what. There is no default.
    public var access: Access

    /// The keys of the databases, by name; nil for one that is not encrypted. Asked when one is first used, and when one is
    /// created. Default: nil for all.
    public var encryptionKey: @Sendable (_ name: String) -> SymmetricKey? = { _ in nil }

    /// Whether nothing may be changed. Default: false.
    public var isReadOnly = false

    /// Bodies that are JSON may have at most that many bytes; more is a 413. Default: 64 MiB, as many as a document may have.
    public var documentByteLimit = 64 << 20

    /// A content may have at most that many bytes; more is a 413. Default: nil, as many as fit on the disk.
    public var attachmentByteLimit: Int?

    /// So many connections are held at most; more are answered 503 and closed. Default: 256.
    public var connectionLimit = 256

    /// A connection on which nothing moves is closed after that time. Default: 90 seconds.
    public var idleTimeout: Duration = .seconds(90)

    /// The values that are their defaults.
    public init(access: Access) { self.access = access }
}
