internal import Coffer
internal import Foundation

/// The same store on both storage engines, under the same name but for the engine; and without encryption, where that is to
/// say what a machine allows.
struct EngineStores {
    let sqlCipher: EngineStore
    let sealed: EngineStore
    let unencrypted: EngineStore?

    private var all: [EngineStore] { [sqlCipher, sealed] + (unencrypted.map { [$0] } ?? []) }

    /// - Parameter count: documents that it begins with.
    init(_ bench: Bench, _ kind: String, count: Int, cacheByteCount: Int, includesUnencrypted: Bool = false) throws {
        sqlCipher = try EngineStore(bench, kind, .sqlite, cacheByteCount: cacheByteCount)
        sealed = try EngineStore(bench, kind, .sealed, cacheByteCount: cacheByteCount)
        unencrypted =
            includesUnencrypted
            ? try EngineStore(bench, kind, .sqlite, isEncrypted: false, cacheByteCount: cacheByteCount) : nil
        // In turn, so that the disk and the memory are about the same for all.
        while sealed.count < count {
            let more = min(10_000, count - sealed.count)
            for store in all { try store.insert(more, perTransaction: 1_000) }
            if sealed.count.isMultiple(of: 100_000) { bench.say("\(sealed.count) documents on each engine …") }
        }
        // Nothing is left in the log, on any side.
        for store in all { try store.reopen() }
    }

    func close() throws { for store in all { try store.database.close() } }

    /// What `body` costs on SQLCipher and on sealed pages, or on another store than these, round by round.
    func compare(
        _ bench: Bench, with other: EngineStore? = nil, _ body: (EngineStore, _ round: Int) throws -> Cost
    ) throws -> Comparison {
        var rounds = [0, 0]
        return try Comparison.run(roundCount: bench.settings.roundCount) {
            rounds[0] += 1
            try bench.settle()
            return try body(sqlCipher, rounds[0])
        } own: {
            rounds[1] += 1
            try bench.settle()
            return try body(other ?? sealed, rounds[1])
        }
    }
}

/// A store of numbered documents on one engine. Which document has which id and content follows from its number.
final class EngineStore {
    let name: String
    let type: StorageType
    private(set) var database: Database
    private(set) var count = 0
    private let bench: Bench
    private let isEncrypted: Bool
    private let cacheByteCount: Int
    private let bodies: [Data]

    init(
        _ bench: Bench, _ kind: String, _ type: StorageType, isEncrypted: Bool = true, cacheByteCount: Int
    ) throws {
        (self.bench, self.type, self.isEncrypted, self.cacheByteCount) = (bench, type, isEncrypted, cacheByteCount)
        name = "\(kind)-\(isEncrypted ? type.rawValue.lowercased() : "unencrypted")"
        bodies = try DocumentSet(count: 1_000).all.map(\.json)
        database = try Self.open(name, type, isEncrypted, bench.directory, cacheByteCount)
    }

    func reopen() throws {
        try database.close()
        database = try Self.open(name, type, isEncrypted, bench.directory, cacheByteCount)
    }

    private static func open(
        _ name: String, _ type: StorageType, _ isEncrypted: Bool, _ directory: URL, _ cacheByteCount: Int
    ) throws -> Database {
        var options = DatabaseOptions()
        (options.create, options.storageType) = (true, type)
        options.cacheByteCount = cacheByteCount
        // Another thread's compaction would be counted on the side that it happens to begin on.
        options.compactsInBackground = false
        options.encryptionKey = isEncrypted ? try Bench.key() : nil
        let database = try Manager(directory: directory).openDatabase(named: name, options: options)
        try expect(database.storageType == type, "\(name) has another engine")
        return database
    }

    /// 22 characters that say nothing of the number's neighbours.
    func id(_ number: Int) -> String {
        var random = SplitMix(state: UInt64(number))
        return random.word(22)
    }

    func body(_ number: Int) -> Data { bodies[number % bodies.count] }

    // MARK: Work

    func insert(_ more: Int, perTransaction size: Int) throws {
        let end = count + more
        while count < end {
            let numbers = count..<min(end, count + size)
            try database.inTransaction {
                for number in numbers { try database.save(json: body(number), withID: id(number)) }
            }
            count = numbers.upperBound
        }
    }

    /// Reads documents at random, each in a call of its own.
    func read(_ reads: Int, of count: Int, seed: UInt64) throws {
        var random = SplitMix(state: seed &* 7_919)
        for _ in 0..<reads {
            let number = Int(random.next() % UInt64(count))
            let json = try database.document(withID: id(number)).currentRevision?.json
            try expect(json.map { $0.count >= body(number).count } == true, "document \(number) isn't there")
        }
    }

    func update(_ updates: Int, of count: Int, perTransaction size: Int, seed: UInt64) throws {
        var random = SplitMix(state: seed &* 104_729)
        for _ in 0..<updates / size {
            try database.inTransaction {
                for _ in 0..<size {
                    let number = Int(random.next() % UInt64(count))
                    let current = try database.document(withID: id(number)).currentRevision?.revisionID
                    let next = body(number).dropLast() + Data(#","version":2}"#.utf8)
                    try database.save(json: next, withID: id(number), replacing: current)
                }
            }
        }
    }

    func list() throws {
        var found = 0
        try database.allDocuments().forEach { found += try $0.json.isEmpty ? 0 : 1 }
        try expect(found >= count, "\(found) documents were listed")
    }

    func attach(_ contents: Contents) throws {
        try database.inTransaction {
            for (index, content) in contents.all.enumerated() {
                let draft = try database.document(withID: "file-\(index)").newRevision()
                draft.setAttachment(named: "content", contentType: nil, content: content)
                try draft.save()
            }
        }
    }
}
