import Foundation

@testable import Coffer

/// Puts a backup of the keys back after the key was replaced: the old one opens the store again, and the new one does not.
struct RestoringKeys: StoreChange {
    let keys: [SymmetricKey?]
    var neighbours: [String] { ["backup"] }

    private func backup(_ stores: TestStores) -> URL { stores.directory.appending(path: "backup") }

    func prepare(_ stores: TestStores) throws {
        try SavingAttachments(key: keys[1]).prepare(stores)
        try stores.manager.keyBackup(ofDatabaseNamed: "db").write(to: backup(stores))
        let database = try stores.open(key: keys[1]) { $0.create = false }
        guard let key = keys[0] else { throw CofferError(.keyRequired) }
        try database.replaceKey(with: key)
        try database.close()
    }

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        try stores.manager.restoreKeys(
            ofDatabaseNamed: "db", from: try Data(contentsOf: backup(stores)), encryptionKey: keys[1])
        try acknowledge()
        // What finishes it.
        let database = try stores.open(key: keys[1]) { $0.create = false }
        defer { try? database.close() }
        try database.save(json: Data("{}".utf8), withID: "after")
        try acknowledge()
    }
}
