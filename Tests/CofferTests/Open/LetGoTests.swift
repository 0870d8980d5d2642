import CofferFaults
import Foundation
import Testing

@testable import Coffer
@testable import CofferVault

/// A store stays open while a blob refers to it or its own housekeeping is at work, though nobody has its database any
/// more. Opening it again once waited for its close, for ever where the same thread had the blob.
@Suite("A store whose database was let go of", .timeLimit(.minutes(10)))
struct LetGoTests {
    private static let bytes = AttachmentTests.bytes(5_000)

    /// Makes a database with a document and a blob in it, lets go of the database, and returns the blob.
    private func heldBlob(
        in stores: TestStores, _ change: (inout DatabaseOptions) -> Void = { _ in }
    ) throws -> Blob {
        let database = try stores.open("db", change)
        let draft = try database.document(withID: "d").newRevision()
        draft["p"] = Blob(data: Self.bytes)
        try draft.save()
        return try #require(try database["d"]?.currentRevision?.blob(forKey: "p"))
    }

    /// Runs `body` on a thread of its own, and returns what it returned; fails where that takes for ever.
    private func inTime<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) throws -> Value {
        let result = Shared<Result<Value, any Error>?>(nil)
        let isDone = Gate()
        Thread {
            result.value = Result(catching: body)
            isDone.open()
        }.start()
        isDone.wait()
        return try #require(result.value, "it hangs").get()
    }

    @Test("A store is opened again while only a blob refers to it, and both go on")
    func blob() throws {
        let stores = TestStores()
        let blob = try heldBlob(in: stores)
        let database = try inTime { try stores.open() }
        #expect(try inTime { try stores.open() } === database)
        #expect(try blob.content == Self.bytes)
        #expect(try database["d"]?.currentRevision?.blob(forKey: "p")?.content == Self.bytes)
        // The blob's content is this database's: nothing is copied.
        let draft = try database.document(withID: "again").newRevision()
        draft["p"] = blob
        try draft.save()
        #expect(
            try FileManager.default.contentsOfDirectory(
                atPath: stores.generation().appending(path: "attachments").path
            ).count == 1)
        try database.close()
        #expect(thrown { try blob.content }?.code == .closed)
        // After a close it is another one, and the blob stays closed.
        let next = try inTime { try stores.open() }
        #expect(next !== database)
        #expect(try next["again"]?.currentRevision?.blob(forKey: "p")?.content == Self.bytes)
        #expect(thrown { try blob.content }?.code == .closed)
        try next.close()
    }

    @Test("A store that only a blob keeps open still asks for its key, and for the right to write")
    func checks() throws {
        let stores = TestStores()
        let blob = try heldBlob(in: stores)
        #expect(try inTime { thrown { try stores.open(key: testKey(9)) }?.code } == .wrongKey)
        #expect(try inTime { thrown { try stores.open(key: nil) }?.code } == .keyRequired)
        #expect(try inTime { try stores.open() }["d"] != nil)
        #expect(try blob.content == Self.bytes)
    }

    @Test("A store that a blob keeps open for reading only is not opened for writing")
    func readOnly() throws {
        let stores = TestStores()
        try stores.open().close()
        _ = try heldBlob(in: stores)
        func readOnlyBlob() throws -> Blob {
            let database = try stores.open { $0.readOnly = true }
            return try #require(try database["d"]?.currentRevision?.blob(forKey: "p"))
        }
        let blob = try readOnlyBlob()
        #expect(try inTime { thrown { try stores.open() }?.code } == .busy)
        #expect(try inTime { try stores.open { $0.readOnly = true } }.isReadOnly)
        #expect(try blob.content == Self.bytes)
    }

    @Test("A store closes when the last blob goes, and opening it waits for that")
    func lastBlob() throws {
        let stores = TestStores()
        try onThreads(4) { _ in
            for _ in 0..<30 {
                let database = try stores.open()
                let id = UUID().uuidString
                let draft = try database.document(withID: id).newRevision()
                draft["p"] = Blob(data: Self.bytes)
                let blob = try #require(try draft.save().blob(forKey: "p"))
                #expect(try blob.content == Self.bytes)
            }
        }
        let database = try inTime { try stores.open() }
        #expect(try database.documentCount == 120)
        try database.close()
    }

    @Test("A store that only a blob keeps open can be verified, and is neither salvaged nor replaced")
    func otherUses() throws {
        let stores = TestStores()
        let blob = try heldBlob(in: stores) { $0.busyTimeout = .milliseconds(50) }
        let verification = try inTime {
            try stores.manager.verifyDatabase(named: "db", encryptionKey: TestStores.key)
        }
        #expect(verification.findings == [])
        let copy = stores.url("copy")
        try stores.open().backup(to: copy, encryptionKey: TestStores.key)
        let code = try inTime {
            thrown {
                try stores.manager.replaceDatabase(
                    named: "db", withDatabaseAt: copy, encryptionKey: TestStores.key)
            }?.code
        }
        #expect(code == .databaseOpen)
        #expect(try blob.content == Self.bytes)
    }

    /// A file system that stops at the first removal of a content's file until `mayGoOn`.
    private static func stopping(_ isUnderWay: Gate, _ mayGoOn: Gate) -> RecordingFileSystem {
        RecordingFileSystem(afterStep: { _, name in
            guard name.hasPrefix("unlink "), name.hasSuffix(".blob"), !name.contains("incoming") else { return }
            isUnderWay.open()
            mayGoOn.wait()
        })
    }

    /// Makes a store with a content that nobody uses, has its compaction begin in the background, and lets go of it.
    private func letGoWhileCompacting(_ stores: TestStores, _ isUnderWay: Gate) throws {
        let database = try stores.open { $0.compactsInBackground = false }
        let draft = try database.document(withID: "d").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Self.bytes)
        let first = try draft.save()
        let next = try first.createRevision()
        next.removeAttachment(named: "a")
        try next.save()
        database.storage.backgroundCompaction.schedule(database.storage)
        isUnderWay.wait()
    }

    @Test("A store is opened again while a compaction in the background is all that keeps it open")
    func compaction() throws {
        let (isUnderWay, mayGoOn) = (Gate(), Gate())
        let stores = TestStores(fileSystem: Self.stopping(isUnderWay, mayGoOn))
        try letGoWhileCompacting(stores, isUnderWay)
        let database = try inTime { try stores.open { $0.compactsInBackground = false } }
        #expect(try database["d"] != nil)
        mayGoOn.open()
        try database.save(json: json(1), withID: "e")
        try database.close()
        let again = try stores.open()
        #expect(try again.documentCount == 2)
        #expect(try again.verify().findings == [])
        try again.close()
    }

    @Test("A store that only a compaction in the background keeps open is replaced when that has ended")
    func replacedAfterCompaction() throws {
        let (isUnderWay, mayGoOn) = (Gate(), Gate())
        let stores = TestStores(fileSystem: Self.stopping(isUnderWay, mayGoOn))
        let copy = stores.url("copy")
        let other = try stores.open("other")
        try other.save(json: json(1), withID: "other")
        try other.backup(to: copy, encryptionKey: TestStores.key)
        try other.close()
        try letGoWhileCompacting(stores, isUnderWay)
        Thread {
            Thread.sleep(forTimeInterval: 0.1)
            mayGoOn.open()
        }.start()
        try inTime {
            try stores.manager.replaceDatabase(named: "db", withDatabaseAt: copy, encryptionKey: TestStores.key)
        }
        let database = try stores.open()
        #expect(try database.documentIDs() == ["other"])
        try database.close()
    }
}
