import CofferSealing
import Foundation
import Testing

@testable import CofferVault

@Suite("Unlocking")
struct UnlockTests {
    @Test("Each of eight keys opens its own slot")
    func eightSlots() throws {
        let manifest = try Manifest(bytes: ManifestVector(named: "valid-eight-slots").bytes)
        #expect(manifest.slots.count == 8)
        for index in 0..<8 {
            let key = index % 2 == 0 ? rawKey(UInt8(index)) : SymmetricKey(password: "password \(index)")
            #expect(try manifest.unlock(with: key).openedSlot == manifest.slots[index].id)
        }
        #expect(throws: CofferError(.wrongKey)) { try manifest.unlock(with: rawKey(1)) }
        #expect(throws: CofferError(.wrongKey)) { try manifest.unlock(with: SymmetricKey(password: "password 0")) }
    }

    /// 2^18 takes most of a second and 256 MiB; HKDF some microseconds.
    @Test("32 bytes never cost the derivation of a password")
    func rawKeysSkipPasswordSlots() throws {
        let manifest = try Manifest(bytes: ManifestVector(named: "in-bounds-scrypt-18-8-1").bytes)
        let time = shortestTime {
            #expect(throws: CofferError(.wrongKey)) { try manifest.unlock(with: rawKey()) }
        }
        #expect(time < .milliseconds(20))
    }

    @Test("A password costs one derivation for each password slot until one opens, and none for the others")
    func passwordsSkipRawSlots() throws {
        let raw = try Manifest(bytes: ManifestVector(named: "valid-raw-key").bytes)
        let time = shortestTime {
            #expect(throws: CofferError(.wrongKey)) { try raw.unlock(with: SymmetricKey(password: "password")) }
        }
        #expect(time < .milliseconds(20))
    }

    @Test("A missing key costs no derivation")
    func noKey() throws {
        let manifest = try Manifest(bytes: ManifestVector(named: "in-bounds-pbkdf2-2000000").bytes)
        let time = shortestTime {
            #expect(throws: CofferError(.keyRequired)) { try manifest.unlock(with: nil) }
        }
        #expect(time < .milliseconds(20))
    }

    @Test("What a manifest says of itself holds no key, no salt and no wrapped key")
    func slotsAreDescribed() throws {
        let manifest = try Manifest(bytes: ManifestVector(named: "valid-password-standard-cost").bytes)
        let slot = try #require(manifest.slots.first)
        #expect(slot.derivation == .scrypt(log2N: 16, r: 8, p: 2))
        #expect(slot.derivation.takesPassword)
        #expect(slot.creationTime == 1_700_000_000)
        #expect(slot.id.description.count == 16)
        #expect(manifest.storeUUID.description.count == 36)
        #expect(manifest.databaseProfile == .portableSQLCipher)
        #expect(manifest.attachmentFormat == .cobblestone256)
    }

    @Test("Keys of different purposes, generations and stores differ")
    func keysDiffer() throws {
        let scratch = Scratch()
        var keys: Set<[UInt8]> = []
        for name in ["a", "b"] {
            let (store, unlocked) = try LockedStore.create(
                path: scratch.path + "/\(name).coffer", key: rawKey(), buildDatabase: buildStandIn)
            for purpose in UnlockedManifest.KeyPurpose.allCases {
                keys.insert(try #require(try unlocked.key(for: purpose)).withBytes { Array($0) })
            }
            store.close()
            // A change of the key makes another master key, too. The label has to do without.
            let labels = (1...3).map {
                KeyLabel.subkey(for: "database", of: unlocked.manifest.storeUUID, generation: $0)
            }
            #expect(Set(labels).count == 3)
        }
        #expect(keys.count == 10)
    }

    @Test("An error of unlocking names no key")
    func errorsHoldNoKeys() throws {
        let manifest = try Manifest(bytes: ManifestVector(named: "valid-password-scrypt").bytes)
        let error = #expect(throws: CofferError(.wrongKey)) {
            try manifest.unlock(with: SymmetricKey(password: "hunter2hunter2"))
        }
        #expect(error.map { "\($0)".contains("hunter2") } == false)
        #expect(error?.status == 401)
    }
}
