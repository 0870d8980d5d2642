import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords

/// Random edits, forks, deletions, merges, prunes and purges, each compared with a plain model.
///
/// A failure says its seed; `COFFER_SEED` has only that one run, `COFFER_EXHAUSTIVE` many more.
@Suite("Revisions, whatever happens to them,")
struct TreePropertyTests {
    static let seeds: [UInt64] = {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["COFFER_SEED"].flatMap(UInt64.init) { return [seed] }
        return Array(1...(environment["COFFER_EXHAUSTIVE"] == "1" ? 400 : 12))
    }()

    /// A database and what should be in it.
    private final class Copy {
        let database: Database
        var documents: [String: PathModel] = [:]
        var depth: Int

        init(_ database: Database, depth: Int) throws {
            self.database = database
            self.depth = depth
            try database.setMaxRevTreeDepth(depth)
        }

        /// Runs `body`, in a transaction that is rolled back if asked for.
        func run(rollingBack: Bool, _ body: () throws -> Void) throws {
            guard rollingBack else { return try body() }
            struct RolledBack: Error {}
            let before = (documents, depth)
            do {
                try database.inTransaction {
                    try body()
                    throw RolledBack()
                }
            } catch is RolledBack {
                (documents, depth) = before
            }
        }

        func check(_ comment: Comment) throws {
            #expect(try database.contradictions() == [], comment)
            for (id, model) in documents {
                let document = database.document(withID: id)
                let leaves = try document.leafRevisions
                #expect(leaves.map(\.revisionID.description) == model.sorted.map { $0.path[0] }, comment)
                #expect(leaves.map(\.isDeletion) == model.sorted.map(\.isDeletion), comment)
                #expect(
                    try document.conflictingRevisions.map(\.revisionID.description)
                        == model.sorted.filter { !$0.isDeletion }.map { $0.path[0] }, comment)
                #expect(try document.currentRevisionID?.description == model.sorted.first?.path[0], comment)
                #expect(try document.isDeleted == model.sorted.first?.isDeletion ?? false, comment)
                for (leaf, expected) in zip(leaves, model.sorted) {
                    #expect(try String(decoding: leaf.json, as: UTF8.self) == expected.json, comment)
                    // Where another leaf remembers more of the same line, this one has it, too.
                    let line = try leaf.history.reversed().map(\.revisionID.description)
                    #expect(line.starts(with: expected.path), comment)
                }
                let count = try database.storage.read { (tables) throws(CofferError) in
                    guard let row = try tables.document(try document.checkedID) else { return 0 }
                    return try tables.trees.revisions(ofDocument: row.number).count
                }
                #expect(count == model.known.count, comment)
            }
            #expect(
                try database.documentCount
                    == documents.values.count { $0.sorted.first.map { !$0.isDeletion } ?? false }, comment)
        }
    }

    @Test("Revisions are what a plain model says, and the same on two databases that exchange them", arguments: seeds)
    func model(seed: UInt64) throws {
        let stores = TestStores()
        var random = SeededNumbers(seed: seed)
        let copies = try ["a", "b"].map { name in
            try Copy(stores.open(name) { $0.durability = .relaxed }, depth: [1, 2, 3, 5, 20][Int(random.next() % 5)])
        }
        var foreign = 0
        for step in 0..<60 {
            let comment: Comment = "COFFER_SEED=\(seed), step \(step)"
            let copy = copies[Int(random.next() % 2)]
            let id = ["x", "y", "z"][Int(random.next() % 3)]
            let document = copy.database.document(withID: id)
            let model = copy.documents[id, default: PathModel()]
            let known = model.known.sorted()
            let some = known.isEmpty ? nil : known[Int(random.next() % UInt64(known.count))]
            let value = random.next() % 50
            try copy.run(rollingBack: random.next() % 6 == 0) {
                switch random.next() % 14 {
                case 0..<3:
                    let draft = try document.newRevision()
                    draft["n"] = .number(JSONNumber(Int64(value)))
                    try note(try draft.save(), after: model.sorted.first?.path[0], copy, comment)
                case 3..<6:
                    guard let some, let parent = try document.revision(withID: ids(some)[0]) else { return }
                    let draft = UnsavedRevision(
                        document: document, parent: parent.revisionID,
                        properties: ["f": .number(JSONNumber(Int64(value)))])
                    draft.isDeletion = value % 5 == 0
                    try note(try draft.saveAllowingConflict(), after: some, copy, comment)
                case 6:
                    guard let leaf = model.sorted.first, !leaf.isDeletion else { return }
                    try note(try document.delete(), after: leaf.path[0], copy, comment)
                case 7:
                    guard let leaf = model.sorted.last, !leaf.isDeletion,
                        let revision = try document.revision(withID: ids(leaf.path[0])[0])
                    else { return }
                    try note(try revision.deleteDocument(), after: leaf.path[0], copy, comment)
                case 8..<11:
                    // A peer's revisions on top of one that is known here, or was, or never.
                    var history = value % 4 == 0 ? [] : some.map { model.path(of: $0) } ?? []
                    for _ in 0...(value % 9) {
                        foreign += 1
                        let generation = (history.first.flatMap { Int($0.split(separator: "-")[0]) } ?? 0) + 1
                        history.insert("\(generation)-p\(foreign)", at: 0)
                    }
                    let isDeletion = value % 7 == 0
                    let result = try copy.database.putExistingRevision(
                        ["p": 1], withID: id, history: ids(history), isDeletion: isDeletion)
                    let isNew = copy.documents[id, default: PathModel()].add(
                        history, isDeletion: isDeletion, json: #"{"p":1}"#, depth: copy.depth)
                    #expect(result.wasKnown != isNew, comment)
                    let after = copy.documents[id, default: PathModel()]
                    #expect(result.isBranch == (!model.isEmpty && after.leaves.count > model.leaves.count), comment)
                    #expect(result.isCurrent == (after.sorted[0].path[0] == history[0]), comment)
                case 11:
                    let purged = Set(known.filter { _ in random.next() % 3 == 0 })
                    guard !model.isEmpty else { return }
                    let removed = try document.purge(ids(Array(purged))).map(\.description)
                    copy.documents[id]?.purge(purged)
                    #expect(Set(removed) == model.known.subtracting(copy.documents[id]?.known ?? []), comment)
                case 12:
                    copy.depth = [1, 2, 3, 4, 6, 20][Int(random.next() % 6)]
                    try copy.database.setMaxRevTreeDepth(copy.depth)
                    for id in copy.documents.keys { copy.documents[id]?.keep(copy.depth) }
                default:
                    let other = copies[copies[0] === copy ? 1 : 0]
                    try exchange(from: other, to: copy, &random)
                }
            }
            try copy.check(comment)
        }

        // Whatever the order: after that both have the same leaves, and the same winner.
        var count = 1
        while count > 0 {
            count = try exchange(from: copies[0], to: copies[1], &random)
            count += try exchange(from: copies[1], to: copies[0], &random)
        }
        for copy in copies { try copy.check("COFFER_SEED=\(seed), in the end") }
        for id in ["x", "y", "z"] {
            let leaves = try copies.map { try $0.database.document(withID: id).leafTexts }
            #expect(leaves[0] == leaves[1], "COFFER_SEED=\(seed)")
        }
        for copy in copies {
            try copy.database.compact()
            try copy.check("COFFER_SEED=\(seed), compacted")
        }

        func note(_ saved: SavedRevision, after parent: String?, _ copy: Copy, _ comment: Comment) throws {
            let id = saved.document.documentID
            var model = copy.documents[id, default: PathModel()]
            let wasKnown = model.known.contains(saved.revisionID.description)
            let isNew = model.add(
                [saved.revisionID.description] + (parent.map { model.path(of: $0) } ?? []),
                isDeletion: saved.isDeletion, json: String(decoding: try saved.json, as: UTF8.self), depth: copy.depth)
            #expect(isNew != wasKnown, comment)
            copy.documents[id] = model
        }
    }

    /// - Returns: how many revisions were new.
    @discardableResult
    private func exchange(from source: Copy, to target: Copy, _ random: inout SeededNumbers) throws -> Int {
        var order = random
        let count = try replicate(source.database, target.database) { leaves in
            let shuffled = leaves.shuffled(using: &order)
            for leaf in shuffled {
                let id = leaf.document.documentID
                guard let history = try? leaf.history.reversed().map(\.revisionID.description),
                    let json = try? leaf.json
                else { continue }
                _ = target.documents[id, default: PathModel()].add(
                    history, isDeletion: leaf.isDeletion, json: String(decoding: json, as: UTF8.self),
                    depth: target.depth)
            }
            return shuffled
        }
        random = order
        return count
    }
}
