import CofferSealing
import Foundation
import Testing

@testable import Coffer
@testable import CofferVault

@Suite("Opening a database")
struct OpeningTests {
    let stores = TestStores()

    @Test("A database that was created with a key opens with it and keeps its documents", arguments: [true, false])
    func roundTrip(isPassword: Bool) throws {
        let key = try isPassword ? SymmetricKey(password: "password123456") : SymmetricKey()
        var database: Database? = try stores.open(key: key)
        try database?.save(json: Data(#"{"name":"Robin"}"#.utf8), withID: "r")
        #expect(database?.isEncrypted == true)
        try database?.close()
        database = nil
        let again = try stores.open(key: key)
        #expect(try again["r"]?["name"] == "Robin")
    }

    @Test("A missing database is nil, or a 404, and nothing is made")
    func missing() throws {
        #expect(try stores.manager.existingDatabase(named: "db") == nil)
        #expect(try stores.manager.existingDatabase(named: "db", encryptionKey: TestStores.key) == nil)
        #expect(thrown { try stores.manager.openDatabase(named: "db") }?.code == .databaseNotFound)
        #expect(thrown { try stores.open { $0.readOnly = true } }?.status == 404)
        #expect(!stores.manager.databaseExists(named: "db"))
        #expect(!FileManager.default.fileExists(atPath: stores.directory.path))
        #expect(try stores.manager.allDatabaseNames == [])
    }

    @Test("An open database is returned as the same instance, by any manager, until nobody holds it")
    func sameInstance() throws {
        var database: Database? = try stores.open()
        let first = ObjectIdentifier(try #require(database))
        let other = try Manager(directory: stores.directory)
        #expect(try ObjectIdentifier(other.database(named: "db")) == first)
        #expect(try ObjectIdentifier(#require(try other.existingDatabase(named: "db"))) == first)
        #expect(try ObjectIdentifier(stores.open()) == first)
        try database?.save(json: Data("{}".utf8), withID: "a")
        database = nil
        // Closed by now, so that the key is asked for again.
        #expect(thrown { try other.database(named: "db") }?.code == .keyRequired)
        #expect(try stores.open()["a"] != nil)
    }

    @Test("A database that has to be encrypted is a 401 without a key, and nothing is made")
    func requiredEncryption() throws {
        try stores.open("plain", key: nil).close()
        for name in ["plain", "new"] {
            let refused = thrown { try stores.open(name, key: nil) { $0.requiresEncryption = true } }
            #expect(refused?.code == .keyRequired && refused?.status == 401)
            #expect(throws: (any Error).self) { try stores.open("plain") { $0.requiresEncryption = true } }
        }
        #expect(try stores.manager.allDatabaseNames == ["plain"])
        try stores.open("sealed") { $0.requiresEncryption = true }.close()
        #expect(thrown { try stores.open("sealed", key: nil) { $0.requiresEncryption = true } }?.code == .keyRequired)
        // One that is open already, too.
        let open = try stores.open("plain", key: nil)
        #expect(thrown { try stores.open("plain", key: nil) { $0.requiresEncryption = true } }?.code == .keyRequired)
        try open.close()
    }

    /// A manager of a symbolic link once found no database, and could create none.
    @Test("A database is the same by way of a symbolic link to its manager's directory")
    func throughLink() throws {
        let link = URL.temporaryDirectory.appending(path: "coffer-link-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: stores.directory, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: stores.directory)
        defer { try? FileManager.default.removeItem(at: link) }
        let linked = try Manager(directory: link)

        let database = try linked.database(named: "db", encryptionKey: TestStores.key)
        #expect(try stores.open() === database)
        #expect(try linked.existingDatabase(named: "db") === database)
        #expect(try linked.allDatabaseNames == ["db"])
        try database.close()
        #expect(try linked.existingDatabase(named: "db", encryptionKey: TestStores.key) != nil)
        #expect(thrown { try linked.existingDatabase(named: "db", encryptionKey: testKey(8)) }?.code == .wrongKey)
    }

    @Test("A database whose place is taken by a file or a link is not a store, which is another thing than missing")
    func notADirectory() throws {
        try stores.open("real").close()
        try Data("file".utf8).write(to: stores.url("file"))
        try FileManager.default.createSymbolicLink(at: stores.url("link"), withDestinationURL: stores.url("real"))
        let before = try stores.snapshot(ignoring: ["link.coffer"])
        for name in ["file", "link"] {
            #expect(thrown { try stores.manager.existingDatabase(named: name) }?.code == .notAStore)
            #expect(thrown { try stores.open(name) }?.code == .notAStore)
            #expect(thrown { try stores.open(name) { $0.readOnly = true } }?.code == .notAStore)
        }
        #expect(try stores.snapshot(ignoring: ["link.coffer"]) == before)
    }

    @Test("A database in a place that is a file is no missing one, and the file stays")
    func inFile() throws {
        try Data("file".utf8).write(to: stores.directory)
        #expect(thrown { try stores.manager.existingDatabase(named: "db") }?.code == .notAStore)
        #expect(thrown { try stores.open() }?.code == .ioFailed)
        #expect(try Data(contentsOf: stores.directory) == Data("file".utf8))
    }

    @Test("Opening checks the key of an open database, nil included")
    func checksOpen() throws {
        let database = try stores.open()
        #expect(thrown { try stores.open(key: nil) }?.code == .keyRequired)
        #expect(thrown { try stores.open(key: SymmetricKey()) }?.code == .wrongKey)
        #expect(thrown { try stores.manager.database(named: "db", encryptionKey: SymmetricKey()) }?.code == .wrongKey)
        #expect(try stores.manager.database(named: "db", encryptionKey: TestStores.key) === database)
    }

    @Test("A database that is open for reading only is busy for those who want to write, and writes nothing")
    func readOnly() throws {
        try stores.open().save(json: Data(#"{"a":1}"#.utf8), withID: "a")
        let before = try stores.snapshot()
        let database = try stores.open { $0.readOnly = true }
        #expect(database.isReadOnly)
        #expect(try database["a"]?["a"] == 1)
        #expect(try stores.open { $0.readOnly = true } === database)
        #expect(thrown { try stores.open() }?.code == .busy)
        #expect(thrown { try database.save(json: Data("{}".utf8)) }?.code == .readOnly)
        #expect(thrown { try database.delete() }?.code == .readOnly)
        #expect(thrown { try database.inTransaction {} }?.code == .readOnly)
        #expect(try database["a"]?["a"] == 1)
        try database.close()
        #expect(try stores.snapshot() == before)
    }

    @Test(
        "Database names that may not be are a 400",
        arguments: ["", "0", "123foo", "Foo", "/etc", "foo ", "_foo", "é", "a.b", "a\0"])
    func names(name: String) throws {
        #expect(thrown { try stores.open(name) }?.code == .invalidDatabaseName)
        #expect(thrown { try stores.manager.existingDatabase(named: name) }?.status == 400)
        #expect(!stores.manager.databaseExists(named: name))
        #expect(!FileManager.default.fileExists(atPath: stores.directory.path))
    }

    @Test(
        "Database names that may be make one directory each, and are listed",
        arguments: ["f", "foo123", "foo/($12)", "f+-_00/"])
    func goodNames(name: String) throws {
        let database = try stores.open(name)
        #expect(database.name == name)
        #expect(stores.manager.databaseExists(named: name))
        #expect(try stores.manager.allDatabaseNames == [name])
        #expect(try FileManager.default.contentsOfDirectory(atPath: stores.directory.path).count == 1)
    }

    @Test("A database name of 239 bytes is the longest")
    func longNames() throws {
        #expect(try stores.open(String(repeating: "a", count: 239)).name.count == 239)
        #expect(thrown { try stores.open(String(repeating: "a", count: 240)) }?.code == .invalidDatabaseName)
    }

    @Test("An engine that is not built in is a 406, and nothing is created")
    func storageType() throws {
        #expect(
            thrown { try stores.open { $0.storageType = StorageType(rawValue: "ForestDB") } }?.code
                == .storageTypeUnavailable)
        stores.manager.storageType = StorageType(rawValue: "ForestDB")
        #expect(thrown { try stores.manager.database(named: "db") }?.status == 406)
        #expect(!FileManager.default.fileExists(atPath: stores.directory.path))
        stores.manager.storageType = .sqlite
        #expect(try stores.open { $0.storageType = .sqlite }.isEncrypted)
    }

    @Test("A closed database says so, and closing it again does nothing")
    func closed() throws {
        let database = try stores.open()
        let document = database.document(withID: "a")
        let draft = try document.newRevision()
        try database.close()
        try database.close()
        #expect(thrown { _ = try document.properties }?.code == .closed)
        #expect(thrown { try draft.save() }?.code == .closed)
        #expect(thrown { try database.inTransaction {} }?.code == .closed)
        #expect(thrown { _ = try database.documentCount }?.code == .closed)
        #expect(thrown { try database.delete() }?.code == .closed)
        try stores.open().close()
    }

    @Test("A deleted database is gone, and its name is free")
    func delete() throws {
        let database = try stores.open()
        try database.save(json: Data("{}".utf8), withID: "a")
        try database.delete()
        #expect(try FileManager.default.contentsOfDirectory(atPath: stores.directory.path) == [])
        #expect(try stores.manager.existingDatabase(named: "db") == nil)
        #expect(try stores.open(key: nil)["a"] == nil)
    }

    @Test("A directory without a MANIFEST is not a store, and nothing in it is touched")
    func notAStore() throws {
        try FileManager.default.createDirectory(at: stores.url(), withIntermediateDirectories: true)
        try Data("mine".utf8).write(to: stores.url().appending(path: "notes.txt"))
        let before = try stores.snapshot()
        #expect(thrown { try stores.open() }?.code == .notAStore)
        #expect(thrown { try stores.open { $0.create = false } }?.code == .notAStore)
        #expect(thrown { try stores.manager.existingDatabase(named: "db") }?.status == 404)
        #expect(!stores.manager.databaseExists(named: "db"))
        #expect(try stores.snapshot() == before)
    }

    @Test("A store without a key says nothing that is secret")
    func info() throws {
        try stores.open(key: SymmetricKey(password: "password123456")).close()
        let info = try stores.manager.storeInfo(named: "db")
        #expect(info.isEncrypted)
        #expect(info.generation == 1)
        #expect(info.keySlots.map(\.kind) == [.scryptPassword(n: 1024, r: 8, p: 1)])
        var text = ""
        dump(info, to: &text)
        // The first slot's salt and wrapped key, and the code that authenticates it all: see docs/FORMAT.md.
        let manifest = try Data(contentsOf: stores.url().appending(path: "MANIFEST"))
        for secret in [manifest[80..<112], manifest[112..<152], manifest[992..<1024]] {
            #expect(secret.contains { $0 != 0 })
            #expect(!text.contains(hexadecimal(Array(secret.prefix(8)))))
            #expect(!text.contains(secret.prefix(6).base64EncodedString()))
        }
        try stores.open("plain", key: nil).close()
        #expect(try stores.manager.storeInfo(named: "plain").keySlots.isEmpty)
        #expect(thrown { try stores.manager.storeInfo(named: "none") }?.code == .databaseNotFound)
    }
}
