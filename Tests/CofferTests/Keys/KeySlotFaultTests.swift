import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite
@testable import CofferVault

@Suite("Keys of a database, when something else happens", .serialized)
struct KeySlotFaultTests {
    let stores = TestStores()
    let password = SymmetricKey(password: "password123456")
    let recovery = SymmetricKey(password: "correct horse")

    @Test("Keys change while others read and write: nobody waits for the derivation, and nothing is lost")
    func concurrency() throws {
        let database = try stores.open(key: password)
        try database.save(json: json(0), withID: "shared")
        let isDone = Tally()
        try onThreads(5) { thread in
            switch thread {
            case 0:
                // Also when one of them fails, so that the others end.
                defer { isDone.count("changes") }
                for round in 0..<20 {
                    let id = try database.addKey(testKey(UInt8(round)), label: "round \(round)").id
                    try database.replaceKey(with: password)
                    try database.removeKey(id)
                }
            case 1, 2:
                var number = 0
                while isDone["changes"] == 0 {
                    try database.save(json: json(number), withID: "\(thread)-\(number)")
                    isDone.count("saves")
                    number += 1
                }
            case 3:
                while isDone["changes"] == 0 {
                    #expect(try database["shared"]?["n"] == 0)
                    isDone.count("reads")
                }
            default:
                // What is listed together belongs together: a key with its label, or neither.
                while isDone["changes"] == 0 {
                    let keys = try database.keys
                    #expect((1...2).contains(keys.count))
                    #expect(keys.dropFirst().allSatisfy { $0.label?.hasPrefix("round ") == true })
                    #expect(keys.first?.isCurrent == true)
                    isDone.count("lists")
                }
            }
        }
        #expect(try database.documentCount == 1 + isDone["saves"])
        #expect(try database.keys.count == 1)
        #expect(try stores.labels(database) == [])
        #expect(try stores.manager.storeInfo(named: "db").sequence == 61)
        try database.close()
        let again = try stores.open(key: password)
        #expect(try again.documentCount == 1 + isDone["saves"])
    }

    @Test("Keys are derived while others write, and other changes wait for their turn")
    func derivedOutsideOfTheLock() throws {
        let database = try stores.open(key: password) { $0.busyTimeout = .milliseconds(200) }
        let tally = Tally()
        try Derivations.interrupt {
            // In the middle of the derivation, on another thread: what would wait for this one fails.
            let work = {
                try onThreads(1) { _ in
                    try database.save(json: json(tally["saves"]), withID: "d\(tally["saves"])")
                    tally.count("saves")
                    #expect(thrown { try database.addKey(testKey(50)) }?.code == .busy)
                    #expect(thrown { try database.compact() }?.code == .busy)
                    #expect(try database.keys.count == 1)
                }
            }
            #expect(throws: Never.self) { try work() }
        } during: {
            try database.addKey(recovery)
        }
        #expect(tally["saves"] == 1)
        #expect(try database.documentCount == 1)
        #expect(try database.keys.count == 2)
    }

    @Test("Labels of keys that are gone, or not yet there, go at the next opening for writing and the next change")
    func orphans() throws {
        func leaveLabel(_ database: Database) throws {
            try database.storage.write { (writer) throws(CofferError) in
                try KeyLabels.insert("left behind", of: KeySlot.ID(17), in: writer.tables.connection)
            }
            #expect(try stores.labels(database).contains("left behind"))
            #expect(try !database.keys.contains { $0.label == "left behind" })
        }
        var database = try stores.open()
        try database.addKey(testKey(8), label: "stays")
        try leaveLabel(database)
        try database.addKey(testKey(9), label: "stays too")
        #expect(try stores.labels(database) == ["stays", "stays too"])

        try leaveLabel(database)
        try database.close()
        let sequence = try stores.manager.storeInfo(named: "db").sequence
        database = try stores.open { $0.readOnly = true }
        #expect(try database.keys.map(\.label) == [nil, "stays", "stays too"])
        #expect(try stores.labels(database).count == 3)
        try database.close()
        database = try stores.open()
        #expect(try stores.labels(database) == ["stays", "stays too"])
        #expect(try stores.manager.storeInfo(named: "db").sequence == sequence)
    }

    @Test("Keys can be rewritten as a whole within a transaction")
    func replacingLabels() throws {
        let database = try stores.open()
        let keys = [try database.keys[0], try database.addKey(testKey(8), label: "b")]
        let ids = keys.map { KeySlot.ID(UInt64($0.id, radix: 16) ?? 0) }
        for labels in [[(ids[0], "a"), (ids[1], "c")], [(ids[1], "d")], []] {
            try database.storage.write { (writer) throws(CofferError) in
                try KeyLabels.replaceAll(in: writer.tables.connection, with: labels.map { (slot: $0.0, label: $0.1) })
            }
            #expect(try stores.labels(database) == labels.map(\.1))
        }
    }

    @Test("Keys change durably even in a database whose commits are not, which goes on as it was")
    func relaxed() throws {
        let database = try stores.open { $0.durability = .relaxed }
        func synchronous() throws -> Int64? {
            try database.storage.alone { (writer) throws(CofferError) in
                try Statement(writer.tables.connection, "PRAGMA synchronous").first { $0.integer(0) }
            }
        }
        #expect(try synchronous() == 1)
        let id = try database.addKey(testKey(8), label: "a").id
        #expect(try synchronous() == 1)
        #expect(thrown { try database.addKey(testKey(8), label: "b") }?.code == .conflict)
        try database.removeKey(id)
        #expect(try synchronous() == 1)
    }

    @Test("Keys of a database are changed by tasks, too, and a task that is cancelled has changed nothing")
    func tasks() async throws {
        let database = try stores.open(key: password)
        let added = try await database.addKey(testKey(8), label: "a")
        #expect(try database.keys.map(\.label) == [nil, "a"])
        let replaced = try await database.replaceKey(added.id, with: testKey(9))
        #expect(replaced.label == "a")
        try await database.removeKey(replaced.id)
        #expect(try database.keys.count == 1)
        await #expect(throws: CofferError(.invalidArgument)) {
            try await database.addKey(testKey(8), label: String(repeating: "x", count: 201))
        }
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await database.addKey(testKey(10))
        }
        await #expect(throws: CofferError(.cancelled)) { try await cancelled.value }
        #expect(try database.keys.count == 1)
        // Sixteen at once, seven of which find room.
        let count = await withTaskGroup(of: Bool.self) { group in
            for number: UInt8 in 100..<116 {
                group.addTask { (try? await database.addKey(testKey(number))) != nil }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(count == 7)
        #expect(try database.keys.count == 8)
    }

    @Test("Keys have labels that stand readable in no file, while it is open and after")
    func canary() throws {
        let canary = "canary-81c2-is-the-label"
        let database = try stores.open(key: password)
        let added = try database.addKey(testKey(8), label: canary)
        try database.replaceKey(added.id, with: testKey(9))
        try database.replaceKey(with: recovery, label: canary + "2")
        #expect(try database.keys.compactMap(\.label) == [canary + "2", canary])
        #expect(try stores.files(containing: canary) == [])
        #expect(try stores.files(containing: "label ") == [])
        try database.close()
        #expect(try stores.files(containing: canary) == [])
        #expect(try stores.files(containing: "label ") == [])

        // Where nothing is encrypted the same row is found: the search works.
        let control = TestStores()
        let unencrypted = try control.open(key: nil)
        try unencrypted.storage.write { (writer) throws(CofferError) in
            try KeyLabels.insert(canary, of: KeySlot.ID(1), in: writer.tables.connection)
        }
        #expect(try control.files(containing: canary) != [])
        #expect(try control.files(containing: "label 0000000000000001") != [])
    }

    @Test(
        "Keys that changed when the disk was too full to note it are the new ones, and it must be opened anew",
        .enabled(if: SmallDisk.isAvailable, "a disk of a few megabytes can be mounted"))
    func fullDisk() throws {
        let disk = try SmallDisk(megabytes: 4)
        var database = try disk.open()
        try database.save(json: json(1), withID: "a")
        try database.close()
        database = try disk.open()
        // Room for MANIFEST.new, and not for a page of the log with its header.
        try disk.fill(leaving: 4096)
        let error = thrown { try database.addKey(testKey(8)) }
        #expect(error?.code == .reopenRequired)
        #expect((error?.cause as? CofferError)?.code == .noSpace)
        #expect(thrown { try database.documentCount }?.code == .reopenRequired)
        try disk.empty()
        try database.close()
        for key in [testKey(8), TestStores.key] {
            database = try disk.open(key: key)
            #expect(try database.keys.count == 2)
            #expect(try database["a"]?["n"] == 1)
            try database.close()
        }
    }

    @Test(
        "Keys on a disk that is too full for their label, or for MANIFEST, stay the old ones, and the database goes on",
        .enabled(if: SmallDisk.isAvailable, "a disk of a few megabytes can be mounted"))
    func fullDiskBefore() throws {
        let disk = try SmallDisk(megabytes: 4)
        var database = try disk.open()
        try database.save(json: json(1), withID: "a")
        try database.close()
        for (free, label) in [(0, nil), (0, "label"), (4096, "label")] {
            database = try disk.open()
            try disk.fill(leaving: free)
            #expect(thrown { try database.addKey(testKey(8), label: label) }?.code == .noSpace)
            #expect(try database.keys.count == 1)
            #expect(try database["a"]?["n"] == 1)
            try disk.empty()
            let id = try database.addKey(testKey(8), label: label).id
            #expect(try database.keys.map(\.label) == [nil, label])
            try database.removeKey(id)
            try database.close()
            #expect(thrown { try disk.open(key: testKey(8)) }?.code == .wrongKey)
        }
    }

    @Test("Keys that a failing disk keeps from changing are the old ones; after the change, it must be opened anew")
    func failingDisk() async {
        await #expect(processExitsWith: .success) {
            let stores = TestStores()
            var database = try stores.open()
            try database.save(json: json(1), withID: "a")
            try database.close()
            database = try stores.open()
            let keys = try database.keys

            // Too little for a page of the log: the label can't be written.
            limitFiles(to: 2_000)
            let early = thrown { try database.addKey(testKey(8), label: "a") }
            limitFiles(to: nil)
            #expect(early?.code == .ioFailed)
            #expect(thrown { try database.keys }?.code == .reopenRequired)
            try database.close()
            database = try stores.open()
            #expect(try database.keys == keys)
            #expect(try stores.labels(database) == [])
            try database.close()

            // Enough for MANIFEST, and not for the binding row after it.
            database = try stores.open()
            limitFiles(to: 2_000)
            let late = thrown { try database.addKey(testKey(8)) }
            limitFiles(to: nil)
            #expect(late?.code == .reopenRequired)
            #expect((late?.cause as? CofferError)?.code == .ioFailed)
            #expect(thrown { try database.documentCount }?.code == .reopenRequired)
            try database.close()
            let stale = try stores.manager.storeInfo(named: "db").sequence
            database = try stores.open(key: testKey(8))
            #expect(try stores.manager.storeInfo(named: "db").sequence == stale + 1)
            #expect(try database.keys.count == 2)
            #expect(try database["a"]?["n"] == 1)
            try database.close()
            try stores.open().delete()
        }
    }
}
