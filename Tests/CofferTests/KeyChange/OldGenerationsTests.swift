import CofferFaults
import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferVault

/// A name that is not UTF-8, or an immutable file, in a store kept all of it readable when it was encrypted, without a word;
/// and nobody could open the store for writing any more.
@Suite("A change of the key whose old generation can't be removed")
struct OldGenerationsTests {
    @Test("Files with names that are not UTF-8 go with the old generation", arguments: [nil, TestStores.key])
    func names(key: SymmetricKey?) throws {
        let stores = TestStores()
        let database = try stores.open(key: key)
        try KeyChangeContent.fill(database)
        let folder = try stores.generation().path + "/attachments/"
        for name in [[0xFF, 0xFE], [0x63, 0xE9]] as [[UInt8]] {
            let path = Array(folder.utf8) + name + [0]
            let file = path.withUnsafeBytes {
                open($0.baseAddress!.assumingMemoryBound(to: CChar.self), O_CREAT | O_WRONLY, 0o600)
            }
            try #require(file >= 0)
            close(file)
        }
        let result = try database.changeEncryptionKey(to: testKey(9))
        #expect(result.oldGenerationIsGone)
        #expect(result.oldGenerations.isEmpty)
        #expect(try database.oldGenerations.isEmpty)
        #expect(try stores.generations().count == 1)
    }

    /// Changes the key of a store in whose generation something stays, and says what is left.
    private func change(_ stores: TestStores, from old: SymmetricKey?, to new: SymmetricKey?) throws -> OldGeneration {
        let database = try stores.open(key: old)
        try KeyChangeContent.fill(database)
        try Data("text".utf8).write(to: stores.generation().appending(path: "attachments/stays"))
        let result = try database.changeEncryptionKey(to: new)
        #expect(!result.oldGenerationIsGone)
        let left = try #require(result.oldGenerations.first)
        #expect(result.oldGenerations.count == 1)
        #expect(try database.oldGenerations.map(\.path) == [left.path])
        #expect(left.failure?.code == .ioFailed)
        // The database is the first to go, and the contents go, too.
        let files = FileManager.default.subpaths(atPath: left.path)?.sorted()
        #expect(files == ["attachments", "attachments/stays"] + (old == nil ? [] : ["encrypted"]))
        try database.saveDocument(MutableDocument(id: "afterwards"))
        try database.close()
        return left
    }

    @Test("An old generation that was readable is said to be, and the next opening for writing says what to do")
    func readable() throws {
        let stores = TestStores(fileSystem: RecordingFileSystem(.failEach("unlink stays", EPERM)))
        let left = try change(stores, from: nil, to: testKey(9))
        #expect(left.mayBeReadable)
        #expect(left.byteCount == 4)
        // Without a key, and without removing it.
        let manager = TestStores(sharing: stores.directory.path).manager
        let found = try manager.oldGenerations(ofDatabaseNamed: "db")
        #expect(found.map(\.path) == [left.path] && found.map(\.byteCount) == [4] && found.allSatisfy(\.mayBeReadable))
        let verification = try manager.verifyDatabase(named: "db", encryptionKey: testKey(9), level: .keys)
        #expect(verification.isSound && verification.oldGenerations.map(\.path) == [left.path])
        #expect(try stores.generations().count == 2)
        for _ in 0..<2 {
            let error = #expect(throws: CofferError(.ioFailed)) { try stores.existing(key: testKey(9)) }
            #expect(error?.subject == left.path)
            #expect(error?.detail?.contains("chattr -R -i") == true)
        }
        do {
            let reader = try stores.open(key: testKey(9)) { $0.readOnly = true }
            #expect(try reader["afterwards"] != nil)
            #expect(try reader.oldGenerations.map(\.mayBeReadable) == [true])
            try reader.close()
        }
        // Once that can be removed, the next opening does it.
        let again = try TestStores(sharing: stores.directory.path).existing(key: testKey(9))
        #expect(try again["afterwards"] != nil)
        #expect(try again.oldGenerations.isEmpty)
        #expect(try manager.oldGenerations(ofDatabaseNamed: "db").isEmpty)
        #expect(try stores.generations().count == 1)
    }

    @Test(
        "An old generation that was encrypted keeps nobody from writing, and goes when it can be removed",
        arguments: [testKey(9), nil])
    func encrypted(new: SymmetricKey?) throws {
        let stores = TestStores(fileSystem: RecordingFileSystem(.failEach("unlink stays", EPERM)))
        let left = try change(stores, from: TestStores.key, to: new)
        #expect(!left.mayBeReadable)
        for number in 0..<2 {
            let database = try stores.existing(key: new)
            try database.saveDocument(MutableDocument(id: "later-\(number)"))
            #expect(try database.oldGenerations.map(\.mayBeReadable) == [false])
            try database.close()
        }
        let again = try TestStores(sharing: stores.directory.path).existing(key: new)
        #expect(try again["later-1"] != nil)
        #expect(try again.oldGenerations.isEmpty)
        #expect(try stores.generations().count == 1)
    }

    @Test("An old generation in which somebody still reads is left for a while, and nothing has failed")
    func inUse() throws {
        let stores = TestStores()
        let database = try stores.open(key: nil)
        try KeyChangeContent.fill(database)
        let draft = try database.document(withID: "draft").newRevision()
        let url = stores.directory.appending(path: "film")
        try KeyChangeContent.bytes(300_000).write(to: url)
        try draft.setAttachment(named: "a", contentType: nil, contentsOf: url)
        let result = try database.changeEncryptionKey(to: testKey(9))
        #expect(!result.oldGenerationIsGone)
        #expect(result.oldGenerations.map(\.mayBeReadable) == [true])
        #expect(result.oldGenerations.allSatisfy { $0.failure == nil })
        try draft.save()
        try waitUntil("the old generation is gone") { try database.oldGenerations.isEmpty }
    }
}
