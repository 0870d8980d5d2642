internal import Coffer
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// What can be known of a store without a key, and without opening it.
struct StoreAudit {
    let path: String
    let info: StoreInfo
    let sizes: StoreSizes
    /// What key changes that were cut short have left; nil if somebody has the store open, and may be making it.
    let leftovers: [OldGeneration]?
    /// Whether this user may write to it.
    let isWritable: Bool
    let holders: [LockHolders.Holder]

    /// - Throws: what keeps MANIFEST from being read.
    init(_ argument: String, holders: LockHolders) throws {
        path = argument
        let store = try StorePath(argument)
        let manager = try Manager(directory: store.folder)
        info = try manager.storeInfo(named: store.databaseName)
        sizes = try StoreSizes(of: store, generation: info.generation)
        leftovers = try? manager.oldGenerations(ofDatabaseNamed: store.databaseName)
        isWritable = ["", "/MANIFEST"].allSatisfy { unsafe access(store.path + $0, W_OK) == 0 }
        self.holders = holders.holders(of: store.path)
    }
}

extension StoreInfo {
    /// How old the data key is at least; nil for a store that is not encrypted.
    func dataKeyAge(at now: Date) -> Duration? {
        dataKeyCreated.map { .seconds(max(0, Int64(now.timeIntervalSince($0)))) }
    }
}
