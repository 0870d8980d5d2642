import Foundation

@testable import Coffer
@testable import CofferRecords
import TestSupport

extension SoakActor {
    /// Does something to the store as a whole, which must leave all that is in it.
    func tend(_ action: SoakAction, _ place: SoakPlace, _ random: inout SeededNumbers) throws {
        let database = place.database
        switch action {
        case .compact:
            try database.compact()
        case .verify:
            let result = try database.verify(random.pick([.everything, .pages, .documents]) ?? .everything)
            try soakExpect(result.isSound, "an open store has \(result.findings.prefix(5))")
        case .backup:
            let (url, key) = backupPlace(place, &random)
            try database.backup(to: url, encryptionKey: key)
            try judgeBackup(place, key)
        case .rekey:
            let (key, kept) = nextKeys(place, &random)
            try database.changeEncryptionKey(to: key, keeping: kept, droppingOtherKeys: true)
        case .keys:
            guard place.store.kind != .unencrypted else { return }
            try tolerating([.conflict, .invalidArgument]) {
                let key = try database.addKey(ownKey, label: random.isOne(in: 2) ? name : nil)
                try database.removeKey(key.id)
            }
        case .index:
            if random.isOne(in: 3) {
                try SoakIndexes.view(in: database).deleteIndex()
            } else if random.isOne(in: 3) {
                try database.deleteIndex(named: "by owner")
            } else {
                try database.createIndex(named: "by owner", on: "owner", "n")
                try database.updateIndexes()
            }
        default: break
        }
    }

    /// Has the next opening find a compaction due: the store looks as if much could be given back. What is saved here would
    /// take seconds to come to the MiB by which that is noted.
    static func owe(_ database: Database) throws {
        try database.storage.write { (writer) throws(CofferError) in
            try writer.change { () throws(CofferError) in try writer.records.compaction.note(reclaimable: 64 << 20) }
        }
    }

    // MARK: Keys

    /// A key that only this actor adds. A key change by another one drops it.
    var ownKey: SymmetricKey { testKey(UInt8(100 + number)) }

    /// What a change of the key is given: the key that opens the store always stays, so that others can open it whenever
    /// they like.
    func nextKeys(_ place: SoakPlace, _ random: inout SeededNumbers) -> (new: SymmetricKey?, kept: [SymmetricKey]) {
        guard place.store.kind != .unencrypted else { return (nil, []) }
        return random.isOne(in: 3) ? (TestStores.key, []) : (testKey(UInt8(50 + random.below(4))), [TestStores.key])
    }

    /// Others may have dropped the key, or filled the slots, meanwhile.
    func tolerating(_ codes: [CofferError.Code], _ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as CofferError where codes.contains(error.code) {}
    }

    // MARK: Backups

    private func backupName(_ place: SoakPlace) -> String { "backup_\(place.store.name)_\(name)" }

    func backupPlace(_ place: SoakPlace, _ random: inout SeededNumbers) -> (url: URL, key: SymmetricKey?) {
        (place.store.stores.url(backupName(place)), random.isOne(in: 3) ? nil : testKey(99))
    }

    /// The backup is sound and holds what its maker owns, who did nothing else meanwhile. Goes with it.
    func judgeBackup(_ place: SoakPlace, _ key: SymmetricKey?) throws {
        let (stores, name) = (place.store.stores, backupName(place))
        let result = try stores.manager.verifyDatabase(named: name, encryptionKey: key)
        try soakExpect(result.isSound, "a backup has \(result.findings.prefix(5))")
        let backup = try stores.open(name, key: key)
        // What expires is gone from the backup as it is opened, and not yet from the store.
        let before = model
        defer { model = before }
        try compareAll(in: backup)
        try backup.delete()
    }
}
