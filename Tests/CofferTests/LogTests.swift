import CofferSealing
import Foundation
import Synchronization
import Testing

@testable import Coffer

/// The write-ahead log: what was committed and is not yet in the database file.
@Suite("The log")
struct LogTests {
    let stores = TestStores()

    /// What it grows to before it is copied into the file, with the commit that brought it there.
    private static let mostBytes = 18 << 20

    private func byteCount() throws -> Int {
        let values = try URL(filePath: stores.databaseFile().path + "-wal").resourceValues(forKeys: [.fileSizeKey])
        return try #require(values.fileSize)
    }

    /// Commits of 100 KB each, some 31 MB together. Returns the longest that the log was.
    private func write(_ database: Database) throws -> Int {
        let text = JSONValue.string(String(repeating: "x", count: 100_000))
        var most = 0
        for _ in 0..<260 {
            try database.saveDocument(MutableDocument(["t": text]))
            most = max(most, try byteCount())
        }
        return most
    }

    @Test("starts again when it is full, though idle connections have read meanwhile")
    func bounded() throws {
        let database = try stores.open(key: nil) { $0.durability = .relaxed }
        try database.save(json: json(0), withID: "a")
        // Leaves some connections behind, each with its snapshot.
        try onThreads(6) { _ in for _ in 0..<20 { _ = try database["a"] } }
        #expect(try write(database) < Self.mostBytes)
        #expect(try database.documentCount == 261)
    }

    /// Each commit found somebody who still read the state before it, so the log was never copied to its end.
    @Test("starts again while other threads read without a pause")
    func boundedUnderReaders() throws {
        let database = try stores.open(key: nil) { $0.durability = .relaxed }
        try database.inTransaction { for number in 0..<500 { try database.save(json: json(number)) } }
        let isDone = Atomic(false)
        let most = Lock(0)
        try onThreads(5) { thread in
            if thread == 0 {
                defer { isDone.store(true, ordering: .relaxed) }
                let count = try self.write(database)
                most.withLock { $0 = count }
            }
            while !isDone.load(ordering: .relaxed) { _ = try database.documentIDs() }
        }
        // Whoever reads right then may delay it by some commits.
        #expect(most.withLock { $0 } < Self.mostBytes + (8 << 20))
    }

    /// It once stayed as long as the largest transaction until the database was closed.
    @Test("of a large transaction does not stay as long")
    func cut() throws {
        let database = try stores.open(key: nil) { $0.durability = .relaxed }
        let text = JSONValue.string(String(repeating: "x", count: 2_000_000))
        try database.inTransaction {
            for _ in 0..<10 { try database.saveDocument(MutableDocument(["t": text])) }
        }
        #expect(try byteCount() == 0)
        for number in 0..<3 { try database.save(json: json(number)) }
        #expect(try byteCount() <= 16 << 20)
        #expect(try database.documentCount == 13)
        try database.close()
        #expect(try stores.open(key: nil).documentCount == 13)
    }

    @Test("is gone when the database is closed")
    func closed() throws {
        let database = try stores.open()
        try database.save(json: json(0))
        #expect(try byteCount() > 0)
        try database.close()
        let names = try FileManager.default.contentsOfDirectory(atPath: stores.generation().path).sorted()
        #expect(names == ["attachments", "db.sqlite3", "incoming"])
    }
}
