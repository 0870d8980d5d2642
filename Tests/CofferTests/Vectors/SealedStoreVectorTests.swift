import Foundation
import Testing

@testable import Coffer

/// Stores that nothing of Coffer has written: Vectors/sealed-pages/stores.py made them from FORMAT.md alone.
@Suite("Stores of sealed pages in Vectors/sealed-pages")
struct SealedStoreVectorTests {
    let stores = TestStores()

    private func open(_ file: String, key: SymmetricKey?, readOnly: Bool) throws -> Database {
        let name = String(file.dropLast(".coffer".utf8.count)).replacing(":", with: "/")
        var options = DatabaseOptions()
        options.encryptionKey = key
        options.readOnly = readOnly
        return try stores.manager.openDatabase(named: name, options: options)
    }

    @Test("Stores of sealed pages are all there: those that open, and those that must be refused")
    func count() {
        #expect(
            StoreVector.names(in: "valid", of: StoreVector.sealed) == ["empty", "everything", "keyed-names", "killed"])
        #expect(StoreVector.names(in: "invalid", of: StoreVector.sealed).count == 30)
    }

    @Test(
        "Stores of sealed pages open by each of their keys and hold what they say, to read and to write",
        arguments: StoreVector.names(in: "valid", of: StoreVector.sealed), [true, false])
    func valid(name: String, readOnly: Bool) throws {
        let vector = try StoreVector(valid: name, of: StoreVector.sealed)
        try StoreVector.unpack(name, of: StoreVector.sealed, into: stores.directory)
        let before = try stores.snapshot()
        let holds = try #require(vector.json["holds"])
        for key in try vector.keys() {
            let database = try open(vector.text("store"), key: key, readOnly: readOnly)
            #expect(database.storageType == .sealed)
            let held = JSONValue.object(try StoreDescription.of(database))
            #expect(StoreDescription.difference(held, holds) == nil, "held, and said to be held")
            try database.close()
        }
        if readOnly { #expect(try stores.snapshot() == before) }
    }

    @Test(
        "Stores of sealed pages that must be refused are refused as their vectors say, and stay as they were",
        arguments: StoreVector.names(in: "invalid", of: StoreVector.sealed))
    func invalid(name: String) throws {
        let vector = try StoreVector(invalid: name, of: StoreVector.sealed)
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
        let intact = try #require(reads["intact"]?.stringValue)
        #expect(try database.document(withID: intact).currentRevision?.json.isEmpty == false)
        let damaged = try #require(reads["document"]?.stringValue)
        _ = try database.document(withID: damaged).currentRevision?.json
    }
}
