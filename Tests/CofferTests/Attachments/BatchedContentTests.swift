import CofferFaults
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coffer
@testable import CofferVault

/// Short contents that a transaction has in memory, of which batches get their files before it ends.
@Suite("Many short attachments in one transaction")
struct BatchedContentTests {
    private func bytes(_ number: Int) -> Data { AttachmentTests.bytes(500 + number, seed: UInt64(number + 1)) }

    private func draft(_ number: Int, in database: Database) throws -> UnsavedRevision {
        let draft = try database.document(withID: "\(number)").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: bytes(number))
        return draft
    }

    private func content(_ id: String, in database: Database) throws -> Data? {
        try database.document(withID: id).currentRevision?.attachment(named: "a")?.content
    }

    private func names(_ folder: String, _ stores: TestStores) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: stores.generation().appending(path: folder).path)
    }

    enum Kind: String, CaseIterable {
        case encrypted, keyedNames, unencrypted
    }

    private func open(_ stores: TestStores, _ kind: Kind = .encrypted) throws -> Database {
        try stores.open(key: kind == .unencrypted ? nil : TestStores.key) { $0.keyedNames = kind == .keyedNames }
    }

    @Test("Batched attachments are read back at any time, and are there afterwards", arguments: Kind.allCases)
    func reading(kind: Kind) throws {
        let stores = TestStores(attachmentBatchCount: 8)
        let database = try open(stores, kind)
        try database.inTransaction {
            for number in 0..<30 {
                try draft(number, in: database).save()
                // In memory still, in a batch, or in its place.
                for known in [number, number - 3, number / 2] where known >= 0 {
                    #expect(try content("\(known)", in: database) == bytes(known))
                }
            }
            #expect(try names("attachments", stores).count >= 16)
        }
        #expect(try names("attachments", stores).count == 30)
        #expect(try names("incoming", stores).isEmpty)
        try database.close()
        let again = try open(stores, kind)
        for number in 0..<30 { #expect(try content("\(number)", in: again) == bytes(number)) }
        #expect(try again.verify().findings == [])
        try again.close()
    }

    @Test("Batched attachments are written once where several documents have the same, or it was saved before")
    func same() throws {
        let stores = TestStores(attachmentBatchCount: 4)
        let database = try open(stores)
        try draft(0, in: database).save()
        try database.inTransaction {
            for round in 0..<3 {
                for number in 0..<10 {
                    let draft = try database.document(withID: "\(number) \(round)").newRevision()
                    draft.setAttachment(named: "a", contentType: nil, content: bytes(number))
                    try draft.save()
                }
            }
        }
        #expect(try names("attachments", stores).count == 10)
        for number in 0..<10 {
            for round in 0..<3 { #expect(try content("\(number) \(round)", in: database) == bytes(number)) }
        }
        #expect(try names("incoming", stores).isEmpty)
        try database.close()
    }

    @Test(
        "Batched attachments leave nothing when it is rolled back, and their drafts can be saved again",
        arguments: Kind.allCases)
    func rollingBack(kind: Kind) throws {
        let stores = TestStores(attachmentBatchCount: 4)
        let database = try open(stores, kind)
        let drafts = try (0..<10).map { try draft($0, in: database) }
        #expect(throws: CancellationError.self) {
            try database.inTransaction {
                for draft in drafts { try draft.save() }
                throw CancellationError()
            }
        }
        #expect(try names("attachments", stores).isEmpty)
        #expect(try names("incoming", stores).isEmpty)
        #expect(try database.documentCount == 0)
        if kind != .unencrypted { try database.changeEncryptionKey(to: testKey(8)) }
        try database.inTransaction { for draft in drafts { try draft.save() } }
        for number in 0..<10 { #expect(try content("\(number)", in: database) == bytes(number)) }
        #expect(try names("attachments", stores).count == 10)
        #expect(try names("incoming", stores).isEmpty)
        try database.close()
    }

    @Test("Batched attachments of nested transactions stay only where those do", arguments: Kind.allCases)
    func nesting(kind: Kind) throws {
        let stores = TestStores(attachmentBatchCount: 4)
        let database = try open(stores, kind)
        var generator = SeededNumbers(seed: 5)
        for round in 0..<10 {
            var kept: Set<Int> = []
            let base = 100 * round
            try database.inTransaction {
                for part in 0..<6 {
                    let numbers = (0..<5).map { base + (5 * part + $0) % 12 }.filter { !kept.contains($0) }
                    let isKept = Bool.random(using: &generator)
                    do {
                        try database.inTransaction {
                            for number in numbers { try draft(number, in: database).save() }
                            for number in numbers {
                                #expect(try content("\(number)", in: database) == bytes(number))
                            }
                            if !isKept { throw CancellationError() }
                        }
                        kept.formUnion(numbers)
                    } catch is CancellationError {}
                }
                if kept.isEmpty { try draft(base, in: database).save() }
            }
            if kept.isEmpty { kept = [base] }
            for number in base..<base + 12 {
                #expect(try content("\(number)", in: database) == (kept.contains(number) ? bytes(number) : nil))
            }
            #expect(try names("incoming", stores).isEmpty)
            #expect(try names("attachments", stores).count == database.documentCount)
        }
        try database.close()
    }

    /// Runs `body` in a transaction that is rolled back.
    private func takeBack(in database: Database, _ body: () throws -> Void) throws {
        do {
            try database.inTransaction {
                try body()
                throw CancellationError()
            }
        } catch is CancellationError {}
    }

    /// Saves three and takes them back.
    ///
    /// - Returns: the body of the first one's document.
    private func saveAndTakeBack(in database: Database) throws -> Data {
        var saved: Data?
        try takeBack(in: database) {
            for number in 0..<3 { try draft(number, in: database).save() }
            saved = try database.document(withID: "0").currentRevision?.json
        }
        return try #require(saved)
    }

    @Test("Batched attachments that a nested transaction took back can be named by a body alone: they are still staged")
    func namedAgain() throws {
        let stores = TestStores(attachmentBatchCount: 2)
        let database = try open(stores)
        try database.inTransaction {
            let json = try saveAndTakeBack(in: database)
            try database.save(json: json, withID: "named")
        }
        #expect(try content("named", in: database) == bytes(0))
        #expect(try names("attachments", stores).count == 1)
        try database.close()
    }

    @Test("Batched attachments that two nested transactions took back, one by a body alone, are gone")
    func takenBackTwice() throws {
        let stores = TestStores(attachmentBatchCount: 2)
        let database = try open(stores)
        try database.inTransaction {
            let json = try saveAndTakeBack(in: database)
            try takeBack(in: database) { try database.save(json: json, withID: "named") }
            try draft(4, in: database).save()
        }
        #expect(try content("4", in: database) == bytes(4))
        #expect(try names("attachments", stores).count == 1)
        #expect(try names("incoming", stores).isEmpty)
        try database.close()
    }

    @Test("Batched attachments take bounded memory, however many there are")
    func memory() throws {
        let stores = TestStores()
        let database = try open(stores)
        let count = 3_000
        let large = AttachmentTests.bytes(40_000, seed: 1)
        var most = 0
        try database.inTransaction {
            for number in 0..<count {
                let draft = try database.document(withID: "\(number)").newRevision()
                var content = large
                withUnsafeBytes(of: number) { content.replaceSubrange(0..<8, with: $0) }
                draft.setAttachment(named: "a", contentType: nil, content: content)
                try draft.save()
                most = max(most, database.storage.attachments.sealedByteCount.load(ordering: .relaxed))
            }
        }
        #expect(most > 0 && most <= 2 * Installation.batchByteCount + 2 * large.count)
        #expect(database.storage.attachments.sealedByteCount.load(ordering: .relaxed) == 0)
        #expect(try names("attachments", stores).count == count)
        #expect(try names("incoming", stores).isEmpty)
        try database.close()
    }

    @Test("Batched attachments that are there already or come to nothing take bounded memory, too")
    func memoryOfOthers() throws {
        let stores = TestStores()
        let database = try open(stores)
        let attachments = database.storage.attachments
        func held() -> Int { attachments.sealedByteCount.load(ordering: .relaxed) }
        for number in 0..<20 { try draft(number, in: database).save() }
        try database.inTransaction {
            for number in 0..<200 {
                let draft = try database.document(withID: "again \(number)").newRevision()
                draft.setAttachment(named: "a", contentType: nil, content: bytes(number % 20))
                try draft.save()
            }
            #expect(held() == 0)
            // A save that fails has brought its contents.
            let old = try #require(try database.document(withID: "0").currentRevision)
            try old.createRevision().save()
            for number in 0..<600 {
                let draft = try old.createRevision()
                draft.setAttachment(
                    named: "a", contentType: nil, content: AttachmentTests.bytes(60_000, seed: UInt64(number + 50)))
                #expect(throws: CofferError(.conflict)) { try draft.save() }
            }
            #expect(held() <= 4 * Installation.batchByteCount)
        }
        #expect(held() == 0)
        #expect(try names("attachments", stores).count == 20)
        #expect(try names("incoming", stores).isEmpty)
        try database.close()
    }

    @Test(
        "Batched attachments onto a disk that is full are a 507 at a later save or at the commit, and leave nothing",
        arguments: [4, 100])
    func fullDisk(count: Int) throws {
        let stores = TestStores()
        try open(stores).close()
        // Of those of the first batch some are there, and others not any more.
        let full = TestStores(
            sharing: stores.directory.path, fileSystem: RecordingFileSystem(.fullFrom(8)), attachmentBatchCount: 4)
        let database = try open(full)
        #expect(throws: CofferError(.noSpace)) {
            try database.inTransaction { for number in 0..<count { try draft(number, in: database).save() } }
        }
        #expect(try database.documentCount == 0)
        #expect(try names("attachments", stores).isEmpty)
        #expect(try names("incoming", stores).isEmpty)
        try database.close()
    }

    @Test("Batched attachments replace files that have no row, and links")
    func leftovers() throws {
        let stores = TestStores(attachmentBatchCount: 4)
        var database = try open(stores)
        try database.inTransaction { for number in 0..<4 { try draft(number, in: database).save() } }
        let left = try names("attachments", stores)
        try database.close()
        try FileManager.default.removeItem(at: stores.url())
        database = try open(stores)
        let folder = try stores.generation().appending(path: "attachments")
        for (number, name) in left.enumerated() {
            let path = folder.appending(path: name).path
            if number == 0 {
                try FileManager.default.createSymbolicLink(
                    atPath: path, withDestinationPath: stores.url().appending(path: "MANIFEST").path)
            } else {
                try Data("has no row".utf8).write(to: URL(filePath: path))
            }
        }
        try database.inTransaction { for number in 0..<6 { try draft(number, in: database).save() } }
        for number in 0..<6 { #expect(try content("\(number)", in: database) == bytes(number)) }
        #expect(try database.verify().findings == [])
        try database.close()
    }
}
