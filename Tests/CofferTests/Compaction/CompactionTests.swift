import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

@Suite("Compaction")
struct CompactionTests {
    let stores = TestStores()

    /// Saves `count` documents twice each, with about `byteCount` bytes.
    private func fill(_ database: Database, _ count: Int, byteCount: Int = 3_000) throws {
        try database.inTransaction {
            for number in 0..<count {
                let first = try database.save(json: json(number, byteCount: byteCount), withID: "d\(number)")
                try database.save(json: json(number), withID: "d\(number)", replacing: first.revisionID)
            }
        }
    }

    private func pages(_ database: Database) throws -> (all: Int, free: Int) {
        try database.storage.alone { (writer) throws(CofferError) in try writer.records.compaction.pages() }
    }

    private func fileByteCount() throws -> Int {
        try stores.databaseFile().resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
    }

    @Test("A compaction drops what was replaced, gives its space back, and finds nothing the next time")
    func space() throws {
        let database = try stores.open()
        try fill(database, 1_500)
        let result = try database.compact()
        let size = try fileByteCount()
        #expect(result.revisionCount == 1_500)
        #expect(result.databaseByteCount > 1_500 * 2_500)
        #expect(try pages(database).free == 0)
        #expect(size == (try pages(database).all) * Schema.pageByteCount)
        #expect(try database.compact() == CompactionResult())
        for number in [0, 1_499] {
            let current = try #require(try database.document(withID: "d\(number)").currentRevision)
            #expect(try current["n"] == .number(.init(Int64(number))))
            #expect(try current.parentRevision?.propertiesAvailable == false)
        }
        // It goes on from where it was.
        try fill(try stores.open("other"), 1)
        let current = try #require(try database.document(withID: "d7").currentRevision)
        try current.deleteDocument()
        #expect(try database.compact().revisionCount == 1)
        #expect(try current.document.revision(withID: current.revisionID)?.propertiesAvailable == false)
        try database.close()
        #expect(try fileByteCount() <= size + 8 * Schema.pageByteCount)
    }

    @Test("A compaction keeps what counts and what is in conflict, deletions too")
    func leaves() throws {
        let database = try stores.open()
        let first = try database.save(json: json(1), withID: "a")
        let second = try database.save(json: json(2), withID: "a", replacing: first.revisionID)
        let draft = try first.createRevision()
        draft["n"] = 3
        let branch = try draft.saveAllowingConflict()
        let tombstone = try database.document(withID: "b").newRevision()
        tombstone["why"] = "old"
        try tombstone.save()
        tombstone.isDeletion = true
        let end = try tombstone.save()
        #expect(try database.compact().revisionCount == 2)
        let available = try [first, second, branch, end].map {
            try #require(try $0.document.revision(withID: $0.revisionID)).propertiesAvailable
        }
        #expect(available == [false, true, true, true])
    }

    @Test("A compaction lets others write between its steps, and read at any time")
    func beside() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 4_000, byteCount: 1_000)
        let isOver = Shared(false)
        let tally = Tally()
        try onThreads(3) { thread in
            if thread == 0 {
                defer { isOver.value = true }
                let result = try database.compact()
                #expect(result.revisionCount == 4_000)
            } else if thread == 1 {
                while !isOver.value {
                    try database.save(json: json(1))
                    tally.count("saved")
                }
            } else {
                while !isOver.value {
                    #expect(try database["d17"]?["n"] == 17)
                    tally.count("read")
                }
            }
        }
        // There are eight steps that drop properties, and more that give pages back.
        #expect(tally["saved"] >= 8)
        #expect(tally["read"] >= 8)
        #expect(try database.documentCount == 4_000 + tally["saved"])
    }

    @Test("A compaction says how far it is, and ends when its task is cancelled: what was done is done")
    func progress() async throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 2_000)
        let phases = Shared<[String]>([])
        let result = try await database.compact { progress in
            #expect(progress.completedItemCount <= progress.totalItemCount)
            phases.value.append(progress.phase.description)
        }
        #expect(result.revisionCount == 2_000)
        #expect(!phases.value.isEmpty && Set(phases.value).isSubset(of: ["revisions", "attachments", "space"]))

        try fill(try stores.open("other") { $0.durability = .relaxed }, 2_000)
        let other = try stores.open("other")
        let task = Task {
            try await other.compact { _ in withUnsafeCurrentTask { $0?.cancel() } }
        }
        task.cancel()
        await #expect(throws: CofferError(.cancelled)) { try await task.value }
        // As soon as it has begun.
        let begun = Shared<CompactionMonitor?>(nil)
        let monitor = CompactionMonitor { _ in begun.value?.cancel() }
        begun.value = monitor
        #expect(throws: CofferError(.cancelled)) { try other.storage.compact(monitor) }
        #expect(try other.storage.compact(CompactionMonitor()).revisionCount == 2_000)
        #expect(try other["d3"]?["n"] == 3)
    }

    @Test("A compaction ends when the database is closed, which does not wait for all of it")
    func closing() throws {
        for pause in [0.0, 0.002, 0.01, 0.05] {
            let database = try stores.open { $0.durability = .relaxed }
            try fill(database, 1_000, byteCount: 2_000)
            let code = Shared<CofferError.Code?>(nil)
            try onThreads(2) { thread in
                if thread == 0 {
                    code.value = thrown { try database.compact() }?.code
                } else {
                    Thread.sleep(forTimeInterval: pause)
                    try database.close()
                }
            }
            #expect(code.value == nil || code.value == .closed)
            let again = try stores.open()
            #expect(try again["d999"]?["n"] == 999 && again.documentCount == 1_000)
            try again.compact()
            #expect(try again.document(withID: "d5").currentRevision?.parentRevision?.propertiesAvailable == false)
            try again.delete()
        }
    }

    // MARK: By itself

    private func open(_ name: String = "db", least: Int = 200_000, isOn: Bool = true) throws -> Database {
        try stores.open(name) {
            $0.durability = .relaxed
            $0.compactionPolicy.leastByteCount = least
            $0.compactsInBackground = isOn
        }
    }

    private func waitUntilDropped(_ database: Database) throws -> Bool {
        try eventually {
            try database.document(withID: "d0").currentRevision?.history.first?.propertiesAvailable == false
        }
    }

    @Test("A compaction happens by itself when enough was replaced, and not before, nor where it is switched off")
    func background() throws {
        let off = try open("off", isOn: false)
        try fill(off, 300)
        let little = try open("little", least: 10 << 20)
        try fill(little, 300)
        let database = try open()
        try fill(database, 300, byteCount: 5)
        try database.inTransaction {
            for number in 0..<300 {
                let draft = try database.document(withID: "d\(number)").newRevision()
                draft["t"] = .string(String(repeating: "t", count: 3_000))
                try draft.save()
            }
        }
        #expect(try waitUntilDropped(database))
        for untouched in [off, little] {
            #expect(try untouched.document(withID: "d0").currentRevision?.parentRevision?.propertiesAvailable == true)
        }
    }

    @Test(
        "A compaction happens by itself for attachments that were replaced or deleted, however small their documents",
        arguments: [true, false])
    func attachments(isDeletion: Bool) throws {
        let database = try open()
        let draft = try database.document(withID: "d0").newRevision()
        draft.setAttachment(named: "x", contentType: nil, content: AttachmentTests.bytes(300_000))
        let saved = try draft.save()
        #expect(try saved.propertiesAvailable)
        if isDeletion {
            try database.document(withID: "d0").delete()
        } else {
            draft.setAttachment(named: "x", contentType: nil, content: AttachmentTests.bytes(300_000, seed: 2))
            try draft.save()
        }
        let files = try stores.generation().appending(path: "attachments")
        #expect(
            try eventually {
                try FileManager.default.contentsOfDirectory(atPath: files.path).count == (isDeletion ? 0 : 1)
            })
        #expect(thrown { try saved.attachment(named: "x")?.content }?.code == .attachmentNotFound)
    }

    @Test("A compaction adds up what several openings leave, and keeps no database open")
    func severalOpenings() throws {
        // Each leaves a part of what is enough.
        for part in 0..<3 {
            var database: Database? = try open(least: 3 << 20)
            let document = try #require(database?.document(withID: "d0"))
            for number in 0...2 {
                let draft = try document.newRevision()
                draft["n"] = .number(.init(Int64(part * 10 + number)))
                draft["t"] = .string(String(repeating: "t", count: 700_000))
                try draft.save()
            }
            let first = try document.currentRevision?.history.first
            if part == 0 { #expect(try first?.propertiesAvailable == true) }
            database = nil
        }
        let database = try open(least: 3 << 20)
        #expect(try waitUntilDropped(database))
    }

    @Test("A compaction by itself ends when a change of keys waits for its turn, and one that was asked for does not")
    func givesWay() throws {
        for givesWay in [true, false] {
            let database = try open(isOn: false)
            try fill(database, 1_000)
            let group = DispatchGroup()
            let tally = Tally()
            let monitor = CompactionMonitor(givesWay: givesWay) { _ in
                guard tally["reports"] == 0 else { return }
                tally.count("reports")
                group.enter()
                Thread {
                    if thrown({ try database.addKey(testKey(20)) }) == nil { tally.count("keys") }
                    group.leave()
                }.start()
                while !database.storage.maintenanceLock.isWaitedFor { usleep(100) }
            }
            let error = thrown { try database.storage.compact(monitor) }
            #expect(error?.code == (givesWay ? .cancelled : nil))
            group.wait()
            #expect(tally["keys"] == 1)
            #expect(try database.keys.count == 2)
            #expect(try database.compact().revisionCount > 0 || !givesWay)
            try database.delete()
        }
    }

    @Test("A compaction by itself and a close keep out of each other's way")
    func backgroundAndClose() throws {
        for _ in 0..<20 {
            let database = try open()
            try fill(database, 100)
            try database.close()
            let again = try open()
            #expect(try again["d7"]?["n"] == 7)
            try again.delete()
        }
    }
}
