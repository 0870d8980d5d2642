import CofferFaults
import Foundation

@testable import Coffer
@testable import CofferVault

/// Makes a backup beside the store, which itself does not change.
struct BackingUp: StoreChange {
    let key: SymmetricKey?
    var keys: [SymmetricKey?] { [key] }
    var neighbours: [String] { ["copy.coffer"] }

    func prepare(_ stores: TestStores) throws { try SavingAttachments(key: key).prepare(stores) }

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        let database = try stores.open(key: key) { $0.create = false }
        defer { try? database.close() }
        try database.backup(to: stores.url("copy"), encryptionKey: testKey(8))
        try acknowledge()
    }

    func checkNeighbours(_ stores: TestStores, acknowledged: Int) throws {
        guard stores.manager.databaseExists(named: "copy") else {
            let isFree = !FileManager.default.fileExists(atPath: stores.url("copy").path)
            guard isFree && acknowledged == 0 else { throw CofferError(.damaged, "half a backup, or none") }
            return
        }
        let copy = try stores.existing("copy", key: testKey(8))
        defer { try? copy.close() }
        let content = try copy["before"]?.currentRevision?.attachment(named: "content")?.content
        guard content?.count == 20_000, try copy.documentCount == 1 else {
            throw CofferError(.damaged, "a backup without everything")
        }
    }
}

/// Installs a store, in the place of another or where none was.
struct Installing: StoreChange {
    let keys: [SymmetricKey?]
    let replaces: Bool
    var neighbours: [String] { ["bundle"] }

    private func bundle(_ stores: TestStores) -> URL { stores.directory.appending(path: "bundle/source.coffer") }

    func prepare(_ stores: TestStores) throws {
        let source = try stores.open("source", key: nil)
        let draft = try source.document(withID: "bundled").newRevision()
        draft.setAttachment(named: "content", contentType: nil, content: AttachmentTests.bytes(30_000, seed: 3))
        try draft.save()
        try FileManager.default.createDirectory(
            at: bundle(stores).deletingLastPathComponent(), withIntermediateDirectories: false)
        try source.backup(to: bundle(stores), encryptionKey: keys[1])
        try source.delete()
        if replaces { try SavingAttachments(key: keys[0]).prepare(stores) }
    }

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        try stores.manager.replaceDatabase(
            named: "db", withDatabaseAt: bundle(stores), encryptionKey: keys[1])
        try acknowledge()
    }
}
