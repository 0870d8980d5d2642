import CofferFaults
import CofferSealing
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferVault

/// A commit that is held in its middle, with the files of its attachments, while something happens to the store.
@Suite("Saving in the middle of something else")
struct SavingMeetingTests {
    /// Where the commit is held.
    enum Place: String, CaseIterable, Sendable {
        /// With the content in its place and no row that names it.
        case installed
        /// With everything on the disk, and nobody told.
        case committed
    }

    private static let bytes = AttachmentTests.bytes(50_000)

    private static func held(_ stop: Hold) -> TestStores {
        TestStores(
            fileSystem: RecordingFileSystem(afterStep: { _, name in
                if name == "fsync directory attachments" { stop.pause() }
            }))
    }

    private static func save(_ id: String, in database: Database, holding committed: Hold) throws {
        let draft = try database.document(withID: id).newRevision()
        try draft.setAttachment(named: "a", contentType: nil, contentsOf: InputStream(data: bytes))
        try database.inTransaction {
            try draft.save()
            database.storage.hold(atEndOfCommit: committed)
        }
    }

    @Test(
        "A save is through before anything else happens to the store, and a backup goes on beside it",
        arguments: Place.allCases, Moment.allCases)
    func saving(place: Place, moment: Moment) throws {
        let (installed, committed) = (Hold(isArmed: false), Hold(isArmed: false))
        let stores = Self.held(installed)
        let database = try stores.open()
        let stop = place == .installed ? installed : committed
        stop.arm()
        let saving = Side { try Self.save("a", in: database, holding: committed) }
        try stop.wait()
        let isThere = place == .committed
        #expect(try (database["a"] != nil) == isThere)
        let other = Side { try moment.act(on: database, in: stores) }
        if moment == .backup {
            try other.outcome()
            let copy = try stores.existing("copy", key: TestStores.key)
            #expect(try copy.documentIDs() == (isThere ? ["a"] : []))
            #expect(try copy.verify().findings == [])
            try copy.close()
        } else {
            #expect(other.isKept)
        }
        stop.release()
        try saving.outcome()
        try other.outcome()
        let isOpen = Moment.others.contains(moment)
        if isOpen { #expect(try database["a"]?.currentRevision?.attachment(named: "a")?.content == Self.bytes) }
        try moment.expectSound(stores, closing: isOpen ? database : nil, holds: ["a": Self.bytes])
    }

    /// How a transaction ends that has early syncs under way.
    enum End: String, CaseIterable, Sendable { case commit, rollback }

    @Test(
        "A transaction ends after the early syncs of its batches, and a close and a key change after it",
        arguments: End.allCases, Moment.allCases.filter { $0 != .backup })
    func earlySync(end: End, moment: Moment) throws {
        let stop = Hold(isArmed: false)
        let files = RecordingFileSystem(
            reportsFailedWrites: true, afterStep: { _, name in if name == "syncfs" { stop.pause() } })
        let stores = TestStores(fileSystem: files, attachmentBatchCount: 2)
        let database = try stores.open()
        let contents = ["0": Data("content 0".utf8), "1": Data("content 1".utf8)]
        let expected: [String: Data?] = end == .commit ? contents : [:]
        stop.arm()
        let writing = Side {
            try database.inTransaction {
                for (id, content) in contents {
                    let draft = try database.document(withID: id).newRevision()
                    draft.setAttachment(named: "a", contentType: nil, content: content)
                    try draft.save()
                }
                if end == .rollback { throw CofferError(.cancelled) }
            }
        }
        try stop.wait()
        let other = Side { try moment.act(on: database, in: stores) }
        #expect(writing.isKept)
        #expect(!other.isOver)
        stop.release()
        #expect(thrown { try writing.outcome() }?.code == (end == .commit ? nil : .cancelled))
        try other.outcome()
        try moment.expectSound(stores, closing: Moment.others.contains(moment) ? database : nil, holds: expected)
    }

    /// A store that is held at the first sync of a database file, once it is armed.
    private static func heldAtDatabaseSync(_ stop: Hold) -> (TestStores, RecordingFileSystem) {
        let files = RecordingFileSystem(afterStep: { _, name in if name == "fsync file db.sqlite3" { stop.pause() } })
        return (TestStores(fileSystem: files), files)
    }

    @Test("A key change replaces MANIFEST after the early sync of its database")
    func earlySyncOfTheDatabase() throws {
        let stop = Hold(isArmed: false)
        let (stores, files) = Self.heldAtDatabaseSync(stop)
        let database = try stores.open()
        try database.save(json: json(1), withID: "a")
        let count = files.stepNames.count { $0 == "rename MANIFEST.new" }
        stop.arm()
        let change = Side { try Moment.keyChange.act(on: database, in: stores) }
        try stop.wait()
        #expect(change.isKept)
        #expect(files.stepNames.count { $0 == "rename MANIFEST.new" } == count)
        #expect(try stores.generations().count == 2)
        stop.release()
        try change.outcome()
        try Moment.keyChange.expectSound(stores, closing: database, holds: ["a": nil])
    }

    @Test("A generation that is given up goes after the early sync of its database")
    func earlySyncOfWhatIsGivenUp() throws {
        let stop = Hold(isArmed: false)
        let (stores, _) = Self.heldAtDatabaseSync(stop)
        let database = try stores.open()
        try database.save(json: json(1), withID: "a")
        let storage = database.storage
        let manifest = try storage.manifest.nextGeneration(
            openedBy: [testKey(9)], cost: storage.settings.passwordCost, attachmentNames: .sha1)
        let next = try storage.store.beginNextGeneration(manifest)
        stop.arm()
        next.beginSynchronizingDatabase()
        try stop.wait()
        let end = Side { storage.store.abandon(next) }
        #expect(end.isKept)
        #expect(try stores.generations().count == 2)
        stop.release()
        try end.outcome()
        #expect(try stores.generations().count == 1)
        try Moment.close.expectSound(stores, closing: database, holds: ["a": nil])
    }

    // MARK: Between the commit and what follows it

    @Test("A purge that can be seen counts before it is noted")
    func countedPurge() throws {
        let stores = TestStores()
        let database = try stores.open()
        for id in ["a", "b"] { try database.save(json: json(1), withID: id) }
        #expect(try database.documentCount == 2)
        let stop = Hold()
        let purging = Side {
            try database.inTransaction {
                try database.document(withID: "a").purge()
                database.storage.hold(atEndOfCommit: stop)
            }
        }
        try stop.wait()
        #expect(try database["a"] == nil)
        #expect(try database.documentCount == 1)
        stop.release()
        try purging.outcome()
        #expect(try database.documentCount == 1)
    }

    @Test(
        "A commit that failed leaves the clock of commits right: who reads beside the next sees no older state after a newer"
    )
    func clockAfterFailure() throws {
        let stop = Hold(isArmed: false)
        let stores = Self.held(stop)
        let database = try stores.open()
        let error = thrown {
            try database.inTransaction {
                try database.save(json: json(1), withID: "lost")
                try? database.storage.write { (writer) throws(CofferError) in
                    try writer.change { () throws(CofferError) -> Void in throw CofferError(.noSpace) }
                }
            }
        }
        #expect(error?.code == .noSpace)
        let end = Hold()
        stop.arm()
        let saving = Side { try Self.save("a", in: database, holding: end) }
        try stop.wait()
        #expect(try database["a"] == nil)
        stop.release()
        try end.wait()
        #expect(try database["a"] != nil)
        end.release()
        try saving.outcome()
        #expect(try database["a"] != nil)
        try Moment.close.expectSound(stores, closing: database, holds: ["a": Self.bytes])
    }

    /// Is told of commits, and held at the first.
    private final class Watcher: ChangeObserver {
        let stop = Hold()
        let sequences = Shared<[Int]>([])

        func observe(_ commit: Commit) {
            sequences.value += commit.changes.map(\.sequence)
            stop.pause()
        }

        func finish() {}
    }

    @Test(
        "Commits are told one after another, in their order: the next transaction waits until all are told of the one before"
    )
    func order() throws {
        let stores = TestStores()
        let database = try stores.open()
        let watcher = Watcher()
        _ = database.storage.hub.add(watcher)
        let first = Side { _ = try database.save(json: json(1), withID: "a") }
        try watcher.stop.wait()
        let second = Side { _ = try database.save(json: json(2), withID: "b") }
        #expect(first.isKept && !second.isOver)
        #expect(watcher.sequences.value == [1])
        watcher.stop.release()
        try first.outcome()
        try second.outcome()
        #expect(watcher.sequences.value == [1, 2])
        try database.close()
    }
}
