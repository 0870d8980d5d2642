internal import Coffer
internal import Foundation

/// What a revision costs where its document has many, against where it has few: near 1 if costs do not grow.
struct RevisionGrowth {
    private let bench: Bench
    /// Operations in one measured transaction.
    private let count: Int

    init(_ bench: Bench) {
        self.bench = bench
        count = bench.size(1_000, quick: 200)
    }

    func rows() throws -> [Row] {
        let many = bench.size(2_000, quick: 500)
        return [
            try generations(many, depth: 20, "forgotten beyond 20"),
            try generations(many, depth: 1_000_000, "all kept"),
            try leaves(bench.size(10_000, quick: 2_000)),
        ]
    }

    // MARK: Rows

    private func generations(_ many: Int, depth: Int, _ what: String) throws -> Row {
        let database = try bench.newStore()
        try database.setMaxRevTreeDepth(depth)
        try database.inTransaction {
            for id in ["few", "many"] {
                let draft = try database.document(withID: id).newRevision()
                for number in 0..<(id == "few" ? 30 : many) {
                    draft["n"] = .number(JSONNumber(number))
                    try draft.save()
                }
            }
        }
        return try row(
            "growth: \(many) generations, \(what)", database,
            "saving the next revision of a document with that many, against one with 30", few: save, many: save)
    }

    private func leaves(_ many: Int) throws -> Row {
        let database = try bench.newStore()
        for (id, count) in [("few", 100), ("many", many)] {
            let root = try database.document(withID: id).newRevision().save()
            try database.inTransaction {
                for number in 0..<count { try branch(root, number) }
            }
        }
        return try row(
            "growth: \(many) leaves of a document", database,
            "adding a branch, reading the winner and saving its next revision, against a document with 100 leaves: "
                + "more than 64 are never looked at",
            few: saveAndBranch, many: saveAndBranch)
    }

    // MARK: Work

    private func save(_ document: Document) throws {
        let draft = try document.newRevision()
        for number in 0..<count {
            draft["m"] = .number(JSONNumber(number))
            try draft.save()
        }
    }

    private func saveAndBranch(_ document: Document) throws {
        let root = try document.revisionHistory[0]
        for _ in 0..<(count / 4) {
            try branch(root, Int.random(in: 0..<Int.max))
            let draft = try document.newRevision()
            draft["m"] = .number(JSONNumber(Int.random(in: 0..<Int.max)))
            try draft.save()
        }
    }

    private func branch(_ root: SavedRevision, _ number: Int) throws {
        let draft = try root.createRevision()
        draft["branch"] = .number(JSONNumber(number))
        try draft.saveAllowingConflict()
    }

    /// Compares work on the documents `few` and `many` of one store. It is rolled back, so that each round finds the same.
    private func row(
        _ name: String, _ database: Database, _ explanation: String, few: (Document) throws -> Void,
        many: (Document) throws -> Void
    ) throws -> Row {
        struct Measured: Error {}
        func run(_ id: String, _ work: (Document) throws -> Void) throws {
            do {
                try database.inTransaction {
                    try work(database.document(withID: id))
                    throw Measured()
                }
            } catch is Measured {}
        }
        bench.say("\(name) …")
        // In processor time: nothing here waits for the disk, and other programs hardly disturb it.
        let comparison = try Comparison.run(
            roundCount: bench.settings.roundCount, byHand: { try measure { try run("few", few) } },
            own: { try measure { try run("many", many) } })
        return Row(name, processorTime: comparison, atMost: 1.5, explanation: explanation)
    }
}
