import Foundation
import Testing

@testable import Coffer
@testable import CofferModel
@testable import CofferVault

@Suite("A key change of a damaged store")
struct KeyChangeDamageTests {
    let stores = TestStores()

    private func fill() throws {
        let database = try stores.open()
        try KeyChangeContent.fill(database)
        try database.close()
    }

    /// Where the content is that an attachment of `files` has.
    private func file(of name: String) throws -> URL {
        let database = try stores.open()
        defer { try? database.close() }
        let attachment = try #require(try database["files"]?.currentRevision?.attachment(named: name))
        let sha1 = try #require(SHA1Digest.bytes(of: attachment.digest))
        let attachments = try stores.generation().appending(path: "attachments")
        return try attachments.appending(path: database.storage.attachments.naming.name(of: sha1))
    }

    /// Changes the key, which must fail as damage, and leave the store as it was, usable and under its old key.
    private func expectDamage(_ subject: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let before = try stores.snapshot()
        let database = try stores.open()
        let error = thrown { try database.changeEncryptionKey(to: testKey(9)) }
        #expect(error?.code == .damaged, sourceLocation: sourceLocation)
        #expect(
            error?.subject?.contains(subject) == true, "\(error?.description ?? "")", sourceLocation: sourceLocation)
        try database.close()
        #expect(try stores.snapshot() == before, sourceLocation: sourceLocation)
        let again = try stores.open()
        #expect(try again["later"]?["n"] == 5, sourceLocation: sourceLocation)
        try again.close()
    }

    @Test(
        "A key change stops at an attachment with any change to its file, says its name and leaves the store alone",
        arguments: [0, 30, 56, 16_456, 100_000, -1])
    func attachment(offset: Int) throws {
        try fill()
        let file = try file(of: "a/200000")
        let whole = try Data(contentsOf: file)
        try file.patch { $0[offset < 0 ? $0.count - 1 : offset] ^= 1 }
        try expectDamage("attachment a/200000 of document files")
        try whole.dropLast(1).write(to: file)
        try expectDamage("attachment a/200000 of document files")
        try FileManager.default.removeItem(at: file)
        try expectDamage("attachment a/200000 of document files")
        try Data(contentsOf: self.file(of: "a/16385")).write(to: file)
        try expectDamage("attachment a/200000 of document files")

        // Saved again, the content is there again, and nothing is in the way.
        let database = try stores.open()
        let draft = try database.document(withID: "mended").newRevision()
        draft.setAttachment(named: "x", contentType: nil, content: KeyChangeContent.bytes(200_000))
        try draft.save()
        try database.changeEncryptionKey(to: testKey(9))
        #expect(
            try database["files"]?.currentRevision?.attachment(named: "a/200000")?.content
                == KeyChangeContent.bytes(200_000))
    }

    @Test("A key change stops at changed plain content, which only its digest tells")
    func plain() throws {
        let database = try stores.open(key: nil)
        try KeyChangeContent.fill(database)
        let attachment = try #require(try database["files"]?.currentRevision?.attachment(named: "a/200000"))
        let url = try #require(attachment.contentURL)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: url.path)
        let handle = try FileHandle(forUpdating: url)
        try handle.seek(toOffset: 100_000)
        try handle.write(contentsOf: [0xFF])
        try handle.close()
        let error = thrown { try database.changeEncryptionKey(to: testKey(9)) }
        #expect(error?.code == .damaged)
        #expect(error?.subject?.hasPrefix("attachment a/200000 of document files") == true)
        #expect(!database.isEncrypted)
        #expect(try stores.generations().count == 1)
    }

    @Test("A key change with any byte of the database changed carries over what was written, or leaves the store alone")
    func anyByte() throws {
        try fill()
        let reference = try stores.open()
        let content = try KeyChangeContent.describe(reference)
        try reference.close()
        let file = try stores.databaseFile()
        let whole = try Data(contentsOf: file)
        let manifest = stores.url().appending(path: "MANIFEST")
        let oldManifest = try Data(contentsOf: manifest)
        let old = try stores.generation()
        let kept = stores.directory.appending(path: "kept")
        try FileManager.default.copyItem(at: old, to: kept)
        var (tried, stopped) = (0, 0)
        for offset in stride(from: 100, to: whole.count, by: DamageTests.isExhaustive ? 7 : 797) {
            tried += 1
            try file.patch { $0[offset] ^= 0x40 }
            var database: Database?
            do {
                database = try stores.open()
                try database?.changeEncryptionKey(to: testKey(9))
                #expect(try database.map(KeyChangeContent.describe) == content, "byte \(offset)")
                try database?.close()
                // Back to where it was.
                try FileManager.default.removeItem(at: stores.generation())
                try FileManager.default.copyItem(at: kept, to: old)
                try oldManifest.write(to: manifest)
            } catch let error as CofferError {
                stopped += 1
                #expect(error.code == .damaged, "byte \(offset): \(error)")
                #expect(try Data(contentsOf: manifest) == oldManifest)
                #expect(try stores.generations().count == 1)
                try? database?.close()
                #expect(try Data(contentsOf: file)[offset] == whole[offset] ^ 0x40, "the damaged file was changed")
                try FileManager.default.removeItem(at: old)
                try FileManager.default.copyItem(at: kept, to: old)
            }
        }
        print("key change: \(tried) of \(whole.count) bytes of the database changed, \(stopped) stopped it")
        // A page's padding and free pages are nobody's.
        #expect(stopped * 10 > tried * 8)
    }

    @Test(
        "A key change needs room for a second copy, and says so before it writes", .enabled(if: SmallDisk.isAvailable))
    func space() throws {
        let disk = try SmallDisk(megabytes: 8)
        let database = try disk.open()
        try KeyChangeContent.fill(database)
        try disk.fill(leaving: 300_000)
        let error = thrown { try database.changeEncryptionKey(to: testKey(9)) }
        #expect(error?.code == .noSpace)
        #expect(error?.description.contains("second copy") == true)
        let store = disk.directory.appending(path: "db.coffer").path
        #expect(try FileManager.default.contentsOfDirectory(atPath: store).count == 2)
        #expect(try database["later"]?["n"] == 5)
        try disk.empty()
        try database.changeEncryptionKey(to: testKey(9))
        #expect(try database["later"]?["n"] == 5)
    }

    @Test(
        "A key change that the disk refuses in the middle of a file leaves the store alone",
        arguments: [0, 8, 40, 100, 140])
    func refusedWrites(kilobytes: Int) async throws {
        try fill()
        let before = try stores.snapshot()
        await #expect(processExitsWith: .success) {
            [path = stores.directory.path as String, kilobytes = kilobytes as Int] in
            try Self.changeKey(at: path, withFilesOf: kilobytes * 1024)
        }
        try checkAfterRefusal(before.keys.sorted())
    }

    private static func changeKey(at path: String, withFilesOf byteCount: Int) throws {
        let database = try TestStores(sharing: path).open()
        limitFiles(to: byteCount)
        let error = thrown { try database.changeEncryptionKey(to: testKey(9)) }
        limitFiles(to: nil)
        // The database file has more, and so has one of the contents.
        #expect(error?.code == .ioFailed || error?.code == .noSpace, "\(error?.description ?? "no error")")
        #expect(try database["later"]?["n"] == 5)
        let later = MutableDocument(id: "after", ["n": 1])
        try database.saveDocument(later)
        try database.deleteDocument(later)
        try database.close()
    }

    private func checkAfterRefusal(_ names: [String]) throws {
        #expect(try stores.snapshot().keys.sorted() == names)
        let again = try stores.open()
        try again.changeEncryptionKey(to: testKey(9))
        #expect(try again["later"]?["n"] == 5)
    }
}
