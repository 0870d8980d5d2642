internal import Coffer
internal import Foundation

/// What an open database takes of an app's memory while nobody does anything with it.
struct IdleDatabases {
    private let bench: Bench
    private let count: Int

    init(_ bench: Bench) {
        self.bench = bench
        count = bench.size(1_000, quick: 100)
    }

    private static let documentID = "read"

    func rows() throws -> [Row] {
        bench.say("opening \(count) databases at once …")
        let name = bench.newName("idle")
        for number in 0..<count {
            let database = try Bench.openStore(named: Self.name(name, number), in: bench.directory)
            try database.save(json: Data(#"{"text":"hello"}"#.utf8), withID: Self.documentID)
            try database.close()
        }
        func peak(_ count: Int) throws -> Int {
            try Child.openMany.peakMemory(store: name, in: bench.directory, byteCount: count)
        }
        let (base, all) = (try peak(1), try peak(count))
        return [
            Row(
                "memory, an idle database of \(count)", [Double(all - base) / Double(count - 1) / 1_048_576],
                .mebibytes,
                .atMost(1),
                explanation: """
                    peak resident set of a process that has \(count) stores open of which it has read a document each \
                    (\(all >> 20) MiB), less that of one that has one open (\(base >> 20) MiB), a store. One run
                    """)
        ]
    }

    private static func name(_ name: String, _ number: Int) -> String { "\(name)-\(number)" }

    /// In a child process.
    static func open(_ count: Int, named name: String, in directory: URL) throws {
        let databases = try (0..<count).map { number in
            let database = try Bench.openStore(named: Self.name(name, number), in: directory)
            let json = try database.document(withID: documentID).currentRevision?.json
            try expect(json?.isEmpty == false, "a document isn't there")
            return database
        }
        for database in databases { try database.close() }
    }
}
