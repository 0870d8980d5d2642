import CofferFaults
import CofferSealing
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferVault

/// An opening or the end of a database that is held in its middle while others ask for the same store.
@Suite("Opening in the middle of something else")
struct OpeningMeetingTests {
    @Test("Two who open a store at once get one instance: the second waits for the first", arguments: [true, false])
    func opening(isNew: Bool) throws {
        let stop = Hold(isArmed: false)
        let stores = TestStores(fileSystem: RecordingFileSystem(beforeLock: { _ in stop.pause() }))
        if !isNew {
            let database = try stores.open()
            try database.save(json: json(1), withID: "a")
            try database.close()
        }
        stop.arm()
        let first = Side { try stores.open() }
        try stop.wait()
        let second = Side { try stores.open() }
        #expect(second.isKept)
        stop.release()
        let database = try first.outcome()
        #expect(try second.outcome() === database)
        #expect(try database.documentCount == (isNew ? 0 : 1))
        try Moment.close.expectSound(stores, closing: database, holds: isNew ? [:] : ["a": nil])
    }

    /// How a database ends.
    enum End: String, CaseIterable, Sendable { case close, letGo }

    @Test(
        "Opening or replacing a store whose close is under way waits until nothing of it is open",
        arguments: End.allCases)
    func whileItEnds(end: End) throws {
        let stop = Hold(isArmed: false)
        let stores = TestStores(fileSystem: RecordingFileSystem(beforeUnlock: { _ in stop.pause() }))
        let other = try stores.open("other")
        try other.save(json: json(1), withID: "other")
        try other.close()
        let held = Shared<Database?>(try stores.open())
        try held.value?.save(json: json(1), withID: "a")
        stop.arm()
        let ending = Side {
            let database = held.value
            held.value = nil
            if end == .close { try database?.close() }
        }
        try stop.wait()
        let opening = Side { try stores.open() }
        #expect(opening.isKept && !ending.isOver)
        stop.release()
        try ending.outcome()
        #expect(try opening.outcome()["a"] != nil)
        try opening.outcome().close()

        let again = Hold(isArmed: false)
        let sameStores = TestStores(
            sharing: stores.directory.path, fileSystem: RecordingFileSystem(beforeUnlock: { _ in again.pause() }))
        held.value = try sameStores.open()
        again.arm()
        let endingAgain = Side {
            let database = held.value
            held.value = nil
            if end == .close { try database?.close() }
        }
        try again.wait()
        let replacing = Side {
            try stores.manager.replaceDatabase(
                named: "db", withDatabaseAt: stores.url("other"), encryptionKey: TestStores.key)
        }
        #expect(replacing.isKept)
        again.release()
        try endingAgain.outcome()
        try replacing.outcome()
        try Moment.replacement.expectSound(stores, holds: [:])
    }

    /// What keeps a store open of which nobody has the database any more.
    enum Work: String, CaseIterable, Sendable { case read, transaction, keyChange, verification, backup }

    @Test(
        "A store that only its own work keeps open is handed out again, and a close waits for that work",
        arguments: Work.allCases)
    func letGo(work: Work) throws {
        let stores = TestStores()
        let database = Shared<Database?>(try stores.open())
        let storage = try #require(database.value).storage
        try database.value?.save(json: json(1), withID: "a")
        let stop = Hold()
        let identity = ObjectIdentifier(storage)
        let working = Side { [storage] in
            switch work {
            case .read: try storage.read { (_) throws(CofferError) in stop.pause() }
            case .transaction: try storage.write { (_) throws(CofferError) in stop.pause() }
            case .keyChange:
                _ = try storage.changeEncryptionKey(
                    KeyChangeRequest(newKey: testKey(9), keptKeys: [], dropsOtherKeys: false, keyedNames: nil),
                    CopyMonitor { _ in stop.pause() })
            case .verification: try storage.inspect { () throws(CofferError) in stop.pause() }
            case .backup:
                let backup = try Backup(storage, to: stores.url("copy"), nil, CopyMonitor { _ in stop.pause() })
                _ = try storage.maintain { () throws(CofferError) in try backup.run() }
            }
        }
        try stop.wait()
        database.value = nil
        let again = try Side { try stores.open() }.outcome()
        #expect(ObjectIdentifier(again.storage) == identity)
        #expect(try again["a"] != nil)
        let closing = Side { try again.close() }
        #expect(closing.isKept)
        stop.release()
        try working.outcome()
        try closing.outcome()
        try (work == .keyChange ? Moment.keyChange : .close).expectSound(stores, holds: ["a": nil])
    }
}
