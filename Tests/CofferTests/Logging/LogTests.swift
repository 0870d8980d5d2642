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

    @Test("The write-ahead log starts again when it is full, though idle connections have read meanwhile")
    func bounded() throws {
        let database = try stores.open(key: nil) { $0.durability = .relaxed }
        try database.save(json: json(0), withID: "a")
        // Leaves some connections behind, each with its snapshot.
        try onThreads(6) { _ in for _ in 0..<20 { _ = try database["a"] } }
        #expect(try write(database) < Self.mostBytes)
        #expect(try database.documentCount == 261)
    }

    /// Each commit found somebody who still read the state before it, so the log was never copied to its end.
    @Test("The write-ahead log starts again while other threads read without a pause")
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
    @Test("The write-ahead log of a large transaction does not stay as long")
    func cut() throws {
        let database = try stores.open(key: nil) { $0.durability = .relaxed }
        let text = JSONValue.string(String(repeating: "x", count: 2_000_000))
        try database.inTransaction {
            for _ in 0..<20 { try database.saveDocument(MutableDocument(["t": text])) }
        }
        #expect(try byteCount() == 0)
        for number in 0..<3 { try database.save(json: json(number)) }
        #expect(try byteCount() <= 16 << 20)
        #expect(try database.documentCount == 23)
        try database.close()
        #expect(try stores.open(key: nil).documentCount == 23)
    }

    /// How a log begins that was emptied in its place.
    private func isEmptied() throws -> Bool {
        let log = try FileHandle(forReadingFrom: URL(filePath: stores.databaseFile().path + "-wal"))
        defer { try? log.close() }
        return try log.read(upToCount: 32) == Data("coffer: nothing counts in here.\n".utf8)
    }

    /// Expects that what a kill would leave now is all of `documents`, to whoever reads it.
    private func expectCrash(
        leaves documents: [String: Int], _ key: SymmetricKey?, _ comment: Comment, salvaging: Bool
    ) throws {
        try FileManager.default.copyItem(at: stores.url(), to: stores.url("crashed"))
        defer { try? FileManager.default.removeItem(at: stores.url("crashed")) }
        func expectAll(_ name: String, readOnly: Bool) throws {
            let database = try stores.open(name, key: key) { ($0.create, $0.readOnly) = (false, readOnly) }
            #expect(try database.documentCount == documents.count, comment)
            for (id, number) in documents { #expect(try database[id]?["n"] == number, comment) }
            try database.close()
        }
        if salvaging {
            let found = try stores.manager.verifyDatabase(named: "crashed", encryptionKey: key)
            #expect(found.isSound, comment)
            let salvage = try stores.manager.salvageDatabase(
                named: "crashed", encryptionKey: key, to: stores.url("salvaged"), newKey: key)
            #expect(salvage.isComplete, comment)
            try expectAll("salvaged", readOnly: false)
            try FileManager.default.removeItem(at: stores.url("salvaged"))
        }
        try expectAll("crashed", readOnly: true)
        try expectAll("crashed", readOnly: false)
    }

    @Test(
        "The write-ahead log is emptied in its place, and what stands behind newer commits counts for nobody",
        arguments: [nil, TestStores.key])
    func emptiedInPlace(key: SymmetricKey?) throws {
        let database = try stores.open(key: key) { $0.durability = .relaxed }
        let text = JSONValue.string(String(repeating: "x", count: 100_000))
        var saved: [String: Int] = [:]
        func save(_ id: String, _ number: Int) throws {
            let document = try database.document(withID: id).newRevision()
            document.properties = ["n": .number(JSONNumber(Int64(number))), "t": text]
            try document.save()
            saved[id] = number
        }
        var emptyings = 0
        for number in 0..<250 {
            try save("d\(number % 40)", number)
            guard try isEmptied() else { continue }
            emptyings += 1
            #expect(try byteCount() > 16 << 20)
            try expectCrash(leaves: saved, key, "emptied after \(number)", salvaging: true)
            for more in 1...3 {
                try save("d\(more)", -more * emptyings)
                #expect(try !isEmptied())
                // A sealed frame has eight bytes more than SQLite knows.
                #expect(
                    abs(try byteCount() - 16 << 20) < 64 << 10, "what is longer than a log grows to is cut, and no more"
                )
                try expectCrash(leaves: saved, key, "\(more) after it was emptied", salvaging: more == 3)
            }
        }
        #expect(emptyings >= 1)
        try database.compact()
        #expect(try byteCount() == 0)
        try database.close()
    }

    @Test("The write-ahead log is gone when the database is closed")
    func closed() throws {
        let database = try stores.open()
        try database.save(json: json(0))
        #expect(try byteCount() > 0)
        try database.close()
        let names = try FileManager.default.contentsOfDirectory(atPath: stores.generation().path).sorted()
        #expect(names == ["attachments", "db.sqlite3", "incoming"])
    }
}
