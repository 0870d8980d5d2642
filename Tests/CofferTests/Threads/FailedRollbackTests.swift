import Foundation
import Testing

@testable import Coffer

/// A transaction that can neither be committed nor rolled back is still under way. Its rollback's error was dropped once:
/// every later write failed for a reason that said nothing, and the database had to be reopened without being told.
@Suite("A rollback that fails")
struct FailedRollbackTests {
    private let stores = TestStores()

    /// Has the commit fail for want of space, and the rollback after it, too.
    private func withFailures(_ body: () throws -> Void) rethrows {
        let commit = DatabaseCalls.interrupt(before: "COMMIT", .step, below: stores.directory) { 13 }
        let rollback = DatabaseCalls.interrupt(before: "ROLLBACK", .step, below: stores.directory) { 10 }
        try body()
        withExtendedLifetime((commit, rollback)) {}
    }

    @Test(
        "After a commit and its rollback have failed the database must be opened again, and has what was acknowledged",
        arguments: [false, true])
    func commitAndRollback(hasAttachment: Bool) throws {
        let database = try stores.open { $0.idleReaderLimit = 0 }
        try database.save(json: json(1), withID: "a")
        let draft = try database.document(withID: "b").newRevision()
        draft["n"] = 1
        if hasAttachment { draft.setAttachment(named: "x", contentType: nil, content: Data("content".utf8)) }
        withFailures { #expect(thrown { try draft.save() }?.code == .noSpace) }
        #expect(thrown { try database.save(json: json(1), withID: "c") }?.code == .reopenRequired)
        #expect(thrown { try database["a"] }?.code == .reopenRequired)
        try database.close()
        let again = try stores.open()
        #expect(try again.documentIDs() == ["a"])
        #expect(try again.verify().findings == [])
        let second = try again.document(withID: "b").newRevision()
        if hasAttachment { second.setAttachment(named: "x", contentType: nil, content: Data("content".utf8)) }
        try second.save()
        #expect(try again.verify().findings == [])
        try again.close()
    }

    @Test("After a failed commit that was rolled back the database goes on, and a listener hears of nothing it held")
    func commitAlone() throws {
        let database = try stores.open()
        let told = Told()
        database.addChangeListener { told.note($0) }
        let failures = Tally()
        let commit = DatabaseCalls.interrupt(before: "COMMIT", .step, below: stores.directory) {
            failures.count("commits")
            return failures["commits"] == 1 ? 13 : nil
        }
        defer { withExtendedLifetime(commit) {} }
        #expect(thrown { try database.save(json: json(1), withID: "a") }?.code == .noSpace)
        try database.save(json: json(1), withID: "b")
        #expect(told.wait(for: 1))
        #expect(told.ids == [["b"]])
        #expect(try database.documentCount == 1)
        #expect(try database.verify().findings == [])
        try database.close()
    }
}
