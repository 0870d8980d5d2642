import Foundation
import Testing

@testable import Coffer
@testable import CofferVault

@Suite("A database that is deleted by its name")
struct DeletingTests {
    let stores = TestStores()

    @Test(
        "A database that is deleted by its name is gone though nobody has a key for it, and another can have its name")
    func forgotten() throws {
        try stores.open().save(json: Data(#"{"n":1}"#.utf8), withID: "a")
        #expect(thrown { try stores.open(key: testKey(8)) }?.code == .wrongKey)
        try stores.manager.deleteDatabase(named: "db")
        #expect(try stores.snapshot().isEmpty)
        #expect(try stores.manager.allDatabaseNames == [])
        let again = try stores.open(key: testKey(8))
        #expect(try again.documentCount == 0)
    }

    @Test("A database that is deleted by its name may be damaged, or of a later version")
    func unreadable() throws {
        for byte in [0, 8, 100, 1000] {
            try stores.open().close()
            let manifest = stores.url().appending(path: "MANIFEST")
            var bytes = try Data(contentsOf: manifest)
            bytes[byte] ^= 0xFF
            try bytes.write(to: manifest)
            try stores.manager.deleteDatabase(named: "db")
            #expect(try stores.snapshot().isEmpty)
        }
    }

    @Test("A database that is deleted by its name must not be open, here or elsewhere")
    func open() throws {
        let database = try stores.open()
        #expect(thrown { try stores.manager.deleteDatabase(named: "db") }?.code == .databaseOpen)
        #expect(try database.documentCount == 0)
        try database.close()
        for access in [LockedStore.Access.readWrite, .readOnly] {
            let elsewhere = try LockedStore.open(path: stores.url().path, access: access)
            #expect(thrown { try stores.manager.deleteDatabase(named: "db") }?.code == .busy)
            elsewhere.close()
        }
        _ = try stores.open()
        try stores.manager.deleteDatabase(named: "db")
    }

    @Test("A path that is deleted by its name must be a database: nothing else is touched")
    func missing() throws {
        #expect(thrown { try stores.manager.deleteDatabase(named: "db") }?.code == .databaseNotFound)
        _ = try stores.open("other")
        #expect(thrown { try stores.manager.deleteDatabase(named: "db") }?.code == .databaseNotFound)
        #expect(thrown { try stores.manager.deleteDatabase(named: "../db") }?.code == .invalidDatabaseName)
        try FileManager.default.createDirectory(at: stores.url(), withIntermediateDirectories: false)
        try Data("mine".utf8).write(to: stores.url().appending(path: "file"))
        let before = try stores.snapshot()
        #expect(thrown { try stores.manager.deleteDatabase(named: "db") }?.code == .notAStore)
        #expect(try stores.snapshot() == before)
    }

    @Test("A database that is deleted by its name is deleted by a task as well")
    func task() async throws {
        _ = try stores.open()
        try await stores.manager.deleteDatabase(named: "db")
        #expect(try stores.snapshot().isEmpty)
    }
}
