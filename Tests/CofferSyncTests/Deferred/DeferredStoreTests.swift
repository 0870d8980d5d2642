import Coffer
import CofferModel
import CofferSealing
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite("A store while contents come later", .serialized) struct DeferredStoreTests {
    private static let film = bytes(600_000)
    private let newKey: SymmetricKey

    init() throws { newKey = try SymmetricKey() }

    private func peers() async throws -> DeferredPeers {
        try await DeferredPeers { try $0.write("film", ["n": 1], attachment: ("a", Self.film)) }
    }

    @Test(
        "A change of the key leaves nothing of what was on its way under the old one, and it comes all the same",
        arguments: [true, false])
    func keyChange(isPaused: Bool) async throws {
        let peers = try await peers()
        let gate = Gate()
        peers.wire.answer { _, response, number in number == 1 ? response.held(after: 200_000, gate) : response }
        let download = try peers.pull().download(peers.attachment("film"))
        try await gate.isReached()
        if isPaused { download.pause() }
        try await peers.database.changeEncryptionKey(to: newKey)
        let store = peers.peers.stores.url(ofDatabaseNamed: "local")
        let generations = try FileManager.default.contentsOfDirectory(atPath: store.path).filter { $0.hasPrefix("g") }
        #expect(generations.count == 1, "\(generations)")
        try peers.expectNothingIncoming()
        gate.open()
        download.resume()
        try await download.run()
        #expect(try peers.attachment("film").content == Self.film)
        try peers.expectNothingIncoming()
        try await peers.expectSound()
        try await peers.database.close()
        let again = try await peers.peers.stores.manager.database(named: "local", encryptionKey: newKey)
        #expect(try again.document(withID: "film").currentRevision?.attachment(named: "a")?.content == Self.film)
    }

    @Test("Compactions and saves during a download do no harm") func compaction() async throws {
        let peers = try await peers()
        let gate = Gate()
        peers.wire.answer { _, response, _ in response.held(after: 200_000, gate) }
        let download = try peers.pull().download(peers.attachment("film"))
        try await gate.isReached()
        try peers.database.write("film", ["n": 2])
        try await peers.database.compact()
        gate.open()
        try await download.run()
        try await peers.database.compact()
        #expect(try peers.attachment("film").content == Self.film)
        try await peers.expectSound()
    }

    @Test("A large content is downloaded through little memory") func memory() async throws {
        await #expect(processExitsWith: .success) {
            let stores = TemporaryStores()
            let database = try await stores.manager.database(named: "local", encryptionKey: TestServer.key)
            let (count, size) = (192, 1 << 20)
            let piece = Array(bytes(size))
            var digest = try StreamingDigest(.sha1)
            for _ in 0..<count { digest.update(piece) }
            let text = "sha1-" + Data(digest.finalize()).base64EncodedString()
            let stub: JSONValue = [
                "digest": .string(text), "length": .number(.init(Int64(count * size))), "revpos": 1, "stub": true,
            ]
            let made = try await database.putExistingRevision(
                ["_attachments": ["a": stub]], withID: "large", history: [try #require(RevisionID("1-a"))])
            let attachment = try #require(try made.revision.attachment(named: "a"))
            let transport = InterceptingTransport(TestServer()) { _, _, _ in
                let left = Counter()
                left.add(count)
                let body = ByteStream {
                    guard left.value > 0 else { return nil }
                    left.add(-1)
                    return piece
                }
                return HTTPResponse(200, body: .stream(body, length: count * size))
            }
            let url = try RemoteURL(try #require(URL(string: "http://server/db")))
            let pull = try Replication(.pull, database, url, ReplicationOptions()) { transport }
            let before = peakByteCount()
            try await pull.download(attachment).run()
            let grown = peakByteCount() - before
            #expect(attachment.contentAvailable)
            #expect(grown < 64 << 20, "\(grown >> 20) MiB more")
        }
    }

    @Test(
        "A process that is killed in the middle of a download leaves a sound store, from which it can be had",
        arguments: [1, 250_000, 600_000])
    func killed(byteCount: Int) async throws {
        let stores = TemporaryStores()
        try FileManager.default.createDirectory(at: stores.directory, withIntermediateDirectories: true)
        let path = stores.directory.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, byteCount = byteCount as Int] in
            let manager = try Manager(directory: URL(filePath: path, directoryHint: .isDirectory))
            let database = try await manager.database(named: "local", encryptionKey: TestServer.key)
            let server = TestServer()
            try server.database().write("film", ["n": 1], attachment: ("a", bytes(600_000)))
            let wire = ContentTransport(server)
            var options = ReplicationOptions()
            options.downloadsAttachments = false
            let url = try RemoteURL(try #require(URL(string: "http://server/db")))
            let pull = try Replication(.pull, database, url, options) { wire }
            try await pull.run()
            wire.answer { _, response, _ in
                var response = response.broken(after: byteCount)
                let body = response.body.stream
                response.body = .stream(
                    ByteStream {
                        do {
                            return try await body.next()
                        } catch {
                            kill(getpid(), SIGKILL)
                            return nil
                        }
                    }, length: nil)
                return response
            }
            let attachment = try #require(try database.document(withID: "film").currentRevision?.attachment(named: "a"))
            try await pull.download(attachment).run()
        }
        let left = try FileManager.default.subpathsOfDirectory(atPath: path).filter { $0.contains("/incoming/") }
        #expect(left.count == 1)
        let database = try await stores.manager.database(named: "local", encryptionKey: TestServer.key)
        #expect(try FileManager.default.subpathsOfDirectory(atPath: path).allSatisfy { !$0.contains("/incoming/") })
        #expect(try await database.verify(.everything).findings.isEmpty)
        let attachment = try #require(try database.document(withID: "film").currentRevision?.attachment(named: "a"))
        #expect(!attachment.contentAvailable)
    }
}

/// The most memory that this process had at once.
private func peakByteCount() -> Int {
    var usage = rusage()
    #if canImport(Glibc)
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_maxrss * 1024
    #else
    getrusage(RUSAGE_SELF, &usage)
    return usage.ru_maxrss
    #endif
}
