import Foundation
import Testing

@testable import Coffer

@Suite("What reaches the disk")
struct EncryptionTests {
    let stores = TestStores()
    let canary = "canary-5f0c-in-the-content"

    private func fill(_ database: Database) throws {
        try database.save(json: Data(#"{"text":"\#(canary)"}"#.utf8), withID: "id-\(canary)")
        try database.save(
            json: Data(#"{"\#(canary)":"\#(String(repeating: canary, count: 2000))"}"#.utf8), withID: "long")
        let draft = try database.document(withID: "id-\(canary)").newRevision()
        draft["more"] = .string(canary)
        try draft.save()
        try database.document(withID: "long").delete()
        try database.saveLocalDocument(
            ["text": .string(canary), "long": .string(String(repeating: canary, count: 2000))], withID: canary)
        try database.document(withID: "id-\(canary)").setExpirationDate(.distantFuture)
        try? database.inTransaction {
            try database.save(json: Data(#"{"text":"\#(canary)"}"#.utf8), withID: "rolled back")
            throw CancellationError()
        }
    }

    @Test("Of an encrypted store nothing is readable on the disk, while it is open and after")
    func encrypted() throws {
        let database = try stores.open()
        try fill(database)
        #expect(try stores.files(containing: canary) == [])
        #expect(try stores.files(containing: "CREATE TABLE") == [])
        #expect(try stores.files(containing: "SQLite format") == [])
        try database.close()
        #expect(try stores.files(containing: canary) == [])
        #expect(try stores.files(containing: "CREATE TABLE") == [])
        #expect(try stores.files(containing: "SQLite format") == [])
    }

    @Test("Of an unencrypted store everything is readable on the disk: the search works")
    func control() throws {
        let database = try stores.open(key: nil)
        try fill(database)
        #expect(try stores.files(containing: canary) != [])
        try database.close()
        #expect(try stores.files(containing: canary).map { ($0 as NSString).lastPathComponent } == ["db.sqlite3"])
        #expect(try stores.files(containing: "SQLite format").count == 1)
    }

    @Test("A store's files are for its owner's eyes only, and nothing else lies beside them")
    func modes() throws {
        let database = try stores.open()
        try fill(database)
        for (name, content) in try stores.snapshot() {
            let mode = String(decoding: content.prefix(4), as: UTF8.self)
            let isDirectory = content.count == 4
            #expect(mode == (isDirectory ? "\(0o700) " : "\(0o600) "), "\(name)")
        }
        try database.close()
        let names = try FileManager.default.contentsOfDirectory(atPath: stores.url().path)
        #expect(Set(names) == ["MANIFEST", try stores.generation().lastPathComponent])
        let inside = try FileManager.default.contentsOfDirectory(atPath: stores.generation().path)
        #expect(Set(inside) == ["db.sqlite3", "attachments", "incoming"])
    }
}
