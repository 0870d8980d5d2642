import Coffer
import CofferModel
import Foundation
import Testing

@testable import CofferSync

/// How often a replication waits for a server that is far away: counted, and not measured.
@Suite("Servers that are far away", .serialized) struct LatencyTests {
    /// Without optimization, 10,000 take minutes.
    private static let documentCount = ProcessInfo.processInfo.environment["COFFER_EXHAUSTIVE"] == "1" ? 10_000 : 6_000

    @Test("Thousands of documents wait for few round trips", .timeLimit(.minutes(30)), arguments: [true, false])
    func documents(isPull: Bool) async throws {
        let text = JSONValue.string(String(repeating: "text ", count: 90))
        let count = Self.documentCount
        let server = try await exchange(count: count, isPull: isPull) { database, number in
            try database.write("document \(number)", ["n": .number(JSONNumber(Int64(number))), "text": text])
        }
        // 1 to find the database and 1 for the checkpoint, a page of changes for each thousand and an empty one, the last of which
        // has revisions to be fetched or sent, and the checkpoint at the end. Each asked for after the one before, it would be
        // several for each thousand.
        #expect(server.roundTripCount <= 14 + count / 1_000, "\(server.requestCounts)")
        if isPull {
            #expect(server.requestCounts["_changes"] == count / 1_000 + 1)
            #expect(server.requestCounts["_bulk_get"] ?? 0 <= 4 + count / 500)
            #expect(server.mostUnderWay["_bulk_get"] ?? 0 > 2)
        } else {
            #expect(server.requestCounts["_revs_diff"] == count / 500)
            #expect(server.requestCounts["_bulk_docs"] == count / 500)
            #expect(server.mostUnderWay["_revs_diff"] ?? 0 > 2)
            #expect(server.mostUnderWay["_bulk_docs"] ?? 0 > 2)
        }
    }

    @Test("Small contents wait for few round trips", .timeLimit(.minutes(30)), arguments: [true, false])
    func smallContents(isPull: Bool) async throws {
        let server = try await exchange(count: 300, isPull: isPull) { try $0.write($1, contentByteCount: 10_000) }
        #expect(server.roundTripCount <= 14, "\(server.requestCounts)")
        #expect(server.requestCounts["content"] == nil && server.requestCounts["document"] == nil)
    }

    @Test("Contents with requests of their own go together", .timeLimit(.minutes(30)), arguments: [true, false])
    func ownRequests(isPull: Bool) async throws {
        let server = try await exchange(count: 200, isPull: isPull) { try $0.write($1, contentByteCount: 20_000) }
        let kind = isPull ? "content" : "document"
        #expect(server.requestCounts[kind] == 200)
        #expect((5...16).contains(server.mostUnderWay[kind] ?? 0))
        #expect(server.roundTripCount <= 45, "\(server.requestCounts)")
    }

    /// Exchanges documents with a server that is here, and with one that is far away.
    ///
    /// - Returns: the one that is far away.
    private func exchange(
        count: Int, isPull: Bool, _ write: @escaping @Sendable (Database, Int) throws -> Void
    ) async throws -> DistantServer {
        var quiet: Duration?
        while true {
            let peers = try Peers()
            let (here, there) = (try peers.database(), try peers.remote)
            let source = isPull ? there : here
            for start in stride(from: 0, to: count, by: 500) {
                try await source.inTransaction {
                    for number in start..<min(count, start + 500) { try write(source, number) }
                }
            }
            let server = DistantServer(peers.server, quiet: quiet)
            let replication = try peers.replication(isPull ? .pull : .push, here, through: server)
            try await replication.run()
            #expect(replication.failures.isEmpty)
            #expect(try here.documentCount == count && there.documentCount == count)
            if quiet != nil { return server }
            // Longer than this machine needs for anything between two requests.
            quiet = server.longestGap * 2 + .milliseconds(50)
        }
    }
}

extension Database {
    fileprivate func write(_ number: Int, contentByteCount: Int) throws {
        let content = Data((0..<contentByteCount).map { UInt8(truncatingIfNeeded: ($0 &* number) ^ ($0 >> 3)) })
        try write("document \(number)", ["n": .number(JSONNumber(Int64(number)))], attachment: ("a", content))
    }
}
