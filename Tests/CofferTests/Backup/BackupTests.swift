import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferModel
@testable import CofferVault

@Suite("A backup")
struct BackupTests {
    let stores = TestStores()

    @Test(
        "A backup holds everything under a key of its own, and nothing else opens it",
        arguments: [
            (Protection.bytes, Protection.otherBytes), (.bytes, .none), (.none, .password), (.password, .bytes),
        ])
    func roundTrip(from: Protection, to: Protection) throws {
        let database = try stores.open(key: from.key)
        try KeyChangeContent.fill(database)
        try database.saveLocalDocument(["n": 7], withID: "checkpoint")
        let before = try KeyChangeContent.describe(database)
        let result = try database.backup(to: stores.url("copy"), encryptionKey: to.key)
        #expect(result.documentCount == KeyChangeContent.bodyLengths.count + 3)
        // Not the content of the attachment that was replaced.
        #expect(result.attachmentCount == KeyChangeContent.attachmentLengths.count + 1)

        let wrong: CofferError.Code = to == .none ? .notEncrypted : from == .none ? .keyRequired : .wrongKey
        if from.key != nil || to.key != nil {
            #expect(thrown { try stores.existing("copy", key: from.key) }?.code == wrong)
        }
        let copy = try stores.existing("copy", key: to.key)
        #expect(try KeyChangeContent.describe(copy) == before)
        #expect(try copy.lastSequenceNumber == database.lastSequenceNumber)
        #expect(try copy.uuid != nil)
        #expect(try copy.uuid != database.uuid)
        let infos = try (stores.manager.storeInfo(named: "db"), stores.manager.storeInfo(named: "copy"))
        #expect(infos.0.storeUUID != infos.1.storeUUID)
        #expect(infos.1.keySlots.count == (to == .none ? 0 : 1))
        // What was replaced is not in it.
        let history = try #require(try copy["later"]?.currentRevision?.history)
        #expect(history.count == 5)
        #expect(try copy.storage.attachments.allNames().count == result.attachmentCount)
        try copy.saveDocument(MutableDocument(id: "new", ["n": 1]))
        #expect(try database["new"] == nil)
        if to != .none {
            #expect(try stores.files(containing: KeyChangeContent.canary).allSatisfy { !$0.hasPrefix("copy") })
        }
    }

    @Test("A backup has no UUID until it is opened for writing, and that one stays")
    func identity() throws {
        let database = try stores.open()
        let uuid = try #require(try database.uuid)
        try database.changeEncryptionKey(to: testKey(3))
        #expect(try database.uuid == uuid)
        try database.backup(to: stores.url("copy"), encryptionKey: nil)
        let readOnly = try stores.open("copy", key: nil) { $0.readOnly = true }
        #expect(try readOnly.uuid == nil)
        try readOnly.close()
        let first = try stores.existing("copy", key: nil).uuid
        #expect(first != nil)
        #expect(try stores.existing("copy", key: nil).uuid == first)
    }

    @Test("A backup to a taken place, in a transaction or of a closed database is refused and makes nothing")
    func refused() throws {
        let database = try stores.open()
        try database.saveDocument(MutableDocument(id: "a", ["n": 1]))
        try stores.open("other").close()
        let folder = stores.directory.appending(path: "folder")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        let before = try stores.snapshot(ignoring: ["db.sqlite3-shm"])
        let elsewhere = stores.directory.appending(path: "missing/copy.coffer")
        #expect(thrown { try database.backup(to: stores.url("other"), encryptionKey: nil) }?.code == .databaseExists)
        #expect(thrown { try database.backup(to: stores.url(), encryptionKey: nil) }?.code == .databaseExists)
        #expect(thrown { try database.backup(to: folder, encryptionKey: nil) }?.code == .notAStore)
        #expect(thrown { try database.backup(to: elsewhere, encryptionKey: nil) }?.code == .ioFailed)
        #expect(
            thrown { try database.backup(to: stores.url("new"), encryptionKey: SymmetricKey(password: "")) }?.code
                == .invalidKey)
        let web = try #require(URL(string: "https://example.com/a"))
        #expect(thrown { try database.backup(to: web, encryptionKey: nil) }?.code == .invalidArgument)
        #expect(throws: CofferError(.invalidArgument)) {
            try database.inTransaction { _ = try database.backup(to: stores.url("new"), encryptionKey: nil) }
        }
        #expect(try stores.snapshot(ignoring: ["db.sqlite3-shm"]) == before)
        try database.close()
        #expect(thrown { try database.backup(to: stores.url("new"), encryptionKey: nil) }?.code == .closed)
    }

    @Test("A backup of a damaged content stops with its name, and leaves nothing")
    func damaged() throws {
        let database = try stores.open()
        try KeyChangeContent.fill(database)
        let attachment = try #require(try database["files"]?.currentRevision?.attachment(named: "a/200000"))
        let sha1 = try #require(SHA1Digest.bytes(of: attachment.digest))
        let name = try database.storage.attachments.naming.name(of: sha1)
        try stores.generation().appending(path: "attachments/\(name)").patch { $0[100_000] ^= 1 }
        let error = thrown { try database.backup(to: stores.url("copy"), encryptionKey: testKey(1)) }
        #expect(error?.code == .damaged)
        #expect(error?.subject?.hasPrefix("attachment a/200000 of document files") == true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: stores.directory.path) == ["db.coffer"])
    }

    @Test("A backup is of one moment, whoever writes meanwhile")
    func snapshot() throws {
        let database = try stores.open { $0.durability = .relaxed }
        let isDone = Atomic(false)
        try onThreads(2) { thread in
            if thread == 1 {
                // Two documents and a content at a time, which belong together.
                var number = 0
                while !isDone.load(ordering: .acquiring) {
                    try database.inTransaction {
                        for part in ["a", "b"] {
                            let draft = try database.document(withID: "\(part)-\(number)").newRevision()
                            draft.setAttachment(named: "x", contentType: nil, content: Data("\(part) \(number)".utf8))
                            try draft.save()
                        }
                    }
                    number += 1
                }
            } else {
                defer { isDone.store(true, ordering: .releasing) }
                for number in 0..<5 {
                    try database.backup(to: stores.url("copy\(number)"), encryptionKey: testKey(UInt8(number)))
                }
            }
        }
        for number in 0..<5 {
            let copy = try stores.existing("copy\(number)", key: testKey(UInt8(number)))
            let ids = try copy.documentIDs()
            #expect(ids.count == (try copy.documentCount))
            #expect(ids.count { $0.hasPrefix("a-") } == ids.count { $0.hasPrefix("b-") })
            for id in ids {
                let content = try copy[id]?.currentRevision?.attachment(named: "x")?.content
                #expect(content == Data(id.replacingOccurrences(of: "-", with: " ").utf8))
            }
        }
    }
}

@Suite("Installing a store")
struct ReplacementTests {
    let stores = TestStores()

    /// A store in a directory of its own, with one document that says `text`.
    private func bundle(_ text: String, key: SymmetricKey?) throws -> URL {
        let database = try stores.open("source", key: key)
        let draft = try database.document(withID: "text").newRevision()
        draft["text"] = .string(text)
        draft.setAttachment(named: "a", contentType: nil, content: KeyChangeContent.bytes(50_000))
        try draft.save()
        let url = stores.directory.appending(path: "bundle/catalog.coffer")
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try database.backup(to: url, encryptionKey: key)
        try database.delete()
        return url
    }

    private func text(key: SymmetricKey?) throws -> String? {
        let database = try stores.existing(key: key)
        defer { try? database.close() }
        #expect(
            try database["text"]?.currentRevision?.attachment(named: "a")?.content == KeyChangeContent.bytes(50_000))
        return try database["text"]?["text"]
    }

    private func makeReadOnly(_ url: URL, _ isReadOnly: Bool = true) throws {
        for name in [""] + (FileManager.default.subpaths(atPath: url.path) ?? []) {
            let path = url.appending(path: name).path
            var isDirectory: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
            let mode = isDirectory.boolValue ? (isReadOnly ? 0o555 : 0o755) : 0o444
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }
    }

    @Test(
        "Installing a store puts a copy where none was and in the place of another, with a UUID of its own",
        arguments: [nil, testKey(5)])
    func installs(key: SymmetricKey?) throws {
        let url = try bundle("bundled", key: key)
        // As a bundle has it: read only, and without empty directories.
        let generations = try FileManager.default.contentsOfDirectory(atPath: url.path).filter { $0.hasPrefix("g") }
        try FileManager.default.removeItem(at: url.appending(path: "\(generations[0])/incoming"))
        try makeReadOnly(url)
        let before = try Data(contentsOf: url.appending(path: "MANIFEST"))
        try stores.manager.replaceDatabase(named: "db", withDatabaseAt: url, encryptionKey: key)
        #expect(try text(key: key) == "bundled")
        let first = try stores.existing(key: key)
        let uuid = try first.uuid
        try first.saveDocument(MutableDocument(id: "own", ["n": 1]))
        try first.close()

        try stores.manager.replaceDatabase(named: "db", withDatabaseAt: url, encryptionKey: key)
        #expect(try text(key: key) == "bundled")
        let second = try stores.existing(key: key)
        #expect(try second["own"] == nil)
        #expect(try second.uuid != uuid)
        #expect(try second.uuid != nil)
        try second.close()
        #expect(try Data(contentsOf: url.appending(path: "MANIFEST")) == before)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: stores.directory.path).sorted() == [
                "bundle", "db.coffer",
            ])
        let modes = try FileManager.default.attributesOfItem(atPath: stores.url().path)[.posixPermissions] as? NSNumber
        #expect(modes?.intValue == 0o700)
        try makeReadOnly(url, false)

        // A store that was in use has a UUID already, which a copy of it must not keep.
        try stores.manager.replaceDatabase(named: "copy", withDatabaseAt: stores.url(), encryptionKey: key)
        let original = try stores.existing(key: key)
        let found = try stores.manager.existingDatabase(named: "copy", encryptionKey: key)
        let copy = try #require(found)
        #expect(try original.uuid != copy.uuid)
    }

    @Test("Installing a store that can't be opened, or is damaged anywhere, leaves the old one untouched")
    func refused() throws {
        let url = try bundle("bundled", key: testKey(5))
        let old = try stores.open(key: testKey(1))
        try old.saveDocument(MutableDocument(id: "old", ["n": 1]))
        let replace = { (url: URL, key: SymmetricKey?) in
            thrown { try stores.manager.replaceDatabase(named: "db", withDatabaseAt: url, encryptionKey: key) }?.code
        }
        #expect(replace(url, testKey(5)) == .databaseOpen)
        try old.close()
        let before = try stores.snapshot()
        #expect(replace(url, nil) == .keyRequired)
        #expect(replace(url, testKey(6)) == .wrongKey)
        #expect(replace(url, SymmetricKey(password: "")) == .invalidKey)
        #expect(replace(stores.directory.appending(path: "nothing"), nil) == .databaseNotFound)
        #expect(replace(stores.directory.appending(path: "bundle"), nil) == .notAStore)
        #expect(
            thrown { try stores.manager.replaceDatabase(named: "DB", withDatabaseAt: url) }?.code
                == .invalidDatabaseName)
        #expect(try stores.snapshot() == before)

        let generations = try FileManager.default.contentsOfDirectory(atPath: url.path).filter { $0.hasPrefix("g") }
        let generation = url.appending(path: generations[0])
        let contents = try FileManager.default.contentsOfDirectory(
            atPath: generation.appending(path: "attachments").path)
        for (name, offset) in [
            ("MANIFEST", 100), ("\(generations[0])/db.sqlite3", 30_000),
            ("\(generations[0])/attachments/\(contents[0])", 20_000),
        ] {
            let file = url.appending(path: name)
            let whole = try Data(contentsOf: file)
            try file.patch { $0[offset] ^= 4 }
            #expect(replace(url, testKey(5)) == .damaged, "\(name)")
            try whole.write(to: file)
            #expect(try stores.snapshot() == before, "\(name)")
        }
        #expect(try stores.existing(key: testKey(1))["old"]?["n"] == 1)
    }

    @Test("Installing a store over something that is no store is a 404, and leaves it alone")
    func notAStore() throws {
        let url = try bundle("bundled", key: nil)
        try FileManager.default.createDirectory(at: stores.url(), withIntermediateDirectories: false)
        try Data("mine".utf8).write(to: stores.url().appending(path: "notes.txt"))
        let before = try stores.snapshot()
        #expect(
            thrown { try stores.manager.replaceDatabase(named: "db", withDatabaseAt: url) }?.code == .notAStore)
        #expect(try stores.snapshot() == before)
    }

    @Test("Installing a store takes over what a killed process left in the log")
    func withLog() throws {
        let source = try stores.open("source", key: nil)
        try source.saveDocument(MutableDocument(id: "text", ["text": "logged"]))
        source.storage.refuseMoreWork()
        try source.close()
        #expect(
            try stores.generation("source").appending(path: "db.sqlite3-wal").resourceValues(forKeys: [.fileSizeKey])
                .fileSize ?? 0 > 0)
        let before = try stores.snapshot()
        try stores.manager.replaceDatabase(named: "db", withDatabaseAt: stores.url("source"))
        #expect(try stores.existing(key: nil)["text"]?["text"] == "logged")
        #expect(try stores.snapshot().filter { $0.key.hasPrefix("source") } == before)
    }
}
