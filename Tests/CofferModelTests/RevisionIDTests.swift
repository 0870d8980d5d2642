import CofferSealing
import Foundation
import Testing

@testable import CofferModel

@Suite("Revision ids") struct RevisionIDTests {
    static let digest = "0f9219c8f699b156f1f86242b0c8e350"

    @Test(
        "Revision ids follow from parent and content",
        arguments: Vectors.read("revisions/revisions.json", as: [Vectors.Revision].self))
    func made(vector: Vectors.Revision) throws {
        let parent = try vector.parent.map { try #require(RevisionID($0)) }
        let body = try DocumentBody(json: Array(vector.canonical.utf8)).body
        #expect(same(text(body), vector.canonical))
        let id = try RevisionID.make(parent: parent, isDeletion: vector.isDeletion, body: body)
        #expect(id.description == vector.revision)
        #expect(RevisionID(vector.revision) == id)

        // A digest that is used again gives the same.
        var digest = try StreamingDigest(.sha256)
        for _ in 0..<2 {
            #expect(
                try RevisionID.make(parent: parent, isDeletion: vector.isDeletion, body: body, digest: &digest) == id)
        }
    }

    @Test("A bare deletion has an empty object as its body")
    func bareDeletion() throws {
        #expect(text(CanonicalBody.empty) == "{}")
        #expect(try CanonicalBody.empty == DocumentBody(JSONObject()).body)
    }

    @Test("No generation of revisions follows the last")
    func lastGeneration() throws {
        let last = try #require(RevisionID("9223372036854775807-x"))
        let error = #expect(throws: CofferError.self) {
            try RevisionID.make(parent: last, isDeletion: false, body: .empty)
        }
        #expect(error?.code == .invalidArgument)
    }

    @Test(
        "Revision ids are kept as they are",
        arguments: [
            "1-\(digest)", "2-local", "12-x", "1-é", "1-e\u{301}", "3-\(digest.uppercased())", "1--", "1-1-2", "1- ",
            "1-\u{0}",
            "9223372036854775807-\(digest)", "1-" + String(repeating: "x", count: 198), "1-\(digest)0",
            "1-\(digest.dropLast())",
        ])
    func valid(text: String) throws {
        let id = try #require(RevisionID(text))
        #expect(same(id.description, text))
        #expect(try RevisionID(parsing: text) == id)
        #expect(try RevisionID(generation: Int64(id.generation), suffix: id.suffix) == id)
        #expect(try JSONDecoder().decode([RevisionID].self, from: JSONEncoder().encode([id])) == [id])
    }

    @Test(
        "A text that is no revision id is refused",
        arguments: [
            "", "1", "1-", "-x", "0-x", "00-x", "01-x", "+1-x", "-1-x", " 1-x", "1 -x", "x-1", "1.0-x", "1e1-x", "١-x",
            "9223372036854775808-x", "99999999999999999999-x", "1-" + String(repeating: "x", count: 199),
            "1-" + String(repeating: "é", count: 100),
        ])
    func invalid(text: String) {
        #expect(RevisionID(text) == nil)
        let error = #expect(throws: CofferError.self) { try RevisionID(parsing: text) }
        #expect(error?.status == 400)
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([RevisionID].self, from: JSONEncoder().encode([text]))
        }
    }

    @Test("A revision id of Coffer's own is stored as 16 bytes, another as text")
    func stored() throws {
        let own = try #require(RevisionID("1-\(Self.digest)"))
        guard case .digest(let digest) = own.suffix else { throw CofferError(.damaged) }
        #expect(digest.bytes.map { String($0, radix: 16) }.joined() == "f9219c8f699b156f1f86242b0c8e350")
        #expect(RevisionDigest(bytes: digest.bytes.span) == digest)
        for count in [0, 15, 17, 32] {
            #expect(RevisionDigest(bytes: [UInt8](repeating: 1, count: count).span) == nil)
        }
        let other = try #require(RevisionID("1-\(Self.digest.uppercased())"))
        #expect(other.suffix == .text(Self.digest.uppercased()))
        #expect(other != own)
    }

    @Test("Stored parts that no revision id has are damage")
    func damaged() {
        for (generation, suffix) in [
            (0, .text("x")), (-1, .text("x")), (1, .text("")), (1, .text(Self.digest)),
            (1, .text(String(repeating: "x", count: 199))),
        ] as [(Int64, RevisionID.Suffix)] {
            let error = #expect(throws: CofferError.self) { try RevisionID(generation: generation, suffix: suffix) }
            #expect(error?.code == .damaged)
        }
    }

    @Test("Revision ids sort by generation, then by bytes")
    func order() throws {
        let sorted = [
            "1-0", "1-00000000000000000000000000000000", "1-0f9219c8f699b156f1f86242b0c8e350",
            "1-A0000000000000000000000000000000", "1-\(Self.digest.replacing("0f", with: "a0"))",
            "1-a1", "1-b", "1-e\u{301}", "1-\u{E9}", "2-0", "10-0",
        ]
        let ids = try sorted.map { try #require(RevisionID($0)) }
        for (left, a) in ids.enumerated() {
            for (right, b) in ids.enumerated() {
                #expect((a < b) == (left < right))
                #expect((a == b) == (left == right))
            }
        }
        #expect(ids.shuffled().sorted().map(\.description) == sorted)
    }

    @Test("A live leaf wins over a deleted one, then the one that sorts last")
    func winner() throws {
        let (low, high) = (try #require(RevisionID("1-f")), try #require(RevisionID("2-a")))
        #expect(RevisionID.isWinner((high, false), over: (low, false)))
        #expect(!RevisionID.isWinner((low, false), over: (high, false)))
        #expect(RevisionID.isWinner((low, false), over: (high, true)))
        #expect(!RevisionID.isWinner((high, true), over: (low, false)))
        #expect(RevisionID.isWinner((high, true), over: (low, true)))
        #expect(!RevisionID.isWinner((high, false), over: (high, false)))
    }
}
