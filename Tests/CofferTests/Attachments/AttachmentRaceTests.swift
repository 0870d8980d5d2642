import CofferFaults
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferVault

@Suite("Attachments in several threads", .timeLimit(.minutes(30)))
struct AttachmentRaceTests {
    private let sandbox: Sandbox
    var stores: TestStores { sandbox.stores() }

    init() throws { sandbox = try Sandbox() }

    /// Few, so that a content is removed and saved again all the time.
    private static let contents = (0..<6).map { AttachmentTests.bytes([10, 20_000, 40_000][$0 % 3], seed: UInt64($0)) }

    @Test(
        "Attachments that are saved, read, deleted and compacted at the same time are whole or gone, never damaged",
        arguments: [true, false])
    func everything(isEncrypted: Bool) throws {
        let key = isEncrypted ? TestStores.key : nil
        let database = try stores.open(key: key)
        let tally = Tally()
        let roundCount = DamageTests.isExhaustive ? 5_000 : 500
        let savingCount = Atomic(2)
        try onThreads(4) { thread in
            var random = SeededNumbers(seed: UInt64(thread))
            let isSaving = thread == 0 || thread == 3
            defer { if isSaving { savingCount.subtract(1, ordering: .relaxed) } }
            var round = 0
            // The others go on for as long as there is something new.
            while isSaving ? round < roundCount : savingCount.load(ordering: .relaxed) > 0 {
                round += 1
                let document = database.document(withID: "d\(random.next() % 8)")
                do {
                    switch thread {
                    case 0: try Self.save(document, &random)
                    case 1: try Self.read(document, tally)
                    case 2:
                        if round % 3 == 0 {
                            try database.compact()
                            tally.count("compacted")
                        } else {
                            try Self.read(document, tally)
                        }
                    default:
                        if round % 2 == 0 {
                            try document.currentRevision?.deleteDocument()
                        } else {
                            try Self.save(document, &random)
                        }
                    }
                    tally.count("done")
                } catch let error as CofferError {
                    // Replaced, or compacted away, by another thread meanwhile.
                    #expect([.conflict, .attachmentNotFound, .revisionNotFound].contains(error.code), "\(error)")
                    tally.count("\(error.code)")
                }
            }
        }
        #expect(tally["read"] > 0 && tally["compacted"] > 0)
        try database.compact()
        for id in try database.documentIDs() {
            for attachment in try #require(try database[id]?.currentRevision).attachments {
                #expect(try Self.contents.contains(#require(try attachment.content)))
            }
        }
        let expected = try database.storage.read { (tables) throws(CofferError) in
            try tables.attachments.names(by: database.storage.attachments.naming)
        }
        let generation = try stores.generation()
        let names = { (folder: String) in
            try FileManager.default.contentsOfDirectory(atPath: generation.appending(path: folder).path)
        }
        #expect(try Set(names("attachments")) == expected)
        #expect(try names("incoming") == [])
        print("\(isEncrypted ? "encrypted" : "unencrypted"): \(tally.all)")
    }

    private static func save(_ document: Document, _ random: inout SeededNumbers) throws {
        let draft = try document.currentRevision?.createRevision() ?? document.newRevision()
        let content = contents[Int(random.next() % UInt64(contents.count))]
        if random.next() % 2 == 0 {
            draft.setAttachment(named: "a", contentType: nil, content: content)
        } else {
            try draft.setAttachment(named: "a", contentType: nil, contentsOf: InputStream(data: content))
        }
        try draft.save()
    }

    private static func read(_ document: Document, _ tally: Tally) throws {
        guard let attachment = try document.currentRevision?.attachment(named: "a") else { return }
        let length = attachment.length
        #expect(try contents.contains(attachment.content ?? Data()))
        #expect(try attachment.content(in: length - 1..<length)?.count == 1)
        #expect(try DamagedFileTests.read(attachment.openContentStream()).count == length)
        tally.count("read")
    }

    @Test(
        "Attachments that are compacted away and saved again between a look at the row and one for the file are read",
        arguments: [true, false])
    func savedAnew(isEncrypted: Bool) throws {
        let content = Self.contents[1]
        // Set while the file is being opened.
        let opened = Shared<Database?>(nil)
        let stores = TestStores(
            fileSystem: RecordingFileSystem(whenOpening: { name, isMissing in
                guard !name.hasPrefix("MANIFEST"), let database = opened.value else { return }
                if isMissing { opened.value = nil }
                #expect(throws: Never.self) {
                    guard isMissing else {
                        try database["d"]?.purge()
                        try database.compact()
                        return
                    }
                    try Self.save(content, as: "e", in: database)
                }
            }))
        let database = try stores.open(key: isEncrypted ? TestStores.key : nil) { $0.compactsInBackground = false }
        try Self.save(content, as: "d", in: database)
        let attachment = try #require(try database["d"]?.currentRevision?.attachment(named: "a"))
        opened.value = database
        #expect(try attachment.content == content)
        #expect(opened.value == nil)
        try database.close()
    }

    private static func save(_ content: Data, as id: String, in database: Database) throws {
        let draft = try database.document(withID: id).newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: content)
        try draft.save()
    }

    @Test(
        "Attachments that are being read stay readable to their end when the database is compacted, closed or deleted")
    func closing() throws {
        let content = AttachmentTests.bytes(3_000_000)
        for end in ["compact", "close", "delete"] {
            let database = try stores.open(end)
            let draft = try database.document(withID: "d").newRevision()
            draft.setAttachment(named: "a", contentType: nil, content: content)
            let attachment = try #require(try draft.save().attachment(named: "a"))
            let stream = try #require(try attachment.openContentStream())
            let chunks = try #require(try attachment.chunks)
            stream.open()
            var buffer = [UInt8](repeating: 0, count: 100_000)
            var read = Data()
            let first = stream.read(&buffer, maxLength: buffer.count)
            read += buffer[..<first]

            let unsaved = try database.document(withID: "unsaved").newRevision()
            try unsaved.setAttachment(named: "b", contentType: nil, contentsOf: InputStream(data: content))
            switch end {
            case "compact":
                try #require(try database["d"]?.currentRevision).deleteDocument()
                try database.compact()
                #expect(thrown { try attachment.content }?.code == .attachmentNotFound)
            case "close": try database.close()
            default: try database.delete()
            }
            if end != "compact" {
                #expect(thrown { try attachment.content }?.code == .closed)
                #expect(thrown { try attachment.openContentStream() }?.code == .closed)
                #expect(thrown { try unsaved.save() }?.code == .closed)
                #expect(
                    thrown {
                        try unsaved.setAttachment(named: "c", contentType: nil, contentsOf: InputStream(data: content))
                    }?.code == .closed)
                #expect(!attachment.contentAvailable)
            }
            while case let count = stream.read(&buffer, maxLength: buffer.count), count > 0 { read += buffer[..<count] }
            #expect(stream.streamError == nil)
            #expect(read == content)
            var pieces = Data()
            try chunks.forEach { pieces += $0 }
            #expect(pieces == content)
        }
    }
}
