internal import Coffer
internal import Foundation

/// Opening a store with a raw key and reading a document, against a bare database.
struct OpeningRow {
    private let bench: Bench

    init(_ bench: Bench) { self.bench = bench }

    func row() throws -> Row {
        bench.say("opening …")
        let documents = try bench.documents(isInOrder: false).all.prefix(1_000)
        let (name, path) = (bench.newName("store"), bench.newPath("documents"))
        try fill(name, path, with: documents)
        let id = documents[500].id
        let byteCount = documents[500].json.count
        let cacheByteCount = DatabaseOptions().cacheByteCount
        let count = bench.size(50, quick: 20)
        // Both are closed between, and that isn't counted.
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            var sum = Cost()
            for _ in 0..<count {
                var store: HandDocuments?
                sum += try measure {
                    store = try HandDocuments(openAt: path, cacheByteCount: cacheByteCount)
                    try expect(store?.read(id) == byteCount, "another document by hand")
                }
                store = nil
            }
            return sum
        } own: {
            var sum = Cost()
            for _ in 0..<count {
                var database: Database?
                sum += try measure {
                    database = try Bench.openStore(named: name, in: bench.directory)
                    let json = try database?.document(withID: id).currentRevision?.json
                    try expect(json?.count == byteCount, "another document")
                }
                try database?.close()
            }
            return sum
        }
        return Row(
            "open with a raw key, warm", time: comparison, atMost: 4,
            explanation: """
                opening a store of 1,000 documents that was closed, and reading one of them, \(count) times; closing is not \
                counted, files are in the page cache; by hand: sqlite3_open_v2, sqlite3_key_v2, the same PRAGMAs and SELECT
                """)
    }

    private func fill(_ name: String, _ path: String, with documents: ArraySlice<DocumentSet.Document>) throws {
        let database = try Bench.openStore(named: name, in: bench.directory)
        let byHand = try HandDocuments(
            new: path, cacheByteCount: DatabaseOptions().cacheByteCount, isDurable: true)
        try database.inTransaction {
            for document in documents { try database.save(json: document.json, withID: document.id) }
        }
        try byHand.transaction { for document in documents { try byHand.insert(document) } }
        try database.close()
    }
}
