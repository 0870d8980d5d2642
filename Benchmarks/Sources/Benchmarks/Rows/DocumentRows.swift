/// Documents against the same rows, indexes and digests by hand.
struct DocumentRows {
    private let bench: Bench
    private let random, ordered: DocumentComparison

    init(_ bench: Bench) throws {
        self.bench = bench
        func comparison(isInOrder: Bool) throws -> DocumentComparison {
            DocumentComparison(
                bench: bench, documents: try bench.documents(isInOrder: isInOrder),
                cacheByteCount: DocumentSet.cacheByteCount
            ) { try HandDocuments(bench, isDurable: true) }
        }
        random = try comparison(isInOrder: false)
        ordered = try comparison(isInOrder: true)
    }

    private static let byHand = """
        by hand: the same tables, index, SHA-256 of each revision and transactions, statements prepared once, no JSON parsing
        """

    func inserting() throws -> [Row] {
        func row(
            _ comparison: DocumentComparison, _ name: String, atLeast least: Double, isCodable: Bool = false,
            _ what: String
        ) throws -> Row {
            bench.say("\(name) …")
            return Row(
                name, try comparison.inserting(isCodable: isCodable), atLeast: least,
                explanation: "\(comparison.documents.all.count), 1,000 a transaction, \(what); \(Self.byHand)")
        }
        return try [
            row(random, "document insert, JSON", atLeast: 0.75, "JSON bytes, 22 random characters as ids"),
            row(ordered, "document insert, JSON, in order", atLeast: 0.7, "JSON bytes, ids in order"),
            row(random, "document insert, Codable", atLeast: 0.6, isCodable: true, "Codable values, random ids"),
            row(
                ordered, "document insert, Codable, in order", atLeast: 0.5, isCodable: true,
                "Codable values, ids in order"),
        ]
    }

    func reading() throws -> Row {
        bench.say("reading documents …")
        return Row(
            "document read at random", try random.reading(), atLeast: 0.75,
            explanation: """
                \(random.documents.all.count) documents, JSON bytes, each call its own, all in the cache; by hand: one SELECT \
                with a join, the body copied
                """)
    }

    func listing() throws -> [Row] {
        bench.say("listing documents …")
        func row(_ name: String, isLent: Bool, atLeast least: Double, _ what: String) throws -> Row {
            Row(
                name, try random.listing(isLent: isLent), atLeast: least,
                explanation: """
                    \(random.documents.all.count) documents with their JSON, \(what); by hand: one SELECT with a join, \
                    bodies copied
                    """)
        }
        return try [
            row("document all, in order of ids", isLent: false, atLeast: 0.5, "an object for each"),
            row("document all, bytes lent", isLent: true, atLeast: 0.9, "their bytes lent"),
        ]
    }

    func updating() throws -> Row {
        bench.say("updating documents …")
        let count = bench.size(10_000, quick: 2_000)
        return Row(
            "document update", try random.updating(count), atLeast: 0.6,
            explanation: """
                \(count) of \(random.documents.all.count), 1,000 a transaction, the current revision read before each save; by \
                hand: the row of the revision read, then the next one inserted
                """)
    }

    func singles() throws -> Row {
        bench.say("one document a transaction …")
        let count = bench.size(2_000, quick: 200)
        return Row(
            "document single, one a transaction", try ordered.insertingOneByOne(count), atLeast: 0.85,
            isMeaningful: bench.machine.isFsyncReal,
            explanation: """
                \(count) new documents, each durable when its call returns; \(Self.byHand). \
                Meant for disks whose fsync takes 100 µs or more: here \(Int(bench.machine.fsyncMicroseconds)) µs
                """)
    }
}
