public import Coffer

#if Sync
public import Foundation
internal import CofferSealing
internal import Synchronization
#endif

#if Sync
/// Serves the databases of a manager over HTTP, in the protocol of CouchDB: for other Coffers, for CouchDB's replicator, for
/// curl.
///
/// ```swift
/// let listener = try await Listener(manager, options: ListenerOptions(access: .passwords(["robin": "s3cret"])))
/// let server = listener.url          // http://127.0.0.1:49152
/// // …
/// await listener.stop()
/// ```
///
/// Databases are opened when they are first asked for and stay open until the listener stops. There are no views and no
/// design functions; filters are those that the app has given the database. Safe from any thread.
public final class Listener: Sendable {
    private let service: Service
    private let server: NetworkServer
    private let host: String
    private let scheme: String

    /// Listens from the time this returns.
    ///
    /// - Throws: ``SyncError`` 400 for a listener without passwords that others could reach, and for an invalid
    ///   certificate or key; 503 where the address can't be listened at.
    public init(_ manager: Manager, options: ListenerOptions) async throws {
        if case .unauthenticatedLoopback = options.access {
            guard ListenerOptions.loopbackHosts.contains(options.host) else {
                throw SyncError(400, "without passwords only loopback is served")
            }
        }
        if case .passwords(let passwords) = options.access {
            guard !passwords.isEmpty, !passwords.contains(where: { $0.key.isEmpty || $0.value.isEmpty }) else {
                throw SyncError(400, "an empty name or password, or none at all")
            }
        }
        let service = Service(
            manager, options,
            makeTransport: { (remote, options) throws(SyncError) in
                try NetworkTransport.maker(remote.origin, options)
            })
        self.service = service
        host = options.host
        scheme = options.tls == nil ? "http" : "https"
        server = try await NetworkServer(
            host: options.host, port: options.port, tls: options.tls,
            limits: .init(connectionCount: options.connectionLimit, idleTimeout: options.idleTimeout)
        ) { await service.respond(to: $0) }
        server.start()
    }

    /// The port that is listened at.
    public var port: Int { server.port }

    /// Where the server is, such as `http://127.0.0.1:49152`: a database's name follows after a slash.
    public var url: String { "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    /// Where others find a database: what a ``Replication`` takes. To say who asks, put a name and a password into it.
    ///
    /// - Parameter name: the database's. One that isn't there yet is made by whoever pushes with
    ///   ``ReplicationOptions/createsTarget``, if the options allow it.
    /// - Throws: ``SyncError`` 400 for a name that no database can have.
    public func url(ofDatabaseNamed name: String) throws(SyncError) -> URL {
        guard Database.isValidName(name), let path = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics),
            let url = URL(string: "\(url)/\(path)")
        else { throw SyncError(400, "no database can have that name") }
        return url
    }

    /// Takes no new requests, waits for those under way, and closes the databases that nobody else holds. Feeds end at once;
    /// compactions and replications that were asked for are broken off, and keep what they have done.
    ///
    /// - Parameter grace: after that time requests are broken off. Default: 10 seconds.
    public func stop(grace: Duration = .seconds(10)) async {
        service.stop()
        await server.stop(grace: grace)
        await service.endTasks()
        service.releaseDatabases()
    }
}
#endif

/// How a ``Listener`` serves.
public struct ListenerOptions: Sendable {
    /// Who may do what.
    public enum Access: Sendable {
        /// Those who say one of these names with its password, by HTTP's Basic scheme or `_session`. After five wrong ones an
        /// address has to wait, a second at first and five minutes at most (429); so have all that never said a right one
        /// after many wrong ones from anywhere.
        case passwords([String: String])
        /// Everybody who reaches the port, on loopback only. Any program of any user of the machine can do that.
        case unauthenticatedLoopback
    }

    /// What a server proves with who it is.
    public struct TLS: Sendable {
        /// Its certificate in PEM, and after it those that lead from there to one that clients trust.
        public var certificateChain: String
        /// The certificate's private key in PEM, without a password.
        public var privateKey: String

        /// That certificate and its key.
        public init(certificateChain: String, privateKey: String) {
            self.certificateChain = certificateChain
            self.privateKey = privateKey
        }
    }

    /// What only this machine reaches.
    static let loopbackHosts = ["127.0.0.1", "::1", "localhost"]

    /// The address that is listened at. Default: `127.0.0.1`, which only this machine reaches. What is sent elsewhere is
    /// encrypted only where there is ``tls``, or a proxy that has it stands before this.
    public var host = "127.0.0.1"

    /// The port. Default: 0, one that is free.
    public var port = 0

    /// With what connections are encrypted: then the server is there for `https` alone, with TLS 1.2 or later. Default: nil,
    /// they are not.
    public var tls: TLS?

    /// Who may do what. There is no default.
    public var access: Access

    /// Returns the key of the database with that name; nil for one that is not encrypted. Default: nil for all.
    ///
    /// The listener calls it when a request first needs a database, and when one is created, from several tasks at a time. It
    /// may take its time and fail: while a key can't be had, requests for that database are answered with a 503, or with the
    /// status of the `SyncError` that it throws, and the next one asks again.
    public var encryptionKey: @Sendable (_ name: String) async throws -> SymmetricKey? = { _ in nil }

    /// Whether databases that aren't encrypted are refused with a 401, and none is created without a key. Default: false.
    ///
    /// A store says itself whether it is encrypted, before any key is proven: where ``encryptionKey`` is nil for a store because
    /// of what it says, whoever can write to the directory has documents written in plaintext.
    public var requiresEncryption = false

    /// Whether nothing may be changed: databases are opened for reading only. Default: false.
    ///
    /// One that the app has open for writing stays as it is. It can't be opened for writing, a 503, once the listener has it.
    public var isReadOnly = false

    /// The options of replications that clients start through `_replicate`. Default: nil, and `_replicate` is a 403.
    ///
    /// Whoever has a password can then have this process connect to any address that it reaches, the machine's own included,
    /// and send there what its databases hold. What a request says, such as `continuous`, goes before these options.
    public var replications: ReplicationOptions?

    /// Bodies that are JSON may have at most that many bytes, unpacked; more is a 413. Default: 64 MiB, as many as a document may
    /// have. Nor may they have more than 1,048,576 values, or 100,000 documents, keys or revisions in a list.
    public var documentByteLimit = 64 << 20

    /// All requests under way take at most that many bytes together, for their bodies and what is made of them. A request that
    /// needs more than is left waits, up to 30 seconds, then it is a 503; one that could never have enough is a 413. Default:
    /// 384 MiB, what the largest body takes that ``documentByteLimit`` allows by default, three times its bytes and 160 for
    /// each of its values.
    ///
    /// Page caches of databases and contents of attachments, which are written to the disk as they come, don't count.
    public var memoryByteLimit = 384 << 20

    /// A content may have at most that many bytes; more is a 413. Default: nil, as many as fit on the disk.
    public var attachmentByteLimit: Int?

    /// So many connections are held at most; more are answered 503 and closed. Default: 256.
    public var connectionLimit = 256

    /// A connection on which nothing moves is closed after that time. Default: 90 seconds.
    public var idleTimeout: Duration = .seconds(90)

    /// The values that are their defaults.
    public init(access: Access) { self.access = access }
}
