internal import Coffer
internal import Foundation

/// What a revision costs where there are many, against where there are few: near 1 if costs do not grow.
struct Growth {
    private let bench: Bench
    /// Operations in one measured transaction.
    private let count: Int

    init(_ bench: Bench) {
        self.bench = bench
        count = bench.size(1_000, quick: 200)
    }

    func rows() throws -> [Row] {
        let many = bench.size(2_000, quick: 500)
        let ofOneDocument = [
            try generations(many, depth: 20, "forgotten beyond 20"),
            try generations(many, depth: 1_000_000, "all kept"),
            try leaves(bench.size(10_000, quick: 2_000)),
        ]
        return try ofOneDocument + documents(bench.size(1_000_000, quick: 50_000))
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

    private func documents(_ many: Int) throws -> [Row] {
        let few = try bench.newStore()
        let store = try bench.newStore()
        for (database, count) in [(few, 1_000), (store, many)] {
            for start in stride(from: 0, to: count, by: 10_000) {
                try database.inTransaction {
                    for number in start..<min(start + 10_000, count) {
                        try database.save(json: Data(#"{"number":\#(number)}"#.utf8))
                    }
                }
            }
        }
        func work(_ database: Database) throws {
            for number in 0..<count {
                let saved = try database.save(json: Data(#"{"number":\#(number)}"#.utf8))
                let next = Data(#"{"number":\#(-number)}"#.utf8)
                try database.save(json: next, withID: saved.document.documentID, replacing: saved.revisionID)
            }
        }
        // Before there are more of them.
        let listed = min(many, 100_000)
        let listing = try row(
            "growth: listing \(many) documents", atMost: 3,
            "reading \(listed) documents with their bodies in the order of their ids, against a store with 1,000, as often "
                + "as it takes; the larger set does not fit in the cache",
            few: { for _ in 0..<listed / 1_000 { try list(few, 1_000) } }, many: { try list(store, listed) })
        let adding = try row(
            "growth: \(many) documents", atMost: 3,
            "adding a document with a random id and saving its next revision, against a store with 1,000 documents; "
                + "the larger set does not fit in the cache",
            few: { try few.inTransaction { try work(few) } }, many: { try store.inTransaction { try work(store) } })
        return [adding, listing]
    }

    // MARK: Work

    private func list(_ database: Database, _ count: Int) throws {
        var options = AllDocumentsOptions()
        options.limit = count
        var sum = 0
        try database.allDocuments(options).forEach { sum += try $0["number"] == nil ? 0 : 1 }
        try expect(sum == count, "\(sum) of \(count) documents were listed")
    }

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
        return try row(name, atMost: 1.5, explanation, few: { try run("few", few) }, many: { try run("many", many) })
    }

    /// In processor time: nothing here waits for the disk, and other programs hardly disturb it.
    private func row(
        _ name: String, atMost most: Double, _ explanation: String, few: () throws -> Void, many: () throws -> Void
    ) throws -> Row {
        bench.say("\(name) …")
        let comparison = try Comparison.run(
            roundCount: bench.settings.roundCount, byHand: { try measure(few) }, own: { try measure(many) })
        let ratios = zip(comparison.own, comparison.byHand).map { $0.processorTime / $1.processorTime }
        return Row(
            name, value: ratios.median, unit: "× the CPU", spread: [ratios.min() ?? 0, ratios.max() ?? 0],
            target: .atMost(most), explanation: explanation)
    }
}
