import Coffer
import CofferModel
import CofferSealing
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

/// A server with one database, and stores that exchange revisions with it.
struct Peers {
    let server = TestServer()
    let wire: RecordingTransport
    let stores = TemporaryStores()

    init() throws {
        wire = RecordingTransport(server)
        _ = try server.database()
    }

    /// A database here.
    func database(_ name: String = "local") throws -> Database {
        try stores.manager.patientDatabase(named: name)
    }

    var remote: Database { get throws { try server.database() } }

    func replication(
        _ direction: Replication.Direction, _ database: Database, through transport: (any HTTPTransport)? = nil,
        url: String = "http://server/db", _ change: (inout ReplicationOptions) -> Void = { _ in }
    ) throws -> Replication {
        var options = ReplicationOptions()
        change(&options)
        let url = try RemoteURL(try #require(URL(string: url)))
        let transport = transport ?? wire
        // Nobody waits in a test.
        return try Replication(direction, database, url, options, sleep: { _ in try Task.checkCancellation() }) {
            transport
        }
    }

    @discardableResult
    func pull(_ database: Database, _ change: (inout ReplicationOptions) -> Void = { _ in }) async throws -> Replication
    {
        let replication = try replication(.pull, database, change)
        try await replication.run()
        return replication
    }

    @discardableResult
    func push(_ database: Database, _ change: (inout ReplicationOptions) -> Void = { _ in }) async throws -> Replication
    {
        let replication = try replication(.push, database, change)
        try await replication.run()
        return replication
    }
}

/// Takes requests on, and remembers which there were.
final class RecordingTransport: HTTPTransport {
    private let inner: any HTTPTransport
    private let requests = Lock<[String]>([])
    private let sent = Counter()

    init(_ inner: any HTTPTransport) { self.inner = inner }

    /// Methods and targets, in order.
    var all: [String] { requests.withLock { $0 } }

    /// The bytes of the bodies that were sent.
    var sentByteCount: Int { sent.value }

    func reset() {
        requests.withLock { $0 = [] }
        sent.add(-sent.value)
    }

    func count(_ part: String) -> Int { all.count { $0.contains(part) } }

    func send(_ request: HTTPRequest) async throws -> HTTPResponse {
        requests.withLock { $0.append("\(request.method) \(request.target)") }
        sent.add(request.body.length ?? 0)
        return try await inner.send(request)
    }

    func close() async {}
}

/// All that two databases must agree about.
struct Contents: Equatable, CustomStringConvertible {
    struct Leaf: Equatable {
        var revision: String
        var isDeletion: Bool
        var json: String
        var history: [String]
        var contents: [String: Data]
    }

    var documents: [String: [Leaf]] = [:]
    /// By the ids of the documents.
    var winners: [String: String] = [:]

    init(_ database: Database) throws {
        var options = FeedOptions()
        options.includesAllLeaves = true
        for changed in try database.changes(since: 0, options: options).all {
            winners[changed.documentID] = changed.revision.revisionID.description
            documents[changed.documentID] = try changed.leafRevisionIDs.map { id in
                let revision = try #require(try changed.document.revision(withID: id))
                var contents: [String: Data] = [:]
                for attachment in try revision.attachments {
                    contents[attachment.name] = try attachment.content ?? Data("missing".utf8)
                }
                for blob in try revision.properties.blobs {
                    contents[blob.digest ?? ""] = try blob.content ?? Data("missing".utf8)
                }
                return Leaf(
                    revision: id.description, isDeletion: revision.isDeletion,
                    json: String(decoding: try revision.json, as: UTF8.self),
                    history: try revision.history.map(\.revisionID.description), contents: contents)
            }
        }
    }

    var description: String { documents.keys.sorted().map { "\($0): \(documents[$0] ?? [])" }.joined(separator: "\n") }
}

extension Database {
    /// Saves a revision with these properties, and with an attachment where one is given.
    @discardableResult
    func write(
        _ id: String, _ properties: JSONObject, attachment: (name: String, content: Data)? = nil
    ) throws -> SavedRevision {
        let draft = try document(withID: id).newRevision()
        for (key, value) in properties { draft.properties[key] = value }
        if let attachment {
            draft.setAttachment(named: attachment.name, contentType: "text/plain", content: attachment.content)
        }
        return try draft.save()
    }
}

/// Lets a test stand between: it is given each request, with its number from 1 on.
final class InterceptingTransport: HTTPTransport {
    typealias Body = @Sendable (HTTPRequest, Int, any HTTPTransport) async throws -> HTTPResponse
    private let inner: any HTTPTransport
    private let body: Body
    private let number = Counter()

    init(_ inner: any HTTPTransport, _ body: @escaping Body) {
        self.inner = inner
        self.body = body
    }

    /// How many requests there were.
    var count: Int { number.value }

    func send(_ request: HTTPRequest) async throws -> HTTPResponse {
        number.add(1)
        return try await body(request, number.value, inner)
    }

    func close() async {}
}
