internal import Coffer
internal import Foundation
internal import Synchronization

/// Making a view's entries, finding some of them, and watching them.
struct ViewRows {
    private let bench: Bench
    private let set: DocumentSet
    private let database: Database
    private let byHand: HandDocuments
    private let view: DatabaseView

    init(_ bench: Bench) throws {
        self.bench = bench
        set = try bench.documents(isInOrder: false)
        database = try bench.newStore(cacheByteCount: DocumentSet.cacheByteCount)
        byHand = try HandDocuments(bench, isDurable: true)
        view = database.view(named: "by rank")
        try view.setMap(version: "1", Self.map)
        for start in stride(from: 0, to: set.all.count, by: 10_000) {
            let part = set.all[start..<min(start + 10_000, set.all.count)]
            try byHand.transaction { for document in part { try byHand.insert(document) } }
            try database.inTransaction {
                for document in part { try database.save(json: document.json, withID: document.id) }
            }
        }
    }

    private static let map: DatabaseView.Map = { revision, emit in
        if let rank = try revision["rank"] { emit(rank) }
    }

    func rows() throws -> [Row] {
        defer { try? database.close() }
        return try [indexing(), ranges(), watching()]
    }

    private func indexing() throws -> Row {
        bench.say("indexing …")
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            let cost = try measure { try byHand.makeIndex() }
            try byHand.dropIndex()
            return cost
        } own: {
            try view.deleteIndex()
            try bench.settle()
            return try measure { try view.updateIndex() }
        }
        return Row(
            "view: indexing \(set.all.count) documents", comparison, atLeast: 0.5,
            explanation: """
                one entry a document, keys of 16 random characters, durable; by hand: JSONSerialization of each body, an INSERT \
                into a table with an index over its keys and one over its documents, as many documents a transaction
                """)
    }

    private func ranges() throws -> Row {
        bench.say("ranges of a view …")
        try byHand.makeIndex()
        try view.updateIndex()
        let starts = set.people.prefix(1_000).map(\.rank)
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            try measure { for start in starts { _ = try byHand.range(from: start) } }
        } own: {
            try measure {
                var options = ViewOptions()
                options.limit = 100
                for start in starts {
                    options.startKey = .string(start)
                    _ = try view.rows(options).all.count
                }
            }
        }
        return Row(
            "view: ranges of 100 rows", comparison, atLeast: 0.5,
            explanation: """
                the rows from a random key on, with keys and values; by hand: a SELECT of as many, keys and ids copied. \
                Coffer looks each time whether the view is up to date
                """)
    }

    /// What a commit and the live query's answer cost beside many rows, against the same beside few.
    private func watching() throws -> Row {
        bench.say("live queries …")
        let few = try bench.newStore(cacheByteCount: DocumentSet.cacheByteCount)
        defer { try? few.close() }
        let fewView = few.view(named: "by rank")
        try fewView.setMap(version: "1", Self.map)
        try few.inTransaction {
            for document in set.all.prefix(1_000) { try few.save(json: document.json, withID: document.id) }
        }
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            try watch(fewView)
        } own: {
            try watch(view)
        }
        return Row(
            "view: live answer among \(set.all.count)", processorTime: comparison, atMost: 1.5,
            explanation: """
                changing a document and waiting until the live query over the view says so, beside that many rows, against the \
                same beside 1,000: what one changed document costs must not depend on the view's size
                """)
    }

    private func watch(_ view: DatabaseView) throws -> Cost {
        let (database, set, count) = (view.database, set, bench.size(200, quick: 50))
        let outcome = Mutex<Result<Cost, any Error>?>(nil)
        let isOver = DispatchSemaphore(value: 0)
        Task {
            do {
                var results = view.liveRows().makeAsyncIterator()
                _ = try await results.next()
                let (clock, start) = (ContinuousClock(), processorTime())
                let began = clock.now
                for number in 0..<count {
                    try await database.inTransaction {
                        let draft = try database.document(withID: set.all[number].id).newRevision()
                        draft["age"] = (draft["age"].flatMap { Int(jsonValue: $0) } ?? 0) + 1
                        try draft.save()
                    }
                    _ = try await results.next()
                }
                let cost = Cost(time: clock.now - began, processorTime: processorTime() - start)
                outcome.withLock { $0 = .success(cost) }
            } catch {
                outcome.withLock { $0 = .failure(error) }
            }
            isOver.signal()
        }
        isOver.wait()
        guard let outcome = outcome.withLock({ $0 }) else { throw Failure("a live query told nothing") }
        return try outcome.get()
    }
}
