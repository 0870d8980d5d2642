import CofferSealing
import CofferVault
import Foundation
import Testing

@Suite("Key slots")
struct SlotTests {
    let scratch = Scratch.inMemory

    private func manifest(_ byte: UInt8 = 1) throws -> UnlockedManifest {
        try Manifest.read(path: scratch.store).unlock(with: rawKey(byte))
    }

    private func newSlot(_ key: SymmetricKey, in manifest: UnlockedManifest) throws(CofferError) -> KeySlot {
        try manifest.newSlot(openedBy: key, cost: cheap)
    }

    private func purposeKeys(_ manifest: UnlockedManifest) throws -> [[UInt8]] {
        try UnlockedManifest.KeyPurpose.allCases.map { try #require(try manifest.key(for: $0)).withBytes { Array($0) } }
    }

    @Test("Key slots change, and nothing else does but the sequence: every key leads to what the first one did")
    func sameMasterKey() throws {
        try makeStore(at: scratch.store, key: rawKey(1))
        let first = try manifest()
        let keys = try purposeKeys(first)
        let password = SymmetricKey(password: "pass")
        try changeSlots(at: scratch.store) { try $0.adding(newSlot(password, in: $0)) }
        try changeSlots(at: scratch.store) { try $0.adding(newSlot(rawKey(3), in: $0)) }
        for key in [rawKey(1), password, rawKey(3)] {
            let unlocked = try Manifest.read(path: scratch.store).unlock(with: key)
            #expect(try purposeKeys(unlocked) == keys)
            #expect(unlocked.manifest.sequence == 3)
            #expect(unlocked.manifest.generationName == first.manifest.generationName)
            #expect(unlocked.manifest.storeUUID == first.manifest.storeUUID)
            #expect(unlocked.unlockingKey == key)
        }
        let slots = try manifest().manifest.slots
        #expect(slots.map(\.derivation) == [.hkdfSHA256, .scrypt(log2N: 10, r: 8, p: 1), .hkdfSHA256])
        #expect(slots[0] == first.manifest.slots[0])
        #expect(Set(slots.map(\.id)).count == 3)
    }

    @Test("Key slots are eight at most, and a place that becomes free is used again")
    func eight() throws {
        try makeStore(at: scratch.store, key: rawKey(1))
        for byte: UInt8 in 2...8 {
            try changeSlots(at: scratch.store) { try $0.adding(newSlot(rawKey(byte), in: $0)) }
        }
        let full = try manifest()
        #expect(throws: CofferError(.conflict)) { try full.checkHasRoom() }
        #expect(throws: CofferError(.conflict)) { try full.adding(newSlot(rawKey(9), in: full)) }
        let third = full.manifest.slots[2].id
        try changeSlots(at: scratch.store) { try $0.removing(third) }
        try manifest().checkHasRoom()
        #expect(throws: CofferError(.wrongKey)) { try manifest(3) }
        try changeSlots(at: scratch.store) { try $0.adding(newSlot(rawKey(9), in: $0)) }
        #expect(try manifest(9).openedSlot == manifest().manifest.slots[2].id)
        for byte: UInt8 in [1, 2, 4, 5, 6, 7, 8, 9] { #expect(try manifest(byte).manifest.slots.count == 8) }
    }

    @Test("Key slots never go all: the last one can't be removed, only replaced")
    func last() throws {
        try makeStore(at: scratch.store, key: rawKey(1))
        let old = try manifest()
        let id = try #require(old.openedSlot)
        #expect(throws: CofferError(.conflict)) { try old.removing(id) }
        try changeSlots(at: scratch.store) {
            try $0.replacing(id, with: newSlot(rawKey(2), in: $0), openedBy: rawKey(2))
        }
        #expect(throws: CofferError(.wrongKey)) { try manifest(1) }
        #expect(try manifest(2).manifest.slots.count == 1)
        #expect(try manifest(2).openedSlot != id)
    }

    @Test("Key slots that aren't there can't be removed or replaced")
    func missing() throws {
        try makeStore(at: scratch.store, key: rawKey(1))
        let old = try manifest()
        #expect(throws: CofferError(.invalidArgument)) { try old.removing(KeySlot.ID(1)) }
        #expect(throws: CofferError(.invalidArgument)) {
            try old.replacing(KeySlot.ID(1), with: newSlot(rawKey(2), in: old), openedBy: rawKey(2))
        }
    }

    @Test("Key slots tell by which key the store was opened, whatever becomes of it")
    func opened() throws {
        try makeStore(at: scratch.store, key: rawKey(1))
        let one = try manifest()
        let two = try one.adding(newSlot(rawKey(2), in: one))
        #expect(two.openedSlot == one.openedSlot)
        #expect(two.unlockingKey == rawKey(1))
        let own = try #require(one.openedSlot)
        let added = two.manifest.slots[1].id
        let without = try two.removing(own)
        #expect(without.openedSlot == nil)
        #expect(without.unlockingKey == nil)
        #expect(try purposeKeys(without) == purposeKeys(one))
        let replaced = try two.replacing(own, with: newSlot(rawKey(3), in: two), openedBy: rawKey(3))
        #expect(replaced.openedSlot == replaced.manifest.slots[0].id)
        #expect(replaced.openedSlot != own)
        #expect(replaced.unlockingKey == rawKey(3))
        let other = try two.replacing(added, with: newSlot(rawKey(3), in: two), openedBy: rawKey(3))
        #expect(other.openedSlot == own)
        #expect(other.unlockingKey == rawKey(1))
    }

    @Test("Key slots are found by the key that opens them, and one can be left out")
    func found() throws {
        try makeStore(at: scratch.store, key: rawKey(1))
        let password = SymmetricKey(password: "pass")
        try changeSlots(at: scratch.store) { try $0.adding(newSlot(password, in: $0)) }
        for opener in [rawKey(1), password] {
            let unlocked = try Manifest.read(path: scratch.store).unlock(with: opener)
            let slots = unlocked.manifest.slots
            #expect(try unlocked.slot(openedBy: rawKey(1)) == slots[0])
            #expect(try unlocked.slot(openedBy: password) == slots[1])
            #expect(try unlocked.slot(openedBy: rawKey(1), skipping: slots[0].id) == nil)
            #expect(try unlocked.slot(openedBy: rawKey(1), skipping: slots[1].id) == slots[0])
            #expect(try unlocked.slot(openedBy: password, skipping: slots[1].id) == nil)
            for wrong in [rawKey(2), SymmetricKey(password: "Pass")] {
                #expect(try unlocked.slot(openedBy: wrong) == nil)
            }
        }
    }

    @Test("Key slots are of encrypted stores alone, and for no empty password")
    func refused() throws {
        try makeStore(at: scratch.store, key: nil)
        let open = try Manifest.read(path: scratch.store).unlock(with: nil)
        #expect(throws: CofferError(.notEncrypted)) { try newSlot(rawKey(), in: open) }
        let other = Scratch.inMemory
        try makeStore(at: other.store, key: rawKey(1))
        let unlocked = try Manifest.read(path: other.store).unlock(with: rawKey(1))
        #expect(throws: CofferError(.invalidKey)) { try newSlot(SymmetricKey(password: ""), in: unlocked) }
    }

    @Test("Key slots are not changed by who only reads, nor in a closed store")
    func readOnly() throws {
        try makeStore(at: scratch.store, key: rawKey(1))
        let before = scratch.snapshot
        let store = try LockedStore.open(path: scratch.store, access: .readOnly)
        let next = try manifest().adding(newSlot(rawKey(2), in: manifest()))
        #expect(throws: CofferError(.readOnly)) { try store.replaceSlots(by: next) }
        store.close()
        #expect(throws: CofferError(.closed)) { try store.replaceSlots(by: next) }
        #expect(scratch.snapshot == before)
    }

    @Test("Key slots are authenticated: one that is put back from an older manifest is noticed")
    func putBack() throws {
        try makeStore(at: scratch.store, key: rawKey(1))
        try changeSlots(at: scratch.store) { try $0.adding(newSlot(rawKey(2), in: $0)) }
        let two = try manifest().manifest.bytes
        try changeSlots(at: scratch.store) { try $0.removing($0.manifest.slots[1].id) }
        var forged = try manifest().manifest.bytes
        // The second slot, as it was, and a checksum that fits.
        forged.replaceSubrange(176..<288, with: two[176..<288])
        forged.replaceSubrange(960..<992, with: try Digest.sha256(of: Array(forged[..<960])))
        for byte: UInt8 in 1...2 {
            #expect(throws: CofferError(.damaged)) { try Manifest(bytes: forged).unlock(with: rawKey(byte)) }
        }
    }
}
