import Coffer
import CofferModel
import CofferSealing
import CofferTesting
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CofferSync

/// A server with documents whose contents are not brought by a pull.
struct DeferredPeers {
    let peers: Peers
    let database: Database
    let wire: ContentTransport

    /// - Parameter fill: what the server's database gets.
    init(
        through transport: ((any HTTPTransport) -> any HTTPTransport)? = nil, _ fill: (Database) throws -> Void
    ) async throws {
        peers = try Peers()
        try fill(peers.remote)
        database = try peers.database()
        wire = ContentTransport(transport?(peers.server) ?? peers.server)
        try await pull().run()
    }

    /// A pull that brings no contents.
    func pull(_ change: (inout ReplicationOptions) -> Void = { _ in }) throws -> Replication {
        try peers.replication(.pull, database, through: wire) { options in
            options.downloadsAttachments = false
            change(&options)
        }
    }

    func attachment(_ id: String, _ name: String = "a") throws -> Coffer.Attachment {
        try #require(try database.document(withID: id).currentRevision?.attachment(named: name))
    }

    /// Files on their way, and contents that are here.
    func files(_ part: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: peers.stores.directory.path).filter {
            $0.contains("/\(part)/")
        }
    }

    func expectNothingIncoming(_ location: SourceLocation = #_sourceLocation) throws {
        #expect(try files("incoming").isEmpty, sourceLocation: location)
    }

    /// The same where the last who held a file may still be about to let go of it.
    func expectNothingIncomingSoon(_ location: SourceLocation = #_sourceLocation) async throws {
        #expect(try await eventually { try files("incoming").isEmpty }, sourceLocation: location)
    }

    func expectSound(_ location: SourceLocation = #_sourceLocation) async throws {
        #expect(try await database.verify(.everything).findings.isEmpty, sourceLocation: location)
    }
}

/// The same bytes whenever they are asked for, and no others.
func bytes(_ count: Int, seed: UInt64 = 1) -> Data {
    var state = seed &* 0x9E37_79B9_7F4A_7C15
    var data = Data(capacity: count + 8)
    while data.count < count {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        withUnsafeBytes(of: state) { data.append(contentsOf: $0) }
    }
    return data.prefix(count)
}

/// Takes requests on. Answers to those for contents are a test's, which are given their number from 1 on; their bytes are
/// counted as they are taken.
final class ContentTransport: HTTPTransport {
    typealias Change = @Sendable (HTTPRequest, HTTPResponse, Int) async throws -> HTTPResponse

    private let inner: any HTTPTransport
    private let change = Lock<Change?>(nil)
    private let all = Lock<[HTTPRequest]>([])
    private let taken = Counter()

    init(_ inner: any HTTPTransport) { self.inner = inner }

    /// The requests for contents.
    var requests: [HTTPRequest] { all.withLock { $0 } }
    var byteCount: Int { taken.value }

    func reset() {
        all.withLock { $0 = [] }
        taken.add(-taken.value)
    }

    func answer(_ change: Change?) { self.change.withLock { $0 = change } }

    func send(_ request: HTTPRequest) async throws -> HTTPResponse {
        let path = RequestTarget(request.target)?.path ?? []
        guard path.count >= 3, !path[1].hasPrefix("_"), ["GET", "HEAD"].contains(request.method) else {
            return try await inner.send(request)
        }
        let number = all.withLock { all in
            all.append(request)
            return all.count
        }
        var response = try await inner.send(request)
        if let change = change.withLock({ $0 }) { response = try await change(request, response, number) }
        let (body, taken) = (response.body.stream, taken)
        let counted = ByteStream {
            let piece = try await body.next()
            taken.add(piece?.count ?? 0)
            return piece
        }
        response.body = .stream(counted, length: response.body.length)
        return response
    }

    func close() async {}
}

extension HTTPResponse {
    /// The same with other bytes.
    func with(_ bytes: [UInt8]) -> HTTPResponse { HTTPResponse(status, fields: fields, body: .bytes(bytes)) }

    func with(_ name: String, _ value: String?) -> HTTPResponse {
        var response = self
        response.fields[name] = value
        return response
    }

    /// The same, in small pieces, where the connection breaks after so many bytes.
    func broken(after count: Int) -> HTTPResponse {
        ending(after: count) { throw SyncError(503, "the connection broke") }
    }

    /// The same, where nothing more comes after so many bytes until the gate opens.
    func held(after count: Int, _ gate: Gate) -> HTTPResponse {
        ending(after: count) { try await gate.wait() }
    }

    private func ending(after count: Int, _ end: @escaping @Sendable () async throws -> Void) -> HTTPResponse {
        let body = body.stream
        let rest = Lock<[UInt8]>([])
        let left = Counter()
        left.add(count)
        let stream = ByteStream {
            if left.value == 0 { try await end() }
            var piece = rest.withLock { $0 }
            if piece.isEmpty { piece = try await body.next() ?? [] }
            let size = min(piece.count, 50_000, left.value == 0 ? .max : left.value)
            guard size > 0 else { return nil }
            let remaining = Array(piece[size...])
            rest.withLock { $0 = remaining }
            if left.value > 0 { left.add(-size) }
            return Array(piece[..<size])
        }
        return HTTPResponse(status, fields: fields, body: .stream(stream, length: self.body.length))
    }
}

/// What somebody waits before until it is opened.
final class Gate: Sendable {
    private let isOpen = Atomic(false)
    private let waiting = Counter()

    func open() { isOpen.store(true, ordering: .sequentiallyConsistent) }

    func wait() async throws {
        waiting.add(1)
        #expect(try await eventually { isOpen.load(ordering: .sequentiallyConsistent) })
    }

    /// Returns when somebody waits.
    func isReached() async throws {
        #expect(try await eventually { waiting.value > 0 })
    }
}

extension AttachmentDownload {
    /// Returns when it does that.
    func reach(_ activity: DownloadStatus.Activity) async throws {
        #expect(try await eventually { status.activity == activity })
    }
}

/// The status of what a download failed with.
func status(of download: AttachmentDownload) async -> Int? {
    do {
        try await download.run()
        return nil
    } catch let error as SyncError {
        return error.status
    } catch let error as CofferError {
        return error.status
    } catch {
        return error is CancellationError ? 499 : -1
    }
}

/// The MD5 in base64, as CouchDB's ETags have it.
func md5(_ data: Data) throws -> String {
    var digest = try StreamingDigest(.md5)
    digest.update(Array(data))
    return Data(digest.finalize()).base64EncodedString()
}
