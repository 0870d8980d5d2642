import CofferSealing
import TestSupport
import Testing

@testable import CofferModel

func revisionIDs(_ texts: String...) throws -> [RevisionID] { try texts.map { try #require(RevisionID($0)) } }

@Suite("A revision tree")
struct RevisionTreeTests {
    private func history(_ texts: String...) throws -> RevisionHistory {
        try RevisionHistory(newestFirst: texts.map { try #require(RevisionID($0)) })
    }

    private func texts(_ revisions: [RevisionTree.Revision]) -> [String] { revisions.map(\.id.description) }

    @Test("A revision tree takes a revision with its history where its nearest known ancestor is")
    func insert() throws {
        var tree = RevisionTree()
        #expect(try tree.insert(history("3-c", "2-b", "1-a")) == .extended)
        #expect(tree.count == 3)
        #expect(try tree.insert(history("3-c", "2-b", "1-a")) == .known)
        #expect(try tree.insert(history("2-b", "1-a")) == .known, "an ancestor is known, too")
        #expect(try tree.insert(history("5-e", "4-d", "3-c", "2-b", "1-a")) == .extended)
        #expect(try tree.insert(history("4-x", "3-x", "2-b", "1-other")) == .branched, "what is older does not matter")
        #expect(texts(tree.leaves) == ["5-e", "4-x"])
        #expect(texts(tree.history(of: try #require(RevisionID("4-x")))) == ["4-x", "3-x", "2-b", "1-a"])
        #expect(try tree.insert(history("1-alone")) == .branched)
        #expect(texts(tree.leaves) == ["5-e", "4-x", "1-alone"])
        #expect(tree.count == 8)
    }

    @Test("A revision tree has a winner: live before deleted, then the generation, then the bytes of the id")
    func winner() throws {
        var tree = RevisionTree()
        #expect(tree.winner == nil)
        _ = try tree.insert(history("9-z", "8-y"), isDeletion: true)
        #expect(tree.winner?.id.description == "9-z")
        #expect(tree.conflicts.isEmpty)
        _ = try tree.insert(history("1-a"))
        #expect(tree.winner?.id.description == "1-a")
        _ = try tree.insert(history("1-b"))
        _ = try tree.insert(history("1-é"))
        _ = try tree.insert(history("1-e\u{301}"))
        _ = try tree.insert(history("1-B"))
        #expect(texts(tree.leaves) == ["1-é", "1-e\u{301}", "1-b", "1-a", "1-B", "9-z"])
        #expect(texts(tree.conflicts) == ["1-é", "1-e\u{301}", "1-b", "1-a", "1-B"])
        _ = try tree.insert(history("10-A"))
        #expect(tree.winner?.id.description == "10-A", "generations are numbers, and no text")
    }

    @Test(
        "A revision tree forgets what is too far from every leaf, and keeps what one of them is near to",
        arguments: 1...7)
    func prune(depth: Int) throws {
        var tree = RevisionTree()
        _ = try tree.insert(history("6-f", "5-e", "4-d", "3-c", "2-b", "1-a"))
        _ = try tree.insert(history("3-x", "2-b"))
        let removed = Set(texts(tree.prune(to: depth)))
        let kept = Set(["6-f", "5-e", "4-d", "3-c", "2-b", "1-a"].prefix(depth) + ["3-x", "2-b", "1-a"].prefix(depth))
        #expect(removed == Set(["6-f", "5-e", "4-d", "3-c", "2-b", "1-a", "3-x"]).subtracting(kept))
        #expect(texts(tree.leaves) == ["6-f", "3-x"])
        #expect(tree.prune(to: depth).isEmpty, "twice is once")
    }

    @Test("A revision tree loses a purged leaf with the ancestors that no other has")
    func purge() throws {
        var tree = RevisionTree()
        _ = try tree.insert(history("4-d", "3-c", "2-b", "1-a"))
        _ = try tree.insert(history("3-x", "2-b"))
        #expect(tree.purge(try revisionIDs("2-b", "9-no")).isEmpty, "what others follow stays")
        #expect(texts(tree.purge(try revisionIDs("4-d"))) == ["4-d", "3-c"])
        #expect(texts(tree.leaves) == ["3-x"])
        #expect(try tree.insert(history("4-d", "3-c", "2-b")) == .branched, "it may come back")
        #expect(texts(tree.purge(try revisionIDs("4-d", "3-x"))) == ["4-d", "3-x", "3-c", "2-b", "1-a"])
        #expect(tree.isEmpty)
    }

    @Test("A revision tree takes no revision twice, and none after one of another generation")
    func add() throws {
        var tree = RevisionTree()
        let ids = try revisionIDs("2-b", "1-a", "3-c", "9223372036854775807-z")
        try tree.add(ids[0], parent: ids[1])
        #expect(tree[ids[0]]?.parent == nil, "the parent isn't known")
        for (id, parent) in [(ids[0], ids[1]), (ids[2], ids[2]), (ids[2], ids[3]), (ids[1], ids[0])] {
            let error = #expect(throws: CofferError.self) { try tree.add(id, parent: parent) }
            #expect(error?.code == .invalidArgument)
        }
        #expect(tree.count == 1)
    }

    @Test(
        "A revision tree is what a plain model says it is, whatever happens to it",
        arguments: 1...40 as ClosedRange<UInt64>)
    func reference(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        var tree = RevisionTree()
        var model = ReferenceTree()
        let depth = 1 + random.below(6)
        // All that was ever made, here or elsewhere, with the whole histories.
        var known: [[String]] = []
        for step in 0..<120 {
            let comment = Comment(rawValue: "seed \(seed), step \(step), depth \(depth)")
            switch random.below(12) {
            case 0:
                let ids = Set(model.entries.keys.sorted().filter { _ in random.isOne(in: 4) })
                let removed = tree.purge(ids.compactMap { RevisionID($0) })
                #expect(Set(texts(removed)) == model.purge(ids), comment)
            case 1 where !known.isEmpty:
                // Again, or again after it was forgotten.
                try insert(known[random.below(known.count)], isDeletion: false)
            default:
                var history = known.isEmpty || random.isOne(in: 8) ? [] : known[random.below(known.count)]
                history.removeFirst(random.below(history.count + 1))
                for _ in 0...random.below(3) {
                    let generation = (history.first.map(ReferenceTree.generation) ?? 0) + 1
                    history.insert("\(generation)-\(String(random.below(40), radix: 36))", at: 0)
                }
                known.append(history)
                // Others may have forgotten the oldest.
                try insert(Array(history.prefix(1 + random.below(history.count))), isDeletion: random.isOne(in: 4))
            }
            #expect(Set(model.entries.keys) == Set(allIDs()), comment)
            #expect(texts(tree.leaves) == model.leaves, comment)
            #expect(tree.winner?.id.description == model.leaves.first, comment)
            for leaf in model.leaves {
                let id = try #require(RevisionID(leaf))
                #expect(texts(tree.history(of: id)) == model.line(of: leaf), comment)
            }
        }

        func allIDs() -> [String] {
            tree.leaves.flatMap { texts(tree.history(of: $0.id)) }
        }

        func insert(_ history: [String], isDeletion: Bool) throws {
            let ids = try RevisionHistory(newestFirst: history.map { try #require(RevisionID($0)) })
            let before = tree.leaves.count
            let result = try tree.insert(ids, isDeletion: isDeletion, depth: depth)
            #expect((result != .known) == model.insert(history, isDeletion: isDeletion, depth: depth))
            #expect(tree.leaves.count - before == (result == .branched || before == 0 ? 1 : 0))
        }
    }
}
