import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords

@Suite("Documents that expire")
struct ExpirationTests {
    let stores = TestStores()

    private func waitUntilGone(_ id: String, in database: Database) throws -> Bool {
        try eventually { try database.document(withID: id).currentRevisionID == nil }
    }

    private let later = Date(timeIntervalSinceNow: 3_600)

    @Test("Documents that expire are purged at their time, with their attachments' uses, and watchers are told")
    func purged() throws {
        let database = try stores.open()
        let told = Told()
        database.addChangeListener { told.note($0) }
        for id in ["a", "b", "c"] {
            let draft = try database.document(withID: id).newRevision()
            draft.setAttachment(named: "x", contentType: nil, content: Data("same".utf8))
            try draft.save()
            try draft.save()
        }
        try database.document(withID: "b").delete()
        try database.inTransaction {
            try database.document(withID: "a").setExpirationDate(Date(timeIntervalSinceNow: 0.05))
            try database.document(withID: "b").setExpirationDate(Date(timeIntervalSinceNow: -5))
            try database.document(withID: "c").setExpirationDate(later)
        }
        #expect(try waitUntilGone("a", in: database) && waitUntilGone("b", in: database))
        #expect(try database.documentCount == 1 && database.documentIDs() == ["c"])
        #expect(try database.document(withID: "a").expirationDate == nil)
        // In one commit or two: on a busy machine both are due when the first is looked for.
        #expect(eventually { told.ids.joined().count == 9 })
        #expect(told.ids[7...].joined().sorted() == ["!a", "!b"])
        // What the others leave is what one document needs.
        try database.document(withID: "c").setExpirationDate(.distantPast)
        #expect(try waitUntilGone("c", in: database))
        #expect(try database.compact().attachmentCount == 1)
        // No number is given twice.
        let last = try database.lastSequenceNumber
        #expect(last == 7)
        try database.close()
        let again = try stores.open()
        #expect(try again.lastSequenceNumber == last)
        #expect(try again.save(json: json(1), withID: "a").sequence == last + 1)
        #expect(try again.save(json: json(1), withID: "b").revisionID.generation == 1)
    }

    /// Nothing was to be done when the first one's time came, since that was done by then.
    @Test("Documents that expire are purged in time though nothing was due when others were looked for")
    func inTime() throws {
        // It would pause for ten seconds each time where something that is due can't be purged. A busy machine takes so long
        // once, perhaps.
        var times: [Duration] = []
        repeat {
            let name = "db\(times.count)"
            var database = try stores.open(name)
            for id in ["a", "b", "c"] { try database.save(json: json(1), withID: id) }
            try database.document(withID: "a").setExpirationDate(.now + 0.1)
            try database.close()
            Thread.sleep(forTimeInterval: 0.15)
            database = try stores.open(name)
            #expect(try database["a"] == nil)
            let start = ContinuousClock.now
            try database.document(withID: "b").setExpirationDate(.now + 0.5)
            try database.document(withID: "c").setExpirationDate(.now + 1.5)
            try database.document(withID: "b").purge()
            #expect(try waitUntilGone("c", in: database))
            times.append(ContinuousClock.now - start)
            try database.close()
        } while times[times.count - 1] >= .seconds(9) && times.count < 20
        #expect(times.contains { $0 < .seconds(9) })
    }

    @Test("Documents that expire say when, to the millisecond, across openings; nil takes it back")
    func dates() async throws {
        let database = try stores.open()
        try await database.save(json: json(1), withID: "a")
        let document = database.document(withID: "a")
        #expect(try document.expirationDate == nil)
        for date in [Date(timeIntervalSince1970: 4_000_000_000.125), .distantFuture] {
            try await document.setExpirationDate(date)
            #expect(try document.expirationDate == date)
        }
        try await database.save(json: json(2), withID: "a", replacing: document.currentRevisionID)
        try await database.close()
        let again = try stores.open()
        #expect(try again.document(withID: "a").expirationDate == .distantFuture)
        try await again.document(withID: "a").setExpirationDate(nil)
        #expect(try again.document(withID: "a").expirationDate == nil)
        #expect(try again["a"]?["n"] == 2)
    }

    @Test("Documents that expire in a transaction that is rolled back do not")
    func rollback() throws {
        let database = try stores.open()
        try database.save(json: json(1), withID: "a")
        try? database.inTransaction {
            try database.document(withID: "a").setExpirationDate(.distantPast)
            throw CancellationError()
        }
        try database.save(json: json(1), withID: "b")
        try database.document(withID: "b").setExpirationDate(.distantPast)
        #expect(try waitUntilGone("b", in: database))
        #expect(try database["a"]?["n"] == 1)
        #expect(try database.document(withID: "a").expirationDate == nil)
    }

    @Test(
        "Documents that expire while the database is closed go when it is opened for writing, not when it is only read")
    func closed() throws {
        let database = try stores.open()
        for number in 0..<500 {
            try database.save(json: json(number), withID: "d\(number)")
        }
        try database.save(json: json(1), withID: "soon")
        // Beside the timer, which would purge them before a busy machine has closed the database.
        try database.storage.write { (writer) throws(CofferError) in
            try writer.change { () throws(CofferError) in
                for number in 0..<499 { try writer.tables.expirations.set(.init("d\(number)"), 1_000) }
            }
        }
        try database.close()
        let before = try stores.snapshot()
        let reader = try stores.open { $0.readOnly = true }
        #expect(try reader["d0"]?["n"] == 0 && reader.documentCount == 501)
        try reader.close()
        #expect(try stores.snapshot() == before)

        let again = try stores.open()
        #expect(try again.documentIDs() == ["d499", "soon"])
        #expect(try again.documentCount == 2)
        // The timer goes on from there.
        try again.document(withID: "soon").setExpirationDate(Date(timeIntervalSinceNow: 0.05))
        #expect(try waitUntilGone("soon", in: again))
        try again.close()
    }

    @Test("Documents that expire are purged by a timer that was set in an earlier opening")
    func nextOpening() throws {
        var database: Database? = try stores.open()
        try database?.save(json: json(1), withID: "a")
        try database?.document(withID: "a").setExpirationDate(Date(timeIntervalSinceNow: 0.4))
        // The timer does not keep it open.
        database = nil
        let again = try stores.open()
        #expect(try waitUntilGone("a", in: again))
    }

    @Test("Documents that expire must be there, and have a date that is one")
    func bad() throws {
        let database = try stores.open()
        let document = database.document(withID: "a")
        #expect(thrown { try document.setExpirationDate(later) }?.code == .documentNotFound)
        #expect(try document.expirationDate == nil)
        try database.save(json: json(1), withID: "a")
        let noDate = Date(timeIntervalSince1970: .nan)
        #expect(thrown { try document.setExpirationDate(noDate) }?.code == .invalidArgument)
        #expect(thrown { try database.document(withID: "_x").setExpirationDate(later) }?.code == .invalidDocumentID)
        #expect(thrown { try database.document(withID: "").expirationDate }?.code == .invalidDocumentID)
        for infinite in [Double.infinity, -.infinity] {
            try database.save(json: json(1), withID: "\(infinite)")
            try database.document(withID: "\(infinite)").setExpirationDate(Date(timeIntervalSince1970: infinite))
        }
        #expect(try waitUntilGone("-inf", in: database))
        #expect(try database["inf"]?["n"] == 1)
        try database.close()
        #expect(thrown { try document.setExpirationDate(later) }?.code == .closed)
        let reader = try stores.open { $0.readOnly = true }
        #expect(thrown { try reader.document(withID: "a").setExpirationDate(nil) }?.status == 403)
    }

    @Test("Documents that expire keep nobody from closing, however many do, and close hangs on none")
    func closing() throws {
        for number in 0..<20 {
            let database = try stores.open("db\(number)", key: nil) { $0.durability = .relaxed }
            try database.inTransaction {
                for id in 0..<300 {
                    try database.save(json: json(id), withID: "d\(id)")
                    try database.document(withID: "d\(id)").setExpirationDate(Date(timeIntervalSinceNow: -1))
                }
            }
            Thread.sleep(forTimeInterval: 0.000_3 * Double(number))
            try database.close()
            #expect(thrown { try database.documentCount }?.code == .closed)
            #expect(try stores.open("db\(number)", key: nil).documentCount == 0)
        }
    }

    /// Any error of the look for the next one was taken for none, and it slept for ever.
    @Test("A document is purged when it has expired, though the timer couldn't read at first")
    func unreadable() throws {
        // Each read opens the file.
        let database = try stores.open { $0.idleReaderLimit = 0 }
        try database.save(json: json(1), withID: "a")
        // Only the timer below is notified of it.
        try database.storage.write { (writer) throws(CofferError) in
            try writer.change { () throws(CofferError) in try writer.tables.expirations.set(.init("a"), 1_000) }
        }
        let (file, away) = (try stores.databaseFile(), try stores.generation().appending(path: "away"))
        try FileManager.default.moveItem(at: file, to: away)
        #expect(thrown { try database.documentIDs() } != nil)
        let timer = ExpirationTimer(pause: .milliseconds(10))
        for _ in 0..<10 {
            timer.reconsider(database.storage)
            Thread.sleep(forTimeInterval: 0.02)
        }
        try FileManager.default.moveItem(at: away, to: file)
        #expect(try waitUntilGone("a", in: database))
        _ = timer.finish()
        try database.close()
    }
}
