import Coffer
import CofferModel
import CofferSealing
import Foundation
import Testing

@testable import CofferSync

/// How many requests are on their way at a time, and what bounds them.
@Suite("Requests under way") struct RequestWindowTests {
    @Test("Each quick answer allows one request more, up to the limit, and a slow one leaves two") func window() {
        let window = RequestWindow(limit: 4, patience: .seconds(120))
        #expect(window.count == 2)
        window.note(.milliseconds(50))
        #expect(window.count == 3)
        for _ in 0..<5 { window.note(.seconds(11)) }
        #expect(window.count == 4)
        window.note(.seconds(12))
        #expect(window.count == 2)
    }

    @Test("Values that are made at the same time come in order", .timeLimit(.minutes(30))) func order() async throws {
        let begun = Counter()
        let done = Lock<[Int]>([])
        let values = ReadAhead(upTo: { 3 }) { () throws -> ReadAhead<Int>.Rest? in
            guard begun.value < 6 else { return nil }
            begun.add(1)
            let number = begun.value
            return {
                // The last of three has to be begun before the first of them is over.
                while begun.value < min(6, number + 2) { try await Task.sleep(for: .milliseconds(1)) }
                done.withLock { $0.append(number) }
                return number
            }
        }
        var found: [Int] = []
        while let value = try await values.next() { found.append(value) }
        #expect(found == [1, 2, 3, 4, 5, 6])
        #expect(done.withLock { $0.sorted() } == found)
    }

    @Test("Documents that grow come across, though more of them are asked for than fit", arguments: [true, false])
    func growingDocuments(isPull: Bool) async throws {
        let peers = try Peers()
        let (here, there) = (try peers.database(), try peers.remote)
        let source = isPull ? there : here
        try await source.inTransaction {
            for number in 0..<300 { try source.write("small \(number)", [:]) }
            for number in 0..<100 {
                try source.write("tall \(number)", ["text": .string(String(repeating: "a", count: 5_000))])
            }
        }
        let server = DistantServer(peers.server, quiet: nil)
        try await peers.replication(isPull ? .pull : .push, here, through: server) { options in
            (options.batchDocumentCount, options.batchByteCount) = (50, 40_000)
        }.run()
        #expect(try Contents(here) == Contents(there))
        // Six of the small ones, and those that are too many at once once more, a few at a time.
        if isPull { #expect((8...60).contains(server.requestCounts["_bulk_get"] ?? 0), "\(server.requestCounts)") }
    }

    @Test("A server that takes a few documents at a time gets no more") func smallServer() async throws {
        let peers = try Peers()
        let database = try peers.database()
        try await database.inTransaction {
            for number in 0..<200 { try database.write("\(number)", ["n": .number(JSONNumber(Int64(number)))]) }
        }
        let wall = InterceptingTransport(peers.server) { request, _, inner in
            guard request.target.contains("_bulk_docs"), request.body.length ?? 0 > 1_500 else {
                return try await inner.send(request)
            }
            return HTTPResponse(413)
        }
        try await peers.replication(.push, database, through: wall) { $0.batchDocumentCount = 40 }.run()
        #expect(try Contents(database) == Contents(peers.remote))
    }
}
