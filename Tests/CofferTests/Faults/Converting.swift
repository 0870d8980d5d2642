import CofferFaults
import Foundation

@testable import Coffer
@testable import CofferVault

/// Converts a store to another storage engine: with documents, attachments, a second key that has a label, and a log that was
/// not copied into its file.
struct Converting: StoreChange {
    let key: SymmetricKey?
    let from: StorageType
    let to: StorageType
    var keys: [SymmetricKey?] { [key] }

    func prepare(_ stores: TestStores) throws {
        stores.manager.storageType = from
        try ChangingKey(keys: [key, nil]).prepare(stores)
        let database = try stores.open(key: key)
        try database.addKey(testKey(20), label: "stays")
        try database.saveDocument(MutableDocument(id: "last", ["n": 1]))
        database.storage.refuseMoreWork()
        try database.close()
    }

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        // As an opening that asks for it, and as a call.
        if to == .sealed {
            let database = try stores.open(key: key) {
                $0.create = false
                $0.storageType = to
            }
            try acknowledge()
            try database.close()
        } else {
            let database = try stores.open(key: key) { $0.create = false }
            defer { try? database.close() }
            try database.convert(to: to)
            try acknowledge()
        }
    }
}
