import CofferSealing
import CofferVault
import Foundation
import Testing

@Suite("A store on disk")
struct StoreTests {
    let scratch = Scratch()

    @Test("is made, opened with its key, and deleted", arguments: [true, false])
    func roundTrip(isEncrypted: Bool) throws {
        let key = isEncrypted ? rawKey() : nil
        try makeStore(at: scratch.store, key: key)
        #expect(try !openStore(at: scratch.store, key: key))
        let store = try LockedStore.open(path: scratch.store, access: .readWrite)
        #expect(try store.readManifest().isEncrypted == isEncrypted)
        try store.delete()
        #expect(scratch.names == [])
    }
}
