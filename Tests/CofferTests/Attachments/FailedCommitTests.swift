import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferVault

/// A commit can still fail when the files of its attachments have their places. They once stayed there as if they were
/// saved: a compaction removed them, and the next save of the same draft was acknowledged without its content.
@Suite("Attachments whose commit failed")
struct FailedCommitTests {
    private func bytes(_ number: Int) -> Data { AttachmentTests.bytes(500 + number, seed: UInt64(number + 1)) }

    /// How the content comes: each is a file in `incoming/` by the time of the commit, but for `.data` in a transaction.
    enum Source: String, CaseIterable {
        case data, stream, blob, blobOfStream
    }

    private func draft(_ number: Int, _ source: Source, in database: Database) throws -> UnsavedRevision {
        let draft = try database.document(withID: "\(number)").newRevision()
        let bytes = bytes(number)
        switch source {
        case .data: draft.setAttachment(named: "a", contentType: nil, content: bytes)
        case .stream: try draft.setAttachment(named: "a", contentType: nil, contentsOf: InputStream(data: bytes))
        case .blob: draft["b"] = Blob(data: bytes)
        case .blobOfStream: draft["b"] = Blob(contentsOf: InputStream(data: bytes))
        }
        return draft
    }

    private func content(_ number: Int, in database: Database) throws -> Data? {
        let revision = try database.document(withID: "\(number)").currentRevision
        return try revision?.attachment(named: "a")?.content ?? revision?.blob(forKey: "b")?.content
    }

    private func names(_ folder: String, _ stores: TestStores) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: stores.generation().appending(path: folder).path)
    }

    /// Saves the drafts in a transaction whose commit fails after its files were installed, as on a disk that is full by
    /// then: a change in it failed, and its body swallowed the error.
    private func failToCommit(_ drafts: [UnsavedRevision], in database: Database) {
        let error = thrown {
            try database.inTransaction {
                for draft in drafts { try draft.save() }
                try? database.storage.write { (writer) throws(CofferError) in
                    try writer.change { () throws(CofferError) -> Void in throw CofferError(.noSpace) }
                }
            }
        }
        #expect(error?.code == .noSpace)
    }

    enum Encryption: String, CaseIterable {
        case encrypted, keyedNames, unencrypted
    }

    private func open(_ stores: TestStores, _ encryption: Encryption) throws -> Database {
        try stores.open(key: encryption == .unencrypted ? nil : TestStores.key) {
            $0.keyedNames = encryption == .keyedNames
        }
    }

    @Test(
        "An attachment whose commit failed leaves no installed file, and its draft can be saved after a compaction",
        arguments: Source.allCases, Encryption.allCases)
    func savedAgain(source: Source, encryption: Encryption) throws {
        let stores = TestStores()
        let database = try open(stores, encryption)
        let draft = try draft(1, source, in: database)
        for _ in 0..<2 {
            failToCommit([draft], in: database)
            #expect(try names("attachments", stores) == [])
            // What can be read only once is kept for the next attempt.
            #expect(try names("incoming", stores).count == (source == .stream || source == .blobOfStream ? 1 : 0))
            try database.compact()
        }
        try draft.save()
        #expect(try content(1, in: database) == bytes(1))
        try database.close()
        let again = try open(stores, encryption)
        #expect(try content(1, in: again) == bytes(1))
        #expect(try names("incoming", stores) == [])
        #expect(try again.verify().findings == [])
        try again.close()
    }

    @Test("A draft whose commit failed removes its file when it is given up, as one does that was never saved")
    func givenUp() throws {
        let stores = TestStores()
        let database = try stores.open()
        var draft: UnsavedRevision? = try draft(1, .stream, in: database)
        failToCommit([try #require(draft)], in: database)
        draft = nil
        #expect(try names("attachments", stores) == [])
        #expect(try names("incoming", stores) == [])
        try database.close()
    }

    /// With batches of four, some of them are installed while the transaction goes on, and the rest by its commit.
    @Test("Attachments of several batches whose commit failed can be saved again", arguments: [0, 1, 4, 5, 11])
    func batches(count: Int) throws {
        let stores = TestStores(attachmentBatchCount: 4)
        let database = try stores.open()
        let drafts = try (0..<count + 3).map { try draft($0, $0 < count ? .data : .stream, in: database) }
        failToCommit(drafts, in: database)
        #expect(try names("attachments", stores) == [])
        #expect(try names("incoming", stores).count == 3)
        try database.compact()
        try database.inTransaction { for draft in drafts { try draft.save() } }
        for number in 0..<drafts.count { #expect(try content(number, in: database) == bytes(number)) }
        #expect(try names("incoming", stores) == [])
        #expect(try database.verify().findings == [])
        try database.close()
    }

    @Test("Attachments that a nested transaction took back before the commit failed can be saved again")
    func nested() throws {
        let stores = TestStores(attachmentBatchCount: 2)
        let database = try stores.open()
        let drafts = try (0..<6).map { try draft($0, $0 % 2 == 0 ? .stream : .data, in: database) }
        let error = thrown {
            try database.inTransaction {
                try? database.inTransaction {
                    for draft in drafts { try draft.save() }
                    throw CancellationError()
                }
                for draft in drafts[..<3] { try draft.save() }
                try? database.storage.write { (writer) throws(CofferError) in
                    try writer.change { () throws(CofferError) -> Void in throw CofferError(.noSpace) }
                }
            }
        }
        #expect(error?.code == .noSpace)
        #expect(try names("attachments", stores) == [])
        #expect(try names("incoming", stores).count == 3)
        try database.compact()
        for draft in drafts { try draft.save() }
        for number in drafts.indices { #expect(try content(number, in: database) == bytes(number)) }
        try database.close()
    }

    @Test(
        "An attachment whose commit failed can be saved after a change of the encryption key",
        arguments: Source.allCases)
    func keyChanged(source: Source) throws {
        let stores = TestStores()
        let database = try stores.open()
        let drafts = try (1...2).map { try draft($0, source, in: database) }
        failToCommit(drafts, in: database)
        try database.changeEncryptionKey(to: testKey(8))
        for draft in drafts { try draft.save() }
        for number in 1...2 { #expect(try content(number, in: database) == bytes(number)) }
        // The generation before goes in the background, once no staged file is its own any more.
        #expect(
            try eventually {
                try FileManager.default.contentsOfDirectory(atPath: stores.url().path).filter { $0.hasPrefix("g0") }
                    .count == 1
            })
        #expect(try names("incoming", stores) == [])
        #expect(try database.verify().findings == [])
        try database.close()
    }
}
