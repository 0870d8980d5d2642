import Coffer
import CofferModel
import CofferTesting
import Foundation
import Testing

@testable import CofferSync

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite("Replications that are killed") struct KilledReplicationTests {
    private static let documentCount = 450

    /// A server's databases and one of our own, both in `directory`.
    private struct Place {
        let remote: Database
        let local: Database
        let service: Service

        init(_ directory: String) throws {
            let url = URL(filePath: directory, directoryHint: .isDirectory)
            let served = try Manager(directory: url.appending(path: "served"))
            var options = ListenerOptions(access: .unauthenticatedLoopback)
            options.encryptionKey = { _ in TestServer.key }
            remote = try served.database(named: "db", encryptionKey: TestServer.key)
            local = try Manager(directory: url.appending(path: "home"))
                .database(named: "db", encryptionKey: TestServer.key)
            service = Service(served, options)
        }

        func close() throws {
            service.releaseDatabases()
            try remote.close()
            try local.close()
        }

        func run(
            _ direction: Replication.Direction, _ body: @escaping InterceptingTransport.Body
        ) async throws -> Replication {
            let transport = InterceptingTransport(Direct(service: service), body)
            var options = ReplicationOptions()
            options.batchDocumentCount = 100
            let url = try RemoteURL(try #require(URL(string: "http://server/db")))
            let replication = try Replication(direction, local, url, options) { transport }
            try await replication.run()
            return replication
        }
    }

    private struct Direct: HTTPTransport {
        let service: Service
        func send(_ request: HTTPRequest) async throws -> HTTPResponse { await service.respond(to: request) }
        func close() async {}
    }

    @Test(
        "A replication that is killed at a request, or after it was done, and run again, leaves both sides equal",
        arguments: [3, 4, 6, 8, 9], [true, false])
    func killed(number: Int, isPull: Bool) async throws {
        let stores = TemporaryStores()
        let path = stores.directory.path
        try FileManager.default.createDirectory(at: stores.directory, withIntermediateDirectories: true)
        var place: Place? = try Place(path)
        if let source = isPull ? place?.remote : place?.local {
            for number in 0..<Self.documentCount {
                try source.write("doc-\(number)", ["n": .number(.init(Int64(number)))])
            }
            for number in 0..<20 { try source.write("att-\(number)", [:], attachment: ("a", Data("\(number)".utf8))) }
        }
        try place?.close()
        place = nil
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = path as String, number = number as Int, isPull = isPull as Bool] in
            let isAfterwards = number.isMultiple(of: 2)
            _ = try await Place(path).run(isPull ? .pull : .push) { request, count, inner in
                if count == number, !isAfterwards { kill(getpid(), SIGKILL) }
                let response = try await inner.send(request)
                if count == number { kill(getpid(), SIGKILL) }
                return response
            }
        }
        let again = try Place(path)
        let (source, target) = isPull ? (again.remote, again.local) : (again.local, again.remote)
        let expected = try Contents(source)
        let before = try Contents(target).documents
        for (id, leaves) in before { #expect(expected.documents[id] == leaves, "\(id)") }
        #expect(before.count < Self.documentCount + 20)
        let replication = try await again.run(isPull ? .pull : .push) { try await $2.send($0) }
        #expect(replication.status.failedCount == 0)
        #expect(try Contents(target) == expected)
        try again.close()
    }
}
