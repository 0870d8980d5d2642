internal import Coffer
internal import Foundation

/// Documents of about 500 bytes: inserting, reading, listing and changing them with Coffer, and the same by hand.
struct DocumentComparison {
    let bench: Bench
    let documents: DocumentSet
    /// On either side.
    let cacheByteCount: Int
    let makeByHand: () throws -> HandDocuments

    // MARK: Inserting

    func inserting(isCodable: Bool = false) throws -> Comparison {
        try Comparison.run(roundCount: bench.settings.roundCount) {
            let store = try makeByHand()
            try bench.settle()
            return try measure {
                try documents.inTransactions { part in
                    try store.transaction { for document in documents.all[part] { try store.insert(document) } }
                }
            }
        } own: {
            let database = try bench.newStore(cacheByteCount: cacheByteCount)
            defer { try? database.close() }
            try bench.settle()
            return try measure {
                try documents.inTransactions { part in
                    try database.inTransaction {
                        for number in part {
                            let document = documents.all[number]
                            if isCodable {
                                try database.save(documents.people[number], withID: document.id)
                            } else {
                                try database.save(json: document.json, withID: document.id)
                            }
                        }
                    }
                }
            }
        }
    }

    // MARK: What is there

    /// Both sides with the documents in them.
    private func withBoth(
        _ body: (_ store: HandDocuments, _ database: Database) throws -> Comparison
    ) throws -> Comparison {
        let store = try makeByHand()
        let database = try bench.newStore(cacheByteCount: cacheByteCount)
        defer { try? database.close() }
        try documents.inTransactions { part in
            try store.transaction { for document in documents.all[part] { try store.insert(document) } }
            try database.inTransaction {
                for document in documents.all[part] { try database.save(json: document.json, withID: document.id) }
            }
        }
        try bench.settle()
        return try body(store, database)
    }

    private var byteCount: Int { documents.all.reduce(0) { $0 + $1.json.count } }

    /// All of them, each call its own, in an order that neither their ids have nor that in which they were inserted.
    func reading() throws -> Comparison {
        let ids = documents.all.map(\.id).sorted()
        return try withBoth { store, database in
            try Comparison.run(roundCount: bench.settings.roundCount) {
                var sum = 0
                let cost = try measure { for id in ids.shuffledInPlace { sum += try store.read(id) } }
                try expect(sum == byteCount, "other documents by hand")
                return cost
            } own: {
                var sum = 0
                let cost = try measure {
                    for id in ids.shuffledInPlace {
                        sum += try database.document(withID: id).currentRevision?.json.count ?? 0
                    }
                }
                try expect(sum == byteCount, "other documents")
                return cost
            }
        }
    }

    /// - Parameter isLent: whether bytes are lent, and not objects made.
    func listing(isLent: Bool = false) throws -> Comparison {
        try withBoth { store, database in
            try Comparison.run(roundCount: bench.settings.roundCount) {
                var sum = 0
                let cost = try measure { sum = try store.readAll() }
                try expect(sum == byteCount, "other documents by hand")
                return cost
            } own: {
                var sum = 0
                let cost = try measure {
                    if isLent {
                        try database.forEachDocument { sum += $0.json.byteCount }
                    } else {
                        try database.allDocuments().forEach { sum += try $0.json.count }
                    }
                }
                try expect(sum == byteCount, "other documents")
                return cost
            }
        }
    }

    /// - Parameters:
    ///   - count: how many of them, a multiple of 1,000.
    ///   - isShuffled: whether these are spread over all, in an order that looks random; else the first ones, in theirs.
    func updating(_ count: Int, isShuffled: Bool = false) throws -> Comparison {
        var round = 0
        let numbers = isShuffled ? Array(documents.all.indices.shuffledInPlace.prefix(count)) : Array(0..<count)
        func changed(_ place: Int) -> DocumentSet.Document {
            var document = documents.all[numbers[place]]
            document.json.replaceSubrange(
                document.json.count - 1..<document.json.count, with: Data(#","version":\#(round)}"#.utf8))
            return document
        }
        return try withBoth { store, database in
            try Comparison.run(roundCount: bench.settings.roundCount) {
                round += 1
                return try measure {
                    for start in stride(from: 0, to: count, by: 1_000) {
                        try store.transaction {
                            for number in start..<start + 1_000 { try store.update(changed(number)) }
                        }
                    }
                }
            } own: {
                round += 1
                return try measure {
                    for start in stride(from: 0, to: count, by: 1_000) {
                        try database.inTransaction {
                            for number in start..<start + 1_000 {
                                let document = changed(number)
                                let current = try database.document(withID: document.id).currentRevision?.revisionID
                                try database.save(json: document.json, withID: document.id, replacing: current)
                            }
                        }
                    }
                }
            }
        }
    }

    /// New ones, each in a transaction of its own.
    func insertingOneByOne(_ count: Int) throws -> Comparison {
        var next = 0
        func new() -> DocumentSet.Document {
            next += 1
            return DocumentSet.Document(id: "new\(next)", json: documents.all[next % documents.all.count].json)
        }
        return try withBoth { store, database in
            try Comparison.run(roundCount: bench.settings.roundCount) {
                try measure { for _ in 0..<count { try store.transaction { try store.insert(new()) } } }
            } own: {
                try measure {
                    for _ in 0..<count {
                        let document = new()
                        try database.save(json: document.json, withID: document.id)
                    }
                }
            }
        }
    }
}

extension DocumentSet {
    /// Calls `body` with the places of 1,000 documents after another.
    fileprivate func inTransactions(_ body: (Range<Int>) throws -> Void) throws {
        for start in stride(from: 0, to: all.count, by: 1_000) { try body(start..<min(start + 1_000, all.count)) }
    }
}

extension RandomAccessCollection where Index == Int {
    /// The same in an order that looks random and is the same each time: a stride that has no factor in common with the count.
    fileprivate var shuffledInPlace: some Sequence<Element> {
        let stride = 7_919
        return (0..<count).lazy.map { self[$0 * stride % count] }
    }
}
