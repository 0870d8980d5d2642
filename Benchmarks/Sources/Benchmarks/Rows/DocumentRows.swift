internal import Coffer
internal import Foundation

/// Documents of about 500 bytes: inserting, reading, listing and changing them, against the same rows, indexes and digests by
/// hand.
struct DocumentRows {
    private let bench: Bench
    private let random, ordered: DocumentSet

    init(_ bench: Bench) throws {
        self.bench = bench
        random = try bench.documents(isInOrder: false)
        ordered = try bench.documents(isInOrder: true)
    }

    private static let byHand = """
        by hand: the same tables, index, SHA-256 of each revision and transactions, statements prepared once, no JSON parsing
        """

    // MARK: Inserting

    func inserting() throws -> [Row] {
        try [
            insert(random, "document insert, JSON", atLeast: 0.75, "JSON bytes, 22 random characters as ids"),
            insert(ordered, "document insert, JSON, in order", atLeast: 0.7, "JSON bytes, ids in order"),
            insert(random, "document insert, Codable", atLeast: 0.6, isCodable: true, "Codable values, random ids"),
            insert(
                ordered, "document insert, Codable, in order", atLeast: 0.5, isCodable: true,
                "Codable values, ids in order"),
        ]
    }

    private func insert(
        _ set: DocumentSet, _ name: String, atLeast least: Double, isCodable: Bool = false, _ what: String
    ) throws -> Row {
        bench.say("\(name) …")
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            let store = try HandDocuments(bench, isDurable: true)
            try bench.settle()
            return try measure {
                try set.inTransactions { part in
                    try store.transaction { for document in set.all[part] { try store.insert(document) } }
                }
            }
        } own: {
            let database = try bench.newStore(cacheByteCount: DocumentSet.cacheByteCount)
            defer { try? database.close() }
            try bench.settle()
            return try measure {
                try set.inTransactions { part in
                    try database.inTransaction {
                        for number in part {
                            if isCodable {
                                try database.save(set.people[number], withID: set.all[number].id)
                            } else {
                                try database.save(json: set.all[number].json, withID: set.all[number].id)
                            }
                        }
                    }
                }
            }
        }
        return Row(
            name, comparison, atLeast: least,
            explanation: "\(set.all.count), 1,000 a transaction, \(what); \(Self.byHand)")
    }

    // MARK: What is there

    /// Both sides with the documents in them.
    private func filled(_ set: DocumentSet) throws -> (HandDocuments, Database) {
        let store = try HandDocuments(bench, isDurable: true)
        let database = try bench.newStore(cacheByteCount: DocumentSet.cacheByteCount)
        try set.inTransactions { part in
            try store.transaction { for document in set.all[part] { try store.insert(document) } }
            try database.inTransaction {
                for document in set.all[part] { try database.save(json: document.json, withID: document.id) }
            }
        }
        try bench.settle()
        return (store, database)
    }

    func reading() throws -> Row {
        bench.say("reading documents …")
        let (store, database) = try filled(random)
        defer { try? database.close() }
        // The set is in random order already; read in another one.
        let ids = random.all.map(\.id).sorted()
        let byteCount = random.all.reduce(0) { $0 + $1.json.count }
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
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
        return Row(
            "document read at random", comparison, atLeast: 0.75,
            explanation: """
                \(ids.count) documents, JSON bytes, each call its own, all in the cache; by hand: one SELECT with a join, the body \
                copied
                """)
    }

    func listing() throws -> Row {
        bench.say("listing documents …")
        let (store, database) = try filled(random)
        defer { try? database.close() }
        let byteCount = random.all.reduce(0) { $0 + $1.json.count }
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            var sum = 0
            let cost = try measure { sum = try store.readAll() }
            try expect(sum == byteCount, "other documents by hand")
            return cost
        } own: {
            var sum = 0
            let cost = try measure { try database.allDocuments().forEach { sum += try $0.json.count } }
            try expect(sum == byteCount, "other documents")
            return cost
        }
        return Row(
            "document all, in order of ids", comparison, atLeast: 0.5,
            explanation: "\(random.all.count) documents with their JSON; by hand: one SELECT with a join, bodies copied"
        )
    }

    func updating() throws -> Row {
        bench.say("updating documents …")
        let (store, database) = try filled(random)
        defer { try? database.close() }
        let count = bench.size(10_000, quick: 2_000)
        var round = 0
        func changed(_ number: Int) -> DocumentSet.Document {
            var document = random.all[number]
            document.json.replaceSubrange(
                document.json.count - 1..<document.json.count, with: Data(#","version":\#(round)}"#.utf8))
            return document
        }
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            round += 1
            return try measure {
                for start in stride(from: 0, to: count, by: 1_000) {
                    try store.transaction { for number in start..<start + 1_000 { try store.update(changed(number)) } }
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
        return Row(
            "document update", comparison, atLeast: 0.6,
            explanation: """
                \(count) of \(random.all.count), 1,000 a transaction, the current revision read before each save; by hand: the row \
                of the revision read, then the next one inserted
                """)
    }

    /// One document a transaction, durable: by hand with a log that is written over again and again, as SQLite does by itself,
    /// and with one that was emptied, as Coffer does, so that its file grows with each transaction.
    func singles() throws -> Row {
        bench.say("one document a transaction …")
        let (store, database) = try filled(ordered)
        defer { try? database.close() }
        let count = bench.size(2_000, quick: 200)
        var next = 0
        func new() -> DocumentSet.Document {
            next += 1
            return DocumentSet.Document(id: "new\(next)", json: ordered.all[next % ordered.all.count].json)
        }
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            try measure { for _ in 0..<count { try store.transaction { try store.insert(new()) } } }
        } own: {
            try measure {
                for _ in 0..<count {
                    let document = new()
                    try database.save(json: document.json, withID: document.id)
                }
            }
        }
        return Row(
            "document single, one a transaction", comparison, atLeast: 0.85, isMeaningful: bench.machine.isFsyncReal,
            explanation: """
                \(count) new documents, each durable when its call returns; \(Self.byHand). \
                Meant for disks whose fsync takes 100 µs or more: here \(Int(bench.machine.fsyncMicroseconds)) µs
                """)
    }
}

extension DocumentSet {
    /// Calls `body` with the places of 1,000 documents after another.
    fileprivate func inTransactions(_ body: (Range<Int>) throws -> Void) throws {
        for start in stride(from: 0, to: all.count, by: 1_000) { try body(start..<min(start + 1_000, all.count)) }
    }
}

extension [String] {
    /// The same in an order that looks random and is the same each time: a stride that has no factor in common with the count.
    fileprivate var shuffledInPlace: some Sequence<String> {
        let stride = 7_919
        return (0..<count).lazy.map { self[$0 * stride % count] }
    }
}
