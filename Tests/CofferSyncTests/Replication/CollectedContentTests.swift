import Coffer
import CofferModel
import Foundation
import Testing

@testable import CofferSync

@Suite("Many contents in one request") struct CollectedContentTests {
    @Test("Many small contents come together in a pull, and each is checked", arguments: [false, true])
    func together(lies: Bool) async throws {
        let peers = try Peers()
        let (database, remote) = (try peers.database(), try peers.remote)
        for number in 0..<40 {
            try remote.write("d-\(number)", [:], attachment: ("a", Data("content \(number)".utf8)))
        }
        try remote.write("large", [:], attachment: ("a", Data(repeating: 1, count: 100_000)))
        let wire = RecordingTransport(
            InterceptingTransport(peers.server) { request, _, inner in
                let response = try await inner.send(request)
                guard lies, request.target.contains("_bulk_get?attachments") else { return response }
                let text = String(decoding: try await response.body.stream.collect(upTo: 1 << 24), as: UTF8.self)
                let (right, wrong) = (Data("content 7".utf8), Data("content 8".utf8))
                return HTTPResponse(
                    200, fields: response.fields,
                    body: .bytes(
                        Array(text.replacing(right.base64EncodedString(), with: wrong.base64EncodedString()).utf8)))
            })
        try await peers.replication(.pull, database, through: wire).run()
        #expect(try Contents(database) == Contents(remote))
        // The large one, and the one that was another than it should be.
        #expect(wire.count("/a?rev=") == (lies ? 2 : 1), "\(wire.all)")
        #expect(wire.count("_bulk_get?attachments=true") == 1)
    }

    @Test("A server that puts no contents into JSON is not asked for it again and again") func notTogether()
        async throws
    {
        let peers = try Peers()
        let (database, remote) = (try peers.database(), try peers.remote)
        for number in 0..<40 { try remote.write("d-\(number)", [:], attachment: ("a", Data("\(number)".utf8))) }
        let wire = RecordingTransport(
            InterceptingTransport(peers.server) { request, _, inner in
                var request = request
                request.target = request.target.replacing("_bulk_get?attachments=true", with: "_bulk_get")
                return try await inner.send(request)
            })
        try await peers.replication(.pull, database, through: wire) { $0.batchDocumentCount = 10 }.run()
        #expect(try Contents(database) == Contents(remote))
        #expect(wire.count("_bulk_get?attachments=true") == 1)
    }
}
