/// Documents against keys and values by hand, which have no revisions: the scale on which other engines were measured.
///
/// The targets are what Couchbase's engine reached on it without encryption, with the same ids, order and durability.
struct KeyValueRows {
    private let bench: Bench
    private let comparison: DocumentComparison

    init(_ bench: Bench) throws {
        self.bench = bench
        let cacheByteCount = 64 << 20
        comparison = DocumentComparison(
            bench: bench, documents: try bench.documents(isInOrder: true), cacheByteCount: cacheByteCount
        ) { try HandDocuments(newPairs: bench.newPath("pairs"), cacheByteCount: cacheByteCount) }
    }

    func rows() throws -> [Row] {
        let count = comparison.documents.all.count
        let updates = bench.size(10_000, quick: 2_000)
        let singles = bench.size(2_000, quick: 200)
        return try [
            row("insert", atLeast: 0.56, "\(count), 1,000 a transaction") { try $0.inserting() },
            row("read at random", atLeast: 0.7, "\(count), each call its own") { try $0.reading() },
            row("all, in order", atLeast: 0.4, "\(count)") { try $0.listing() },
            row("all, bytes lent", atLeast: 0.5, "\(count)") { try $0.listing(isLent: true) },
            row("update at random", atLeast: 0.61, "\(updates) of \(count), 1,000 a transaction") {
                try $0.updating(updates, isShuffled: true)
            },
            row("one a transaction", atLeast: 0.65, "\(singles) new ones", isMeaningful: bench.machine.isFsyncReal) {
                try $0.insertingOneByOne(singles)
            },
        ]
    }

    private func row(
        _ name: String, atLeast least: Double, _ what: String, isMeaningful: Bool = true,
        _ compare: (DocumentComparison) throws -> Comparison
    ) throws -> Row {
        bench.say("keys and values: \(name) …")
        return Row(
            "key-value: \(name)", try compare(comparison), atLeast: least, isMeaningful: isMeaningful,
            explanation: """
                \(what), ids in order; by hand: one encrypted table of keys and values in a 64 MB cache, as Coffer has, no \
                revisions, digests or JSON. The target is what Couchbase's engine reaches there without encryption
                """)
    }
}
