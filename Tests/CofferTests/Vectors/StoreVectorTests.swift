import Foundation
import Testing

@testable import Coffer
@testable import CofferVault

@Suite("Stores in Vectors/stores")
struct StoreVectorTests {
    let stores = TestStores()

    private func open(_ file: String, key: SymmetricKey?, readOnly: Bool) throws -> Database {
        let name = String(file.dropLast(".coffer".utf8.count)).replacing(":", with: "/")
        var options = DatabaseOptions()
        options.encryptionKey = key
        options.readOnly = readOnly
        return try stores.manager.openDatabase(named: name, options: options)
    }

    @Test("Stores in Vectors/stores are all there: each that was made on purpose, and each that must be refused")
    func count() {
        #expect(StoreVector.names(in: "valid") == StoreRecipe.all.map(\.name).sorted())
        #expect(StoreVector.names(in: "invalid").count == 73)
    }

    @Test(
        "Stores in Vectors/stores open by each of their keys and hold what they say, to read and to write",
        arguments: StoreVector.names(in: "valid"), [true, false])
    func valid(name: String, readOnly: Bool) throws {
        let vector = try StoreVector(valid: name)
        try StoreVector.unpack(name, into: stores.directory)
        let before = try stores.snapshot()
        let holds = try #require(vector.json["holds"])
        for key in try vector.keys() {
            let database = try open(vector.text("store"), key: key, readOnly: readOnly)
            let held = JSONValue.object(try StoreDescription.of(database))
            #expect(StoreDescription.difference(held, holds) == nil, "held, and said to be held")
            try database.close()
        }
        if readOnly { #expect(try stores.snapshot() == before) }
    }

    @Test(
        "Stores in Vectors/stores that are valid are a 401 for any other key, and stay as they were",
        arguments: StoreVector.names(in: "valid"))
    func wrongKeys(name: String) throws {
        let vector = try StoreVector(valid: name)
        try StoreVector.unpack(name, into: stores.directory)
        let before = try stores.snapshot()
        let isEncrypted = try vector.keys() != [nil]
        for key in [nil, testKey(0), SymmetricKey(password: "another")] where isEncrypted || key != nil {
            for readOnly in [true, false] {
                let error = thrown { try open(vector.text("store"), key: key, readOnly: readOnly) }
                #expect(error?.status == 401)
            }
        }
        #expect(try stores.snapshot() == before)
    }

    @Test(
        "Stores in Vectors/stores that are invalid are refused as they say, and stay as they were",
        arguments: StoreVector.names(in: "invalid"))
    func invalid(name: String) throws {
        let vector = try StoreVector(invalid: name)
        try vector.make(in: stores.directory)
        let before = try stores.snapshot()
        let key = try vector.json["key"].flatMap { try StoreVector.key($0) }
        for readOnly in [true, false] {
            let error = thrown {
                let database = try open(vector.text("store"), key: key, readOnly: readOnly)
                defer { try? database.close() }
                let error = thrown { try read(vector, database) }
                #expect(vector.json["reads"] != nil, "opens, and should not")
                if let error { throw error }
            }
            #expect(error?.code.description == vector.json["code"]?.stringValue)
            #expect(error?.status == vector.json["status"]?.integer)
            // One that opens for writing may be cleaned up.
            if readOnly || vector.json["reads"] == nil { #expect(try stores.snapshot() == before) }
        }
    }

    /// Reads what the vector says is damaged, after it has seen that something else is not.
    private func read(_ vector: StoreVector, _ database: Database) throws {
        guard let reads = vector.json["reads"]?.objectValue else { return }
        if let id = reads["intact"]?.stringValue {
            #expect(try database.document(withID: id).currentRevision?.json.isEmpty == false)
        }
        if let local = reads["localDocument"]?.stringValue {
            _ = try database.localDocument(withID: local)
            return
        }
        let revision = try database.document(withID: try #require(reads["document"]?.stringValue)).currentRevision
        guard let attachment = reads["attachment"]?.stringValue else {
            _ = try revision?.json
            return
        }
        _ = try revision?.attachment(named: attachment)?.content
    }

    /// Vectors that are there are never changed. `COFFER_WRITE_VECTORS=1` writes those that are missing.
    @Test(
        "Stores in Vectors/stores are written where one is missing",
        .enabled(if: ProcessInfo.processInfo.environment["COFFER_WRITE_VECTORS"] == "1", "asked for, and seldom"))
    func write() throws {
        for recipe in StoreRecipe.all where !StoreVector.names(in: "valid").contains(recipe.name) {
            let directory = stores.directory.appending(path: recipe.name)
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let vector = try recipe.write(to: directory)
            let file = StoreVector.folder.appending(path: "valid/\(recipe.name)")
            try StoreVector.pack(recipe.fileName, in: directory, as: file.appendingPathExtension("tar"))
            try Data("\(vector)\n".utf8).write(to: file.appendingPathExtension("json"))
        }
    }
}
