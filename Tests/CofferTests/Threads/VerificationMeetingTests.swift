import CofferFaults
import CofferSealing
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

/// A verification or a backup that is held in its middle while something happens to the store.
@Suite("Verifying and copying in the middle of something else")
struct VerificationMeetingTests {
    private static let bytes = AttachmentTests.bytes(100_000)

    private static func fill(_ database: Database) throws {
        let draft = try database.document(withID: "a").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: bytes)
        try draft.save()
    }

    private static func overwrite(_ database: Database, _ number: Int) throws {
        let text = JSONValue.string(String(repeating: "text\(number)", count: 1_500))
        try database.saveDocument(MutableDocument(id: "b", ["t": text]), concurrencyControl: .lastWriteWins)
    }

    /// Is held at the first report of a level. Until then reports are far enough apart that each is made.
    private static func monitor(holding stop: Hold, at level: VerificationLevel) -> VerificationMonitor {
        VerificationMonitor(from: .start) { progress in
            if progress.level == level { stop.pause() }
            if stop.isArmed { Thread.sleep(forTimeInterval: 0.12) }
        }
    }

    @Test(
        "A change of the whole store waits for a verification; a write doesn't, and nothing is found",
        arguments: [VerificationLevel.pages, .documents, .everything], Moment.allCases)
    func verification(level: VerificationLevel, moment: Moment) throws {
        let stores = TestStores()
        let database = try stores.open { $0.checkpointFrameCount = 8 }
        try Self.fill(database)
        let stop = Hold()
        let monitor = Self.monitor(holding: stop, at: level)
        let verifying = Side { try database.verify(.everything, monitor) }
        try stop.wait()
        let other = Side { try moment.act(on: database, in: stores) }
        if moment == .renewal { try other.outcome() } else { #expect(other.isKept) }
        // The pages that it reads are written over meanwhile.
        for number in 0..<20 { try Self.overwrite(database, number) }
        stop.release()
        #expect(try verifying.outcome().findings == [])
        try other.outcome()
        try moment.expectSound(
            stores, closing: Moment.others.contains(moment) ? database : nil, holds: ["a": Self.bytes, "b": nil])
    }

    @Test("A close of a database that is open for reading only waits for its verification")
    func readOnly() throws {
        let stores = TestStores()
        try Self.fill(stores.open())
        let database = try stores.open { ($0.create, $0.readOnly) = (false, true) }
        let stop = Hold()
        let monitor = Self.monitor(holding: stop, at: .documents)
        let verifying = Side { try database.verify(.everything, monitor) }
        try stop.wait()
        let closing = Side { try database.close() }
        #expect(closing.isKept && !database.storage.isClosing)
        #expect(try database["a"] != nil)
        stop.release()
        #expect(try verifying.outcome().findings == [])
        try closing.outcome()
        try Moment.close.expectSound(stores, holds: ["a": Self.bytes])
    }

    @Test(
        "A store that is verified while it is closed can be opened for reading, and is busy for who writes or replaces it"
    )
    func ofAClosedStore() throws {
        let stop = Hold(isArmed: false)
        let stores = TestStores(fileSystem: RecordingFileSystem(beforeUnlock: { _ in stop.pause() }))
        try Self.fill(stores.open())
        try stores.open("other").close()
        stop.arm()
        let verifying = Side { try stores.manager.verifyDatabase(named: "db", encryptionKey: TestStores.key) }
        try stop.wait()
        #expect(thrown { try stores.open() }?.code == .busy)
        let code = thrown {
            try stores.manager.replaceDatabase(
                named: "db", withDatabaseAt: stores.url("other"), encryptionKey: TestStores.key)
        }?.code
        #expect(code == .busy)
        let reading = try stores.open { ($0.create, $0.readOnly) = (false, true) }
        #expect(try reading["a"] != nil)
        try reading.close()
        stop.release()
        #expect(try verifying.outcome().findings == [])
        try Moment.close.expectSound(stores, holds: ["a": Self.bytes])
    }

    // MARK: Copies

    @Test(
        "A change of the whole store waits for a backup; writes and checkpoints don't, and it is of one moment",
        arguments: [CopyProgress.Phase.database, .attachments], Moment.allCases)
    func backup(phase: CopyProgress.Phase, moment: Moment) throws {
        let stores = TestStores()
        let database = try stores.open { $0.checkpointFrameCount = 8 }
        try Self.fill(database)
        let stop = Hold()
        let monitor = CopyMonitor { progress in
            if progress.phase == phase && progress.totalItemCount > 0 { stop.pause() }
            if stop.isArmed { Thread.sleep(forTimeInterval: 0.12) }
        }
        let copying = Side {
            let backup = try Backup(database.storage, to: stores.url("held"), TestStores.key, monitor)
            _ = try database.storage.maintain { () throws(CofferError) in try backup.run() }
        }
        try stop.wait()
        let other = Side { try moment.act(on: database, in: stores) }
        if moment == .renewal { try other.outcome() } else { #expect(other.isKept) }
        for number in 0..<20 { try Self.overwrite(database, number) }
        stop.release()
        try copying.outcome()
        try other.outcome()
        let copy = try stores.existing("held", key: TestStores.key)
        #expect(try copy.documentIDs() == (phase == .database ? ["a", "b"] : ["a"]))
        #expect(try copy["a"]?.currentRevision?.attachment(named: "a")?.content == Self.bytes)
        #expect(try copy.verify().findings == [])
        try copy.delete()
        try moment.expectSound(
            stores, closing: Moment.others.contains(moment) ? database : nil, holds: ["a": Self.bytes, "b": nil])
    }

    /// The statements that copy the tables were once made for the schema of an earlier snapshot, and what an index had come
    /// to be since was left out.
    @Test("A copy has the tables that came after its connection read the schema", arguments: [nil, TestStores.key])
    func schema(key: SymmetricKey?) throws {
        let stores = TestStores()
        let database = try stores.open(key: key)
        for number in 0..<50 { try database.save(json: json(number), withID: "\(number)") }
        let connection = try database.storage.databaseFile.connect(.exporting, cacheByteCount: 1 << 20)
        func count(_ connection: borrowing Connection) throws -> Int {
            let statement = Statement(connection, "SELECT count(*) FROM sqlite_master")
            defer { statement.finalize() }
            return try statement.first { Int($0.integer(0)) } ?? 0
        }
        let before = try count(connection)
        try database.createIndex(named: "i", on: "n")
        _ = try database.documents(DocumentQuery(where: Property("n") == 7)).all
        let path = stores.directory.appending(path: "copy.sqlite3").path
        try Data().write(to: URL(filePath: path))
        let target = try DatabaseFile(
            path: path, subject: "the copy", protection: key.map(DatabaseProtection.sqlCipher) ?? .none)
        try connection.export(to: path, protection: target.pageProtection, cacheByteCount: 1 << 20) {
            true
        } check: { () throws(CofferError) in
        }
        try connection.close()
        let copy = try target.connect(.immutable, cacheByteCount: 1 << 20)
        #expect(try count(copy) > before)
        try copy.close()
        try database.close()
    }
}
