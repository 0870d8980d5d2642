import CofferSealing
import CofferVault
import Foundation
import Testing

@Suite("How the database is kept")
struct ProfileTests {
    private func makeUnlocked(
        _ profile: Manifest.DatabaseProfile, in scratch: Scratch, names: Manifest.AttachmentNames = .sha1
    ) throws -> UnlockedManifest {
        let (store, unlocked) = try LockedStore.create(
            path: scratch.store, key: rawKey(), encryptedProfile: profile, attachmentNames: names,
            buildDatabase: buildStandIn)
        store.close()
        return unlocked
    }

    @Test("A store of sealed pages says so in MANIFEST, and its database has a key of its own purpose")
    func creation() throws {
        let scratch = Scratch()
        let unlocked = try makeUnlocked(.sealedPages, in: scratch)
        let manifest = try Manifest.read(path: scratch.store)
        #expect(manifest.databaseProfile == .sealedPages)
        #expect(manifest.isEncrypted)
        #expect(manifest.attachmentFormat == .cobblestone256)
        #expect(try manifest.bytes[56] == 3)
        #expect(try unlocked.databaseKey() == unlocked.key(for: .pages))
        #expect(try unlocked.databaseKey() != unlocked.key(for: .database))
        #expect(try openStore(at: scratch.store) == false)
    }

    @Test("A store without a key is plain SQLite, however an encrypted one would be kept")
    func withoutKey() throws {
        let scratch = Scratch()
        let (store, unlocked) = try LockedStore.create(
            path: scratch.store, key: nil, encryptedProfile: .sealedPages, buildDatabase: buildStandIn)
        store.close()
        #expect(unlocked.manifest.databaseProfile == .sqlite)
    }

    @Test(
        "A manifest for another form of the database has the same slots and master key, and the next generation",
        arguments: [Manifest.DatabaseProfile.portableSQLCipher, .sealedPages])
    func conversion(to profile: Manifest.DatabaseProfile) throws {
        let scratch = Scratch()
        var old = try makeUnlocked(
            profile == .sealedPages ? .portableSQLCipher : .sealedPages, in: scratch, names: .keyed)
        // A gap between slots stays where it is.
        for key in [rawKey(8), rawKey(9)] { old = try old.adding(old.newSlot(openedBy: key, cost: cheap)) }
        old = try old.removing(old.manifest.slots[1].id)
        let new = try old.nextGeneration(convertedTo: profile)
        #expect(new.manifest.databaseProfile == profile)
        #expect(new.manifest.generation == old.manifest.generation + 1)
        #expect(new.manifest.sequence == old.manifest.sequence + 1)
        #expect(new.manifest.generationTag != old.manifest.generationTag)
        #expect(new.manifest.storeUUID == old.manifest.storeUUID)
        #expect(new.manifest.attachmentNames == .keyed)
        #expect(new.manifest.slots == old.manifest.slots)
        #expect(try new.manifest.bytes[64..<960] == old.manifest.bytes[64..<960])
        #expect(new.openedSlot == old.openedSlot)
        for key in [rawKey(), rawKey(9)] {
            let opened = try Manifest(bytes: new.manifest.bytes).unlock(with: key)
            #expect(try opened.databaseKey() == new.databaseKey())
            #expect(try opened.key(for: .attachments) != old.key(for: .attachments))
        }
        #expect(throws: CofferError(.wrongKey)) { try new.manifest.unlock(with: rawKey(8)) }
        // Back again, it is not the generation that it was.
        let back = try new.nextGeneration(convertedTo: old.manifest.databaseProfile)
        #expect(try back.databaseKey() != old.databaseKey())
    }

    @Test("A store without encryption is not converted, and an encrypted one not to a form without encryption")
    func refusals() throws {
        let scratch = Scratch()
        let encrypted = try makeUnlocked(.portableSQLCipher, in: scratch)
        #expect(throws: CofferError(.invalidArgument)) { try encrypted.nextGeneration(convertedTo: .sqlite) }
        let other = Scratch()
        let (store, unlocked) = try LockedStore.create(path: other.store, key: nil, buildDatabase: buildStandIn)
        store.close()
        #expect(throws: CofferError(.notEncrypted)) { try unlocked.nextGeneration(convertedTo: .sealedPages) }
    }

    @Test("A change of the key keeps the form of an encrypted database, and makes a portable one of plain SQLite")
    func keyChange() throws {
        for profile in [Manifest.DatabaseProfile.portableSQLCipher, .sealedPages] {
            let old = try makeUnlocked(profile, in: Scratch())
            let new = try old.nextGeneration(openedBy: [rawKey(2)], cost: cheap, attachmentNames: .sha1)
            #expect(new.manifest.databaseProfile == profile)
            let plain = try new.nextGeneration(openedBy: [], cost: cheap, attachmentNames: .sha1)
            #expect(plain.manifest.databaseProfile == .sqlite)
            let again = try plain.nextGeneration(openedBy: [rawKey(3)], cost: cheap, attachmentNames: .sha1)
            #expect(again.manifest.databaseProfile == .portableSQLCipher)
        }
    }
}
