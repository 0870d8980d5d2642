#if Sync
public import Foundation
internal import CofferSealing
internal import Synchronization
public import Coffer

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
