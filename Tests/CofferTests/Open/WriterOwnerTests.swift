import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords

@Suite("The owner of the writer")
struct WriterOwnerTests {
    private let stores = TestStores()

    @Test("The writer can't be reached without its lock: the process stops")
    func withoutLock() async {
        await #expect(processExitsWith: .failure) {
            let stores = TestStores()
            let database = try stores.open()
            database.storage.writer.lend { _ in }
            exit(0)
        }
    }

    @Test("The writer can't be replaced while it is lent: the process stops")
    func replacedWhileLent() async {
        await #expect(processExitsWith: .failure) {
            let stores = TestStores()
            let database = try stores.open()
            try database.storage.alone { (_) throws(CofferError) in try database.storage.renewWriter() }
            exit(0)
        }
    }

    @Test("A renewed writer continues the sequences of the one before it, and its count of reclaimable bytes")
    func renewed() throws {
        let database = try stores.open()
        try database.save(json: json(1), withID: "a")
        try database.inTransaction { try database.document(withID: "a").delete() }
        let before = try database.storage.alone { (writer) throws(CofferError) in writer.state.counts }
        try database.storage.exclusively { () throws(CofferError) in try database.storage.renewWriter() }
        let after = try database.storage.alone { (writer) throws(CofferError) in writer.state.counts }
        #expect(after.lastSequence == 2 && after.lastSequence == before.lastSequence)
        #expect(after.reclaimableByteCount > 0 && after.reclaimableByteCount == before.reclaimableByteCount)
        let saved = try database.save(json: json(1), withID: "b")
        #expect(saved.sequence == 3)
    }
}
