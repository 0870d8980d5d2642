import CofferVault
import Foundation
import Testing

@testable import Coffer

/// A user and a group without a name, as good as any.
private let user: UInt32 = 54321
private let group: UInt32 = 54322

/// SQLite is given paths: the owner of a directory could have root overwrite any file through it.
@Suite("Root, and a database of another user", .enabled(if: geteuid() == 0, "only root is refused what others own"))
struct OtherOwnerTests {
    let stores = TestStores()
    private let key = TestStores.key

    private var manager: Manager { stores.manager }

    init() throws {
        let database = try stores.open()
        let draft = try database.document(withID: "a").newRevision()
        draft["name"] = "theirs"
        draft.setAttachment(named: "x", contentType: nil, content: Data("content".utf8))
        try draft.save()
        try database.close()
        try give(stores.url())
    }

    private func paths(_ url: URL) throws -> [String] {
        try [url.path] + FileManager.default.subpathsOfDirectory(atPath: url.path).map { "\(url.path)/\($0)" }
    }

    private func give(_ url: URL) throws {
        for path in try paths(url) { try #require(lchown(path, user, group) == 0) }
    }

    private func expectTheirs(_ url: URL) throws {
        for path in try paths(url) {
            var status = stat()
            try #require(lstat(path, &status) == 0)
            #expect(status.st_uid == user && status.st_gid == group, "\(path)")
        }
    }

    @Test("Root is refused all of another user's database but what MANIFEST says of itself: 403, and no byte changes")
    func refused() throws {
        let theirs = try manager.keyBackup(ofDatabaseNamed: "db", encryptionKey: key)
        let mine = try stores.open("mine")
        try mine.close()
        let before = try stores.snapshot()
        let copy = stores.url("copy")
        let calls: [() throws -> Void] = [
            { _ = try stores.open() }, { _ = try stores.open { $0.readOnly = true } },
            { _ = try manager.database(named: "db", encryptionKey: key) },
            { _ = try manager.existingDatabase(named: "db", encryptionKey: key) },
            { _ = try manager.verifyDatabase(named: "db", encryptionKey: key) },
            { try manager.salvageDatabase(named: "db", encryptionKey: key, to: copy) },
            { try manager.restoreKeys(ofDatabaseNamed: "db", from: theirs, encryptionKey: key) },
            { try manager.replaceDatabase(named: "db", withDatabaseAt: stores.url("mine"), encryptionKey: key) },
        ]
        for (number, call) in calls.enumerated() {
            let error = thrown { try call() }
            #expect(error?.code == .notOwner && error?.status == 403, "\(number): \(String(describing: error))")
        }
        #expect(try stores.snapshot() == before)
        #expect(try manager.allDatabaseNames == ["db", "mine"])
        #expect(manager.databaseExists(named: "db"))
        #expect(try manager.storeInfo(named: "db").isEncrypted)
    }

    @Test("Root makes no database and no copy in another user's directory: 403, and nothing is there")
    func made() throws {
        let folder = stores.directory.appending(path: "theirs", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try #require(lchown(folder.path, user, group) == 0)
        let mine = try stores.open("mine")
        defer { try? mine.close() }
        let copy = folder.appending(path: "copy.coffer")
        #expect(thrown { try mine.backup(to: copy, encryptionKey: key) }?.code == .notOwner)
        #expect(
            thrown { try Manager(directory: folder).database(named: "new", encryptionKey: key) }?.code == .notOwner)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test("Root installs a copy of another user's database as its own")
    func installed() throws {
        try manager.replaceDatabase(named: "mine", withDatabaseAt: stores.url(), encryptionKey: key)
        let mine = try stores.open("mine")
        #expect(try mine["a"]?.currentRevision?["name"] == "theirs")
        try mine.close()
        try expectTheirs(stores.url())
    }

    @Test("Root works on another user's database where the manager trusts its owner, and leaves all of it theirs")
    func trusted() throws {
        #expect(!manager.unsafelyTrustsStoreOwners)
        manager.unsafelyTrustsStoreOwners = true
        let database = try stores.open()
        let draft = try #require(try database["a"]).newRevision()
        draft["name"] = "changed"
        draft.setAttachment(named: "y", contentType: nil, content: Data("more".utf8))
        try draft.save()
        try expectTheirs(stores.url())
        try database.changeEncryptionKey(to: testKey(8))
        try expectTheirs(stores.url())
        try database.close()
        #expect(try manager.verifyDatabase(named: "db", encryptionKey: testKey(8)).isSound)
        try expectTheirs(stores.url())
        try manager.deleteDatabase(named: "db")
        #expect(!manager.databaseExists(named: "db"))
    }
}
