import Coffer
import Foundation
import Testing

@Suite("The age of a data key")
struct DataKeyAgeTests {
    private let stores = TestStores()
    private let key = SymmetricKey(password: "first")
    private let other = SymmetricKey(password: "second")

    private var created: Date? { get throws { try stores.manager.storeInfo(named: "db").dataKeyCreated } }

    @Test("The age of a data key is known without a key, and stays when other keys change, until all is encrypted anew")
    func stays() async throws {
        let start = Date()
        let database = try await stores.manager.database(named: "db", encryptionKey: key)
        let first = try #require(try created)
        #expect(abs(first.timeIntervalSince(start)) < 60)
        try await Task.sleep(for: .milliseconds(2_100))
        let original = try #require(try database.keys.first)
        try await database.replaceKey(original.id, with: other)
        let slots = try stores.manager.storeInfo(named: "db").keySlots
        try #require(slots.count == 1 && slots[0].created > first)
        #expect(try created == first)
        try await database.changeEncryptionKey(to: key)
        #expect(try #require(try created) > first)
    }

    @Test("The age of a data key is nil where nothing is encrypted")
    func plain() throws {
        _ = try stores.manager.database(named: "db")
        #expect(try created == nil)
    }
}
