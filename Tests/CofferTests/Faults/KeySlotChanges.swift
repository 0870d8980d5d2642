import Foundation

@testable import Coffer

/// Puts a key in the place of the one that opens the store, beside another one that stays.
struct ReplacingKey: StoreChange {
    let keys: [SymmetricKey?]

    func prepare(_ stores: TestStores) throws {
        let database = try stores.open(key: keys[0])
        try database.save(json: json(1), withID: "before")
        try database.addKey(testKey(20), label: "stays")
        try database.close()
    }

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        let database = try stores.open(key: keys[0]) { $0.create = false }
        defer { try? database.close() }
        guard let key = keys[1] else { throw CofferError(.keyRequired) }
        try database.replaceKey(with: key, label: "new")
        try acknowledge()
        try database.save(json: json(2), withID: "after")
        try acknowledge()
    }
}

/// Adds a key, replaces it and removes it again.
struct ChangingSlots: StoreChange {
    let key: SymmetricKey?
    var keys: [SymmetricKey?] { [key] }

    func prepare(_ stores: TestStores) throws {
        let database = try stores.open(key: key)
        try database.save(json: json(1), withID: "before")
        try database.close()
    }

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        let database = try stores.open(key: key) { $0.create = false }
        defer { try? database.close() }
        let added = try database.addKey(testKey(20), label: "added")
        try acknowledge()
        let replaced = try database.replaceKey(added.id, with: testKey(21))
        try acknowledge()
        try database.removeKey(replaced.id)
        try acknowledge()
    }
}
