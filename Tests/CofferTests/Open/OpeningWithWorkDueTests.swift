import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords

/// Opening a store set a compaction or a purge going on another thread, then used the writer's connection once more
/// without its lock. On a busy machine that damaged up to every third store, with nobody killed and nothing failing.
@Suite("Opening a store that has work due", .serialized)
struct OpeningWithWorkDueTests {
    private let stores = TestStores()

    private static let roundCount = ProcessInfo.processInfo.environment["COFFER_EXHAUSTIVE"] == "1" ? 5_000 : 100

    @Test("A store with a compaction due stays sound when it is opened on a busy machine")
    func compactionDue() throws {
        let template = try stores.open("template") { $0.compactsInBackground = false }
        try template.inTransaction {
            for number in 0..<60 {
                var revision = try template.save(json: json(number, byteCount: 3_000), withID: "d\(number)")
                for _ in 0..<2 {
                    revision = try template.save(
                        json: json(number, byteCount: 3_000), withID: "d\(number)", replacing: revision.revisionID)
                }
            }
        }
        // It counts what is noted, and the note is made by the MiB.
        try template.storage.write { (writer) throws(CofferError) in
            try writer.change { () throws(CofferError) in try writer.records.compaction.note(reclaimable: 64 << 20) }
        }
        try template.close()
        try openAndVerify { (database) throws in
            let count = try database.documentCount
            #expect(count == 61)
        }
    }

    /// The first thousand are purged as the store is opened, and the others on another thread.
    private static let expiredCount = 1_600

    @Test("A store with expired documents stays sound when it is opened on a busy machine")
    func documentsExpired() throws {
        let template = try stores.open("template")
        try template.inTransaction {
            for number in 0..<Self.expiredCount { try template.save(json: json(number), withID: "d\(number)") }
        }
        try template.storage.write { (writer) throws(CofferError) in
            try writer.change { () throws(CofferError) in
                for number in 0..<Self.expiredCount { try writer.tables.expirations.set(.init("d\(number)"), 1_000) }
            }
        }
        try template.close()
        try openAndVerify { _ in }
    }

    /// Opens, changes and closes many copies of the closed store named template, beside threads that burn processor time.
    private func openAndVerify(_ check: (Database) throws -> Void) throws {
        try withBusyProcessors {
            for round in 0..<Self.roundCount {
                let name = "copy\(round)"
                try FileManager.default.copyItem(at: stores.url("template"), to: stores.url(name))
                let database = try stores.open(name) {
                    $0.compactionPolicy.leastByteCount = 64 << 10
                }
                try database.save(json: json(round), withID: "new")
                try check(database)
                try database.close()
                let findings = try stores.manager.verifyDatabase(named: name, encryptionKey: TestStores.key).findings
                #expect(findings.isEmpty, "round \(round)")
                try FileManager.default.removeItem(at: stores.url(name))
            }
        }
    }
}
