import CofferSealing
import Testing

@testable import CofferModel

@Suite("A revision's history")
struct RevisionHistoryTests {
    @Test("A revision's history goes down by one generation from each id to the next")
    func valid() throws {
        for ids in [["1-a"], ["3-c", "2-b", "1-a"], ["9-c", "8-b"], ["2-a", "1-a"]] {
            let history = try RevisionHistory(newestFirst: ids.map { try #require(RevisionID($0)) })
            #expect(history.ids.map(\.description) == ids)
            #expect(history.newest.description == ids[0])
        }
        let last = try revisionIDs("9223372036854775807-z", "9223372036854775806-y")
        #expect(try RevisionHistory(newestFirst: last).ids == last)
    }

    @Test(
        "A revision's history is refused where generations stay, rise or leave one out, and where there is nothing",
        arguments: [
            [], ["1-a", "1-b"], ["1-a", "1-a"], ["2-b", "3-c"], ["3-c", "1-a"], ["3-c", "2-b", "3-c"],
            ["1-a", "9223372036854775807-z"], ["9223372036854775807-z", "9223372036854775807-z"],
        ])
    func invalid(ids: [String]) throws {
        let ids = try ids.map { try #require(RevisionID($0)) }
        let error = #expect(throws: CofferError.self) { try RevisionHistory(newestFirst: ids) }
        #expect(error?.code == .invalidArgument)
    }

    @Test("A revision's history of more than 100,000 revisions is refused")
    func limit() throws {
        let ids = (1...RevisionHistory.limit + 1).reversed().map { RevisionID(unchecked: $0, .text("x")) }
        #expect(try RevisionHistory(newestFirst: Array(ids.dropFirst())).ids.count == RevisionHistory.limit)
        let error = #expect(throws: CofferError.self) { try RevisionHistory(newestFirst: ids) }
        #expect(error?.code == .invalidArgument)
    }

    @Test("A revision's history is read as CouchDB writes it")
    func json() throws {
        let history = try RevisionHistory(json: ["start": 3, "ids": ["ccc", "bbb", "aaa"]])
        #expect(history.ids == (try revisionIDs("3-ccc", "2-bbb", "1-aaa")))
        #expect(try RevisionHistory(json: ["start": 7, "ids": ["x"]]).ids == (try revisionIDs("7-x")))
    }

    @Test("A revision's history in JSON is refused where it names no revisions")
    func invalidJSON() throws {
        let objects: [JSONObject] = [
            [:], ["start": 1], ["ids": ["a"]], ["start": 1, "ids": []], ["start": 0, "ids": ["a"]],
            ["start": 1, "ids": ["a", "b"]], ["start": 2, "ids": ["a", 1]], ["start": 2, "ids": ["a", ""]],
            ["start": "2", "ids": ["a"]], ["start": 1.5, "ids": ["a"]], ["start": -1, "ids": ["a"]],
            ["start": 1, "ids": "a"], ["start": .number(JSONNumber(Int64.min)), "ids": ["a"]],
            ["start": 1, "ids": [.string(String(repeating: "x", count: 199))]],
        ]
        for object in objects {
            let error = #expect(throws: CofferError.self, "\(object)") { try RevisionHistory(json: object) }
            #expect(error?.code == .invalidJSON)
        }
    }

    @Test("A revision's history says which ancestors are missing, and no more of them than are kept")
    func missing() throws {
        let history = try RevisionHistory(newestFirst: revisionIDs("5-e", "4-d", "3-c", "2-b", "1-a"))
        func missing(_ distance: Int?, _ depth: Int) -> [String] {
            history.missingAncestors(toKnown: distance, depth: depth).map(\.description)
        }
        #expect(missing(nil, 20) == ["1-a", "2-b", "3-c", "4-d"])
        #expect(missing(nil, 3) == ["3-c", "4-d"])
        #expect(missing(nil, 1) == [])
        #expect(missing(1, 20) == [])
        #expect(missing(3, 20) == ["3-c", "4-d"])
        #expect(missing(3, 2) == ["4-d"])
        #expect(missing(3, .max) == ["3-c", "4-d"])
        #expect(history.distance { $0.generation <= 3 } == 2)
        #expect(history.distance { _ in true } == 0)
        #expect(history.distance { _ in false } == nil)
    }

    @Test("Ranks of leaves sort as the leaves win, and say what they are ranks of")
    func ranks() throws {
        let ids = try revisionIDs(
            "1-a", "1-b", "1-é", "1-ab", "2-0", "255-x", "256-x", "65536-x", "9223372036854775807-x",
            "1-0f9219c8f699b156f1f86242b0c8e350", "1-0F", "1-\u{0}", "1-" + String(repeating: "z", count: 198))
        let leaves = ids.flatMap { [($0, true), ($0, false)] }
        for (id, isDeletion) in leaves {
            let rank = LeafRank(id, isDeletion: isDeletion)
            #expect(rank.id == id)
            #expect(rank.isDeletion == isDeletion)
            #expect(LeafRank(bytes: rank.bytes) == rank)
            #expect(rank.bytes.count <= 207)
            let lowest = LeafRank.lowest(isDeletion: isDeletion, generation: id.generation)
            #expect(lowest.lexicographicallyPrecedes(rank.bytes))
            for (other, isOtherDeletion) in leaves {
                let wins = RevisionID.isWinner((id, isDeletion), over: (other, isOtherDeletion))
                let otherRank = LeafRank(other, isDeletion: isOtherDeletion)
                #expect(otherRank.bytes.lexicographicallyPrecedes(rank.bytes) == (wins && rank != otherRank))
            }
        }
        let whole = LeafRank(ids[0], isDeletion: false).bytes
        for bytes in [[], Array(whole.dropLast()), [2] + whole.dropFirst(), [1, 0x80] + whole.dropFirst(2)] {
            #expect(LeafRank(bytes: bytes) == nil)
        }
        #expect(LeafRank(bytes: [1, 0, 0, 0, 0, 0, 0, 0, 0, 65]) == nil, "there is no generation 0")
    }
}
