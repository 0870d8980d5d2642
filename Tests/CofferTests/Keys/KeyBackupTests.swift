import CofferVault
import Foundation
import Testing

@testable import Coffer

@Suite("Backups of keys")
struct KeyBackupTests {
    let stores = TestStores()
    private let key = TestStores.key
    private let other = testKey(8)

    private var manager: Manager { stores.manager }
    private var manifest: URL { stores.url().appending(path: "MANIFEST") }

    /// Makes a store with a document and an attachment.
    private func make(_ name: String = "db", key: SymmetricKey? = TestStores.key) throws {
        let database = try stores.open(name, key: key)
        let draft = try database.document(withID: "a").newRevision()
        draft["name"] = name
        draft.setAttachment(named: "x", contentType: nil, content: Data("content of \(name)".utf8))
        try draft.save()
        try database.close()
    }

    private func backup(_ name: String = "db") throws -> Data { try manager.keyBackup(ofDatabaseNamed: name) }

    private func restore(_ backup: Data, _ key: SymmetricKey? = TestStores.key, _ name: String = "db") throws {
        try manager.restoreKeys(ofDatabaseNamed: name, from: backup, encryptionKey: key)
    }

    private func expectWhole(_ name: String = "db", key: SymmetricKey? = TestStores.key) throws {
        for readOnly in [true, false] {
            let database = try stores.open(name, key: key) { ($0.create, $0.readOnly) = (false, readOnly) }
            #expect(try database["a"]?.currentRevision?["name"] == name)
            #expect(
                try database["a"]?.currentRevision?.attachment(named: "x")?.content == Data("content of \(name)".utf8))
            try database.close()
        }
    }

    /// What a refused restoring says; it must leave every byte as it was.
    private func refusal(
        _ backup: Data, _ key: SymmetricKey? = TestStores.key, _ name: String = "db"
    ) throws -> CofferError? {
        let before = try stores.snapshot()
        let error = thrown { try restore(backup, key, name) }
        #expect(try stores.snapshot() == before)
        return error
    }

    @Test("Backups of keys bring back a MANIFEST that was lost or damaged", arguments: [true, false])
    func lost(isEncrypted: Bool) throws {
        let key = isEncrypted ? key : nil
        try make(key: key)
        let backup = try backup()
        #expect(backup == (try Data(contentsOf: manifest)))
        let damages: [(String, (inout Data) -> Void)] = [
            ("empty", { $0 = Data() }), ("cut", { $0 = $0.prefix(1023) }), ("longer", { $0 += [0] }),
            ("a bit", { $0[700] ^= 1 }), ("another file", { $0 = Data("no manifest".utf8) }),
        ]
        for (name, damage) in damages {
            try manifest.patch(damage)
            #expect(thrown { try stores.open(key: key) { $0.create = false } }?.code == .damaged, "\(name)")
            try restore(backup, key)
            try expectWhole(key: key)
        }
        try FileManager.default.removeItem(at: manifest)
        #expect(thrown { try stores.open(key: key) { $0.create = false } }?.code == .notAStore)
        try restore(backup, key)
        try expectWhole(key: key)
        let attributes = try FileManager.default.attributesOfItem(atPath: manifest.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test("Backups of keys have a sequence above the store's and the database's, whichever is higher")
    func sequences() throws {
        try make()
        let backup = try backup()
        let database = try stores.open()
        for number in 20..<25 { try database.removeKey(database.addKey(testKey(UInt8(number))).id) }
        try database.close()
        let before = try manager.storeInfo(named: "db").sequence
        let restored = try manager.restoreKeys(ofDatabaseNamed: "db", from: backup, encryptionKey: key)
        #expect(restored.sequence == before + 1)
        #expect(try manager.storeInfo(named: "db").sequence == before + 1)
        // The database is one behind, so that here the store's is the higher one.
        #expect(try manager.restoreKeys(ofDatabaseNamed: "db", from: backup, encryptionKey: key).sequence == before + 2)
        try FileManager.default.removeItem(at: manifest)
        // Nobody has told the database about the last one yet.
        #expect(try manager.restoreKeys(ofDatabaseNamed: "db", from: backup, encryptionKey: key).sequence == before + 1)
        try expectWhole()
        // Recovered, and so one further.
        #expect(try manager.storeInfo(named: "db").sequence == before + 2)
    }

    @Test("Backups of keys bring back keys that were replaced or removed, and end those that came since")
    func formerKeys() throws {
        try make()
        var database = try stores.open()
        let second = try database.addKey(testKey(20), label: "second")
        try database.close()
        let backup = try backup()
        database = try stores.open()
        try database.removeKey(second.id)
        try database.replaceKey(with: other, label: "other")
        try database.addKey(testKey(21), label: "late")
        try database.close()
        #expect(try refusal(backup, other)?.code == .wrongKey)
        #expect(try refusal(backup, nil)?.code == .keyRequired)
        try restore(backup, testKey(20))
        for gone in [other, testKey(21)] {
            #expect(thrown { try stores.open(key: gone) { $0.create = false } }?.code == .wrongKey)
        }
        try expectWhole()
        try expectWhole(key: testKey(20))
        database = try stores.open()
        #expect(try database.keys.map(\.label) == [nil, nil])
        try database.close()
    }

    @Test(
        "Backups of keys of another store or of an earlier generation are a 409, and change nothing",
        arguments: [false, true])
    func another(isLost: Bool) throws {
        try make()
        try make("second")
        let foreign = try backup("second")
        let early = try backup()
        let database = try stores.open()
        try database.changeEncryptionKey(to: key)
        try database.close()
        if isLost { try FileManager.default.removeItem(at: manifest) }
        #expect(try refusal(early)?.code == (isLost ? .notAStore : .conflict))
        #expect(try refusal(foreign)?.code == (isLost ? .notAStore : .conflict))
        // A former generation that was left there does not come back.
        if isLost {
            let names = try FileManager.default.contentsOfDirectory(atPath: stores.url().path)
            let current = try #require(names.first { $0.hasPrefix("g0") })
            let former = try Manifest(bytes: Array(early)).generationName
            try FileManager.default.copyItem(
                at: stores.url().appending(path: current), to: stores.url().appending(path: former))
            #expect(try refusal(early)?.code == .conflict)
        }
    }

    @Test("Backups of keys have to be what was written, to the last bit")
    func damagedBackup() throws {
        try make()
        let backup = try backup()
        #expect(try refusal(Data())?.code == .damaged)
        #expect(try refusal(backup.prefix(1023))?.code == .damaged)
        #expect(try refusal(backup + [0])?.code == .damaged)
        for offset in stride(from: 0, to: 1024, by: 97) {
            var changed = backup
            changed[offset] ^= 0x10
            #expect(thrown { try restore(changed) }?.code == .damaged, "byte \(offset)")
        }
        try restore(backup)
        try expectWhole()
    }

    @Test("Backups of keys are proven by the database, where a MANIFEST is lost", arguments: [true, false])
    func otherDatabase(isEncrypted: Bool) throws {
        let key = isEncrypted ? key : nil
        try make(key: key)
        try make("second", key: key)
        let backup = try backup()
        try FileManager.default.removeItem(at: manifest)
        let file = try stores.databaseFile()
        try FileManager.default.removeItem(at: file)
        try FileManager.default.copyItem(at: stores.databaseFile("second"), to: file)
        #expect(try refusal(backup, key)?.code == (isEncrypted ? .damaged : .conflict))
        try Data().write(to: file)
        #expect(try refusal(backup, key)?.code == .damaged)
    }

    @Test("Backups of keys are refused where there is no store, or it is open, here or elsewhere")
    func unavailable() throws {
        try make()
        let backup = try backup()
        #expect(try refusal(backup, key, "none")?.code == .databaseNotFound)
        #expect(try refusal(backup, key, "No")?.code == .invalidDatabaseName)
        try FileManager.default.createDirectory(at: stores.url("empty"), withIntermediateDirectories: false)
        #expect(try refusal(backup, key, "empty")?.code == .notAStore)
        for access in [LockedStore.Access.readOnly, .readWrite] {
            let elsewhere = try LockedStore.open(path: stores.url().path, access: access)
            #expect(try refusal(backup)?.code == .busy)
            elsewhere.close()
        }
        let database = try stores.open()
        #expect(thrown { try restore(backup) }?.code == .databaseOpen)
        #expect(try self.backup().count == 1024)
        try database.close()
        try restore(backup)
    }

    @Test("Backups of keys are proven by a key that is given, and are of what can be read")
    func made() throws {
        try make()
        #expect(try manager.keyBackup(ofDatabaseNamed: "db", encryptionKey: key).count == 1024)
        #expect(thrown { try manager.keyBackup(ofDatabaseNamed: "db", encryptionKey: other) }?.code == .wrongKey)
        #expect(thrown { try manager.keyBackup(ofDatabaseNamed: "none") }?.code == .databaseNotFound)
        try manifest.patch { $0[500] ^= 1 }
        #expect(thrown { try manager.keyBackup(ofDatabaseNamed: "db") }?.code == .damaged)
    }

    @Test("Backups of keys in a task do the same")
    func task() async throws {
        try make()
        let backup = try backup()
        try FileManager.default.removeItem(at: manifest)
        let info = try await manager.restoreKeys(ofDatabaseNamed: "db", from: backup, encryptionKey: key)
        #expect(info.keySlots.count == 1)
        try expectWhole()
    }
}
