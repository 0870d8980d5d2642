import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords

@Suite("Brief reads of a store that was just opened")
struct BriefReadTests {
    private let stores = TestStores()

    /// Counts the connections that are opened from here on.
    private func countConnections() -> (tally: Tally, interruption: DatabaseCalls.Interruption) {
        let tally = Tally()
        let interruption = DatabaseCalls.interrupt(
            before: "PRAGMA temp_store = MEMORY", .execution, below: stores.directory
        ) {
            tally.count("connections")
            return nil
        }
        return (tally, interruption)
    }

    private func fill(_ count: Int) throws {
        let database = try stores.open()
        try database.inTransaction {
            for number in 0..<count { try database.save(json: json(number), withID: "d\(number)") }
        }
        try database.close()
    }

    /// The number in the document.
    private func value(_ id: String, _ database: Database) throws -> Int? { try database.document(withID: id)["n"] }

    private func set(_ id: String, to number: Int, in database: Database) throws {
        let draft = try database.document(withID: id).newRevision()
        draft["n"] = number
        try draft.save()
    }

    @Test("A store that is opened for a document or two needs one connection, and a second one for a list")
    func oneConnection() throws {
        try fill(10)
        let (tally, interruption) = countConnections()
        defer { withExtendedLifetime(interruption) {} }
        let database = try stores.open()
        for number in 0..<3 { #expect(try value("d\(number)", database) == number) }
        #expect(try database.document(withID: "none").currentRevision == nil)
        try set("d0", to: 11, in: database)
        #expect(try value("d0", database) == 11, "what was written since")
        #expect(tally["connections"] == 1)
        #expect(try database.allDocuments().count == 10)
        #expect(tally["connections"] == 2)
        try database.close()
    }

    @Test("A store of which many documents are read one by one has a connection for its readers")
    func manyReads() throws {
        try fill(20)
        let (tally, interruption) = countConnections()
        defer { withExtendedLifetime(interruption) {} }
        let database = try stores.open()
        for number in 0..<20 { #expect(try value("d\(number)", database) == number) }
        #expect(tally["connections"] == 2)
        try database.close()
    }

    @Test("The first read does not wait for a transaction, and does not see it")
    func besideTransaction() throws {
        try fill(1)
        let database = try stores.open { $0.busyTimeout = .zero }
        try database.inTransaction {
            try set("d0", to: 2, in: database)
            try onThreads(2) { _ in
                let number = try value("d0", database)
                #expect(number == 0)
            }
            #expect(try value("d0", database) == 2)
        }
        #expect(try value("d0", database) == 2)
        try database.close()
    }

    @Test("Whoever writes beside first reads is never told that the database is busy", arguments: [1, 4])
    func neverBusy(threadCount: Int) throws {
        try fill(4)
        for _ in 0..<20 {
            let database = try stores.open { $0.busyTimeout = .zero }
            try onThreads(threadCount + 1) { thread in
                if thread == 0 {
                    for number in 0..<8 { try set("d0", to: number, in: database) }
                } else {
                    let id = "d\(1 + thread % 3)"
                    for _ in 0..<8 {
                        let number = try value(id, database)
                        #expect(number != nil)
                    }
                }
            }
            try database.close()
        }
    }

    @Test("After a close, and of a store that is open for reading only, the first read is as any other")
    func closed() throws {
        try fill(1)
        let reading = try stores.open { $0.readOnly = true }
        #expect(try value("d0", reading) == 0)
        try reading.close()
        let database = try stores.open()
        try database.close()
        #expect(thrown { try database.document(withID: "d0").currentRevision }?.code == .closed)
    }

    @Test("A first read that fails leaves the next transaction a new connection")
    func failed() throws {
        try fill(2)
        let database = try stores.open()
        let calls = Tally()
        let interruption = DatabaseCalls.interrupt(before: "LEFT JOIN revisions", .step, below: stores.directory) {
            calls.count("reads")
            return calls["reads"] == 1 ? 11 : nil
        }
        defer { withExtendedLifetime(interruption) {} }
        #expect(thrown { try database.document(withID: "d0").currentRevision }?.code == .damaged)
        #expect(database.storage.writer.hasMetDamage)
        #expect(try value("d0", database) == 0)
        try set("d0", to: 5, in: database)
        #expect(!database.storage.writer.hasMetDamage)
        #expect(try value("d0", database) == 5)
        try database.close()
    }

    @Test("A brief read that writes stops the process")
    func writing() async {
        await #expect(processExitsWith: .failure) {
            let stores = TestStores()
            let database = try stores.open()
            _ = try database.storage.readBriefly { (_) throws(CofferError) in
                try database.save(json: json(1), withID: "a")
            }
            exit(0)
        }
    }
}
