import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferModel
@testable import CofferVault

@Suite("Attachments of revisions")
struct AttachmentTests {
    let stores = TestStores()
    let database: Database
    var document: Document { database.document(withID: "Robin") }

    init() throws { database = try stores.open() }

    /// Bytes that differ from place to place.
    static func bytes(_ count: Int, seed: UInt64 = 1) -> Data {
        var random = SeededNumbers(seed: seed)
        // Words, since in a debug build each number takes its time.
        let words = (0..<(count + 7) / 8).map { _ in random.next() }
        return words.withUnsafeBytes { Data($0.prefix(count)) }
    }

    static let lengths = [0, 1, 16_383, 16_384, 16_385, 32_767, 32_768, 32_769, 1 << 20, (1 << 20) + 1, 3_000_000]

    @Test(
        "Attachments of every size come back byte for byte, whole, in parts, in pieces and as a stream",
        arguments: lengths)
    func sizes(count: Int) async throws {
        let content = Self.bytes(count)
        let draft = try document.newRevision()
        draft.setAttachment(named: "photo.jpg", contentType: "image/jpeg", content: content)
        #expect(try draft.attachment(named: "photo.jpg")?.content == content)
        try await draft.save()
        try await database.close()

        let again = try stores.open()
        let revision = try #require(try again.document(withID: "Robin").currentRevision)
        let attachment = try #require(try revision.attachment(named: "photo.jpg"))
        #expect(attachment.contentType == "image/jpeg")
        #expect(attachment.length == count)
        #expect(attachment.changedInGeneration == 1)
        #expect(attachment.contentAvailable)
        #expect(attachment.contentURL == nil)
        #expect(try attachment.content == content)
        for range in [
            0..<0, 0..<min(1, count), (count / 2)..<(count / 2 + min(1, count - count / 2)), max(0, count - 5)..<count,
        ] {
            #expect(try attachment.content(in: range) == content.subdata(in: range))
        }
        #expect(thrown { try attachment.content(in: 0..<(count + 1)) }?.code == .invalidArgument)

        var pieces = Data()
        for try await chunk in try #require(try attachment.chunks) {
            #expect(chunk.count <= AttachmentChunks.byteCount)
            pieces += chunk
        }
        #expect(pieces == content)
        #expect(try read(#require(try attachment.openContentStream())) == content)
    }

    private func read(_ stream: InputStream) throws -> Data {
        var all = Data()
        var buffer = [UInt8](repeating: 0, count: 10_000)
        stream.open()
        defer { stream.close() }
        while true {
            let count = stream.read(&buffer, maxLength: buffer.count)
            if count == 0 { return all }
            guard count > 0 else { throw try #require(stream.streamError) }
            all += buffer[..<count]
        }
    }

    @Test("Attachments are read from a file, a stream or a sequence when they are set, and need it no longer")
    func sources() async throws {
        let content = Self.bytes(100_000)
        try FileManager.default.createDirectory(at: stores.directory, withIntermediateDirectories: true)
        let file = stores.directory.appending(path: "film.mp4")
        try content.write(to: file)
        let draft = try document.newRevision()
        try draft.setAttachment(named: "file", contentType: "video/mp4", contentsOf: file)
        try draft.setAttachment(named: "stream", contentType: nil, contentsOf: InputStream(data: content))
        let bytes = AsyncStream<UInt8> { continuation in
            for byte in content { continuation.yield(byte) }
            continuation.finish()
        }
        try await draft.setAttachment(named: "sequence", contentType: "", contentsOf: bytes)
        try FileManager.default.removeItem(at: file)
        #expect(try draft.attachments.map { try $0.content } == [content, content, content])
        let revision = try await draft.save()
        #expect(try revision.attachmentNames == ["file", "sequence", "stream"])
        #expect(try revision.attachments.map { try $0.content } == [content, content, content])
        #expect(try revision.attachment(named: "stream")?.contentType == nil)
        // The same content three times is one file.
        #expect(try attachmentFiles().count == 1)
        #expect(
            thrown { try draft.setAttachment(named: "x", contentType: nil, contentsOf: file) }?.code
                == .invalidAttachment)
    }

    private func attachmentFiles() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: stores.generation().appending(path: "attachments").path)
    }

    private func incomingFiles() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: stores.generation().appending(path: "incoming").path)
    }

    @Test("Attachments are named by the SHA-1 of their content, which is their digest")
    func names() throws {
        let draft = try document.newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Data("This is the body of attach1".utf8))
        let revision = try draft.save()
        #expect(try revision.attachment(named: "a")?.digest == "sha1-gOHUOBmIMoDCrMuGyaLWzf1hQTE=")
        #expect(try attachmentFiles() == ["80e1d43819883280c2accb86c9a2d6cdfd614131.blob"])
        #expect(try incomingFiles() == [])
    }

    @Test("Attachments are inherited, replaced and removed; revpos says when each was changed last")
    func inheritance() throws {
        let draft = try document.newRevision()
        draft.setAttachment(named: "keep", contentType: "a/b", content: Data("1".utf8))
        draft.setAttachment(named: "replace", contentType: "a/b", content: Data("2".utf8))
        draft.setAttachment(named: "remove", contentType: "a/b", content: Data("3".utf8))
        let first = try draft.save()
        draft["title"] = "x"
        draft.setAttachment(named: "replace", contentType: "c/d", content: Data("4".utf8))
        draft.removeAttachment(named: "remove")
        draft.removeAttachment(named: "no such name")
        let second = try draft.save()
        #expect(try second.attachmentNames == ["keep", "replace"])
        #expect(try second.attachments.map(\.changedInGeneration) == [1, 2])
        #expect(try second.attachment(named: "replace")?.content == Data("4".utf8))
        #expect(try second.attachment(named: "replace")?.contentType == "c/d")
        #expect(try second.attachment(named: "remove") == nil)
        #expect(try first.attachment(named: "remove")?.content == Data("3".utf8))
        #expect(try second.properties == ["title": "x"])

        // Whatever changes only properties keeps them: other kinds of saving, too.
        let mutable = try document.toMutable()
        mutable["title"] = "y"
        try database.saveDocument(mutable)
        #expect(try document.currentRevision?.attachmentNames == ["keep", "replace"])
        try database.save(
            json: Data(#"{"title":"z"}"#.utf8), withID: "Robin", replacing: try document.currentRevisionID)
        #expect(try document.currentRevision?.attachment(named: "keep")?.content == Data("1".utf8))
        #expect(try document.currentRevision?.attachment(named: "keep")?.changedInGeneration == 1)

        let tombstone = try document.delete()
        #expect(try tombstone.attachmentNames == [])
        let anew = try document.newRevision()
        #expect(anew.attachmentNames == [])
    }

    @Test(
        "Attachments may have any name but none",
        arguments: ["path/to/attachment", "é", "a\0b", " ", String(repeating: "n", count: 5000), "_x", "."])
    func anyName(name: String) throws {
        let draft = try document.newRevision()
        draft.setAttachment(named: name, contentType: "any thing; at=all", content: Data("x".utf8))
        try draft.save()
        #expect(try document.currentRevision?.attachment(named: name)?.content == Data("x".utf8))
        let bad = try document.newRevision()
        bad.setAttachment(named: "", contentType: nil, content: Data())
        #expect(thrown { try bad.save() }?.code == .invalidAttachment)
    }

    @Test("Attachments that no revision uses any more go with compaction, and no others")
    func compaction() async throws {
        let draft = try document.newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Self.bytes(2_000_000, seed: 1))
        draft.setAttachment(named: "b", contentType: nil, content: Data("b".utf8))
        let first = try await draft.save()
        let other = try database.document(withID: "other").newRevision()
        other.setAttachment(named: "same as a", contentType: nil, content: Self.bytes(2_000_000, seed: 1))
        try await other.save()
        draft.setAttachment(named: "a", contentType: nil, content: Data("new".utf8))
        draft.removeAttachment(named: "b")
        try await draft.save()
        #expect(try attachmentFiles().count == 3)

        let strange = try stores.generation().appending(path: "attachments/notes.txt")
        try Data("mine".utf8).write(to: strange)
        let pending = try database.document(withID: "pending").newRevision()
        try pending.setAttachment(named: "p", contentType: nil, contentsOf: InputStream(data: Data("pending".utf8)))

        let result = try await database.compact()
        #expect(result == CompactionResult(revisionCount: 1, attachmentCount: 1, attachmentByteCount: 1))
        #expect(try attachmentFiles().count == 3)
        #expect(try Data(contentsOf: strange) == Data("mine".utf8))
        #expect(try document.currentRevision?.attachment(named: "a")?.content == Data("new".utf8))
        #expect(thrown { _ = try document.revision(withID: first.revisionID)?.properties }?.code == .revisionNotFound)
        #expect(thrown { _ = try first.attachment(named: "b")?.content }?.code == .attachmentNotFound)

        // What is being read stays readable, though its last revision goes.
        let reading = try #require(
            try database.document(withID: "other").currentRevision?.attachment(named: "same as a"))
        var chunks = try #require(try reading.chunks).makeAsyncIterator()
        let beginning = try #require(try await chunks.next())
        try await database.document(withID: "other").delete()
        #expect(try await database.compact().attachmentCount == 1)
        var content = beginning
        while let next = try await chunks.next() { content += next }
        #expect(content == Self.bytes(2_000_000, seed: 1))
        #expect(try attachmentFiles().count == 2)

        try await pending.save()
        #expect(
            try database.document(withID: "pending").currentRevision?.attachment(named: "p")?.content
                == Data("pending".utf8))
        #expect(try await database.compact() == CompactionResult())
        #expect(try incomingFiles() == [])
    }

    @Test("Attachments that are files without a row are removed by compaction", arguments: [true, false])
    func orphans(isKeyed: Bool) throws {
        let database = try stores.open("other") { $0.keyedNames = isKeyed }
        let draft = try database.document(withID: "d").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Data("kept".utf8))
        try draft.save()
        let folder = try stores.generation("other").appending(path: "attachments")
        let orphan = String(repeating: "ab", count: isKeyed ? 32 : 20) + ".blob"
        for name in [orphan, "ab.blob", orphan + ".txt"] { try Data("x".utf8).write(to: folder.appending(path: name)) }
        #expect(try database.compact() == CompactionResult())
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.count == 3 && !names.contains(orphan))
        #expect(try database["d"]?.currentRevision?.attachment(named: "a")?.content == Data("kept".utf8))
    }

    @Test("Attachments of a transaction that is rolled back leave nothing, and the draft can be saved again")
    func rollback() throws {
        let draft = try document.newRevision()
        try draft.setAttachment(named: "a", contentType: nil, contentsOf: InputStream(data: Data("a".utf8)))
        draft.setAttachment(named: "b", contentType: nil, content: Data("b".utf8))
        #expect(throws: CancellationError.self) {
            try database.inTransaction {
                let revision = try draft.save()
                #expect(try revision.attachments.map { try $0.content } == [Data("a".utf8), Data("b".utf8)])
                throw CancellationError()
            }
        }
        #expect(try attachmentFiles() == [])
        #expect(try document.currentRevision == nil)
        let again = try document.newRevision()
        for attachment in draft.attachments {
            again.setAttachment(named: attachment.name, contentType: nil, content: try #require(try attachment.content))
        }
        try again.save()
        #expect(try attachmentFiles().count == 2)
    }

    @Test("Many attachments in one transaction are all there, and nothing is left in incoming")
    func many() throws {
        try database.inTransaction {
            for number in 0..<100 {
                let draft = try database.document(withID: "d\(number)").newRevision()
                draft.setAttachment(named: "a", contentType: nil, content: Data("content \(number % 60)".utf8))
                try draft.save()
            }
            #expect(try database["d5"]?.currentRevision?.attachment(named: "a")?.content == Data("content 5".utf8))
        }
        #expect(try attachmentFiles().count == 60)
        #expect(try incomingFiles() == [])
        #expect(try database["d99"]?.currentRevision?.attachment(named: "a")?.content == Data("content 39".utf8))
    }

    @Test(
        "Attachments whose file is missing, cut, changed or another's are damaged, with their name, whole and in part")
    func damage() throws {
        let draft = try document.newRevision()
        draft.setAttachment(named: "photo.jpg", contentType: nil, content: Self.bytes(40_000))
        draft.setAttachment(named: "other", contentType: nil, content: Self.bytes(40_000, seed: 2))
        try draft.save()
        let attachment = try #require(try document.currentRevision?.attachment(named: "photo.jpg"))
        let other = try #require(try document.currentRevision?.attachment(named: "other"))
        let file = try file(of: attachment)
        let whole = try Data(contentsOf: file)

        func expectDamage(_ what: String, _ bytes: Data) throws {
            try FileManager.default.removeItem(at: file)
            try bytes.write(to: file)
            for error in [
                thrown { _ = try attachment.content }, thrown { try attachment.content(in: 0..<40_000) },
                thrown { try read(#require(try attachment.openContentStream())) },
            ] {
                #expect(error?.code == .damaged, "\(what)")
                #expect(error?.description.contains("photo.jpg") == true, "\(what)")
            }
        }
        try expectDamage("empty", Data())
        try expectDamage("cut at a chunk", whole.prefix(56 + 16_400))
        try expectDamage("cut in a chunk", whole.prefix(20_000))
        try expectDamage("one byte short", whole.dropLast())
        try expectDamage("one byte more", whole + [0])
        try expectDamage("another's file", try Data(contentsOf: self.file(of: other)))
        for offset in [0, 23, 24, 55, 56, 5_000, 16_456, 30_000, whole.count - 1] {
            var changed = whole
            changed[offset] ^= 1
            try expectDamage("byte \(offset)", changed)
        }
        var swapped = whole
        swapped.replaceSubrange(56..<(56 + 16_400), with: whole[(56 + 16_400)..<(56 + 32_800)])
        swapped.replaceSubrange((56 + 16_400)..<(56 + 32_800), with: whole[56..<(56 + 16_400)])
        try expectDamage("chunks swapped", swapped)

        // The same content, encrypted earlier: another header than the row's.
        let earlier = try stores.open("earlier")
        let twin = try earlier.document(withID: "Robin").newRevision()
        twin.setAttachment(named: "photo.jpg", contentType: nil, content: Self.bytes(40_000))
        try twin.save()
        let name = file.lastPathComponent
        try expectDamage(
            "another store's file",
            Data(contentsOf: stores.generation("earlier").appending(path: "attachments/\(name)")))

        try FileManager.default.removeItem(at: file)
        #expect(!attachment.contentAvailable)
        #expect(thrown { _ = try attachment.content }?.code == .damaged)
        #expect(thrown { _ = try attachment.chunks }?.description.contains("photo.jpg") == true)
        #expect(try document.properties == [:])
        // Attaching the content once more brings it back, for everybody who names it: also where it is there and damaged.
        try whole.prefix(1000).write(to: file)
        let repair = try database.document(withID: "repair").newRevision()
        repair.setAttachment(named: "again", contentType: nil, content: Self.bytes(40_000))
        try repair.save()
        #expect(try attachment.content == Self.bytes(40_000))
    }

    private func file(of attachment: Coffer.Attachment) throws -> URL {
        let sha1 = try #require(SHA1Digest.bytes(of: attachment.digest)).hex
        return try stores.generation().appending(path: "attachments/\(sha1).blob")
    }

    @Test("Attachments of an encrypted database are nowhere readable; of an unencrypted one they are files to read")
    func onDisk() throws {
        let canary = "canary-in-an-attachment"
        for key in [TestStores.key, nil] {
            let database = try stores.open(key == nil ? "plain" : "secret", key: key)
            let draft = try database.document(withID: "d").newRevision()
            draft.setAttachment(named: "a", contentType: nil, content: Data(canary.utf8))
            try draft.setAttachment(
                named: "b", contentType: nil, contentsOf: InputStream(data: Data((canary + "!").utf8)))
            #expect(try stores.files(containing: canary).isEmpty == (key != nil))
            try draft.save()
            let url = try database["d"]?.currentRevision?.attachment(named: "a")?.contentURL
            if key != nil {
                #expect(url == nil)
                #expect(try stores.files(containing: canary) == [])
            } else {
                #expect(try Data(contentsOf: #require(url)) == Data(canary.utf8))
                #expect(try stores.files(containing: canary).count == 2)
            }
            if key != nil { try database.close() }
        }
    }

    @Test("Attachments have names that say nothing where that was asked for")
    func keyedNames() throws {
        let database = try stores.open("keyed") { $0.keyedNames = true }
        let draft = try database.document(withID: "d").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Data("This is the body of attach1".utf8))
        try draft.save()
        let names = try FileManager.default.contentsOfDirectory(
            atPath: stores.generation("keyed").appending(path: "attachments").path)
        #expect(names.count == 1 && names[0].count == 64 + 5)
        let digest = try #require(try database["d"]?.currentRevision?.attachment(named: "a")?.digest)
        let sha1 = try #require(Data(base64Encoded: String(digest.dropFirst("sha1-".count))))
        #expect(sha1.count == 20 && !names[0].contains(hexadecimal(Array(sha1.prefix(8)))))
        #expect(
            try database["d"]?.currentRevision?.attachment(named: "a")?.content
                == Data("This is the body of attach1".utf8))
        #expect(thrown { try stores.open("plain", key: nil) { $0.keyedNames = true } }?.code == .invalidArgument)
        #expect(!stores.manager.databaseExists(named: "plain"))
    }

    @Test("Attachments whose source fails midway are not attached, and leave nothing")
    func failingSource() async throws {
        let draft = try document.newRevision()
        let failing = AsyncThrowingStream<UInt8, any Error> { continuation in
            for _ in 0..<200_000 { continuation.yield(1) }
            continuation.finish(throwing: CancellationError())
        }
        await #expect(throws: CancellationError.self) {
            try await draft.setAttachment(named: "a", contentType: nil, contentsOf: failing)
        }
        #expect(draft.attachmentNames == [])
        #expect(try incomingFiles() == [])
        try await draft.save()
        #expect(try attachmentFiles() == [])
    }

    @Test("Attachments that were written and never saved leave with their draft")
    func unsaved() throws {
        do {
            let draft = try document.newRevision()
            try draft.setAttachment(named: "a", contentType: nil, contentsOf: InputStream(data: Self.bytes(50_000)))
            #expect(try incomingFiles().count == 1)
        }
        #expect(try incomingFiles() == [])
    }

    @Test(
        "Attachments that have the SHA-1 of another content are a 409, and replace nothing", arguments: [true, false])
    func collision(isOneTransaction: Bool) throws {
        // Every content gets one and the same SHA-1.
        let stores = TestStores {
            ContentDigest(sha1: .init(repeating: 1, count: 20), sha256: $0.sha256, byteCount: $0.byteCount)
        }
        let database = try stores.open()
        func attach(_ text: String, to id: String) throws {
            let draft = try database.document(withID: id).newRevision()
            try draft.setAttachment(named: "a", contentType: nil, contentsOf: InputStream(data: Data(text.utf8)))
            try draft.save()
        }
        let error = thrown {
            if isOneTransaction {
                try database.inTransaction {
                    try attach("first", to: "one")
                    #expect(thrown { try attach("other", to: "two") }?.code == .digestCollision)
                }
            } else {
                try attach("first", to: "one")
            }
            try attach("third", to: "three")
        }
        #expect(error?.code == .digestCollision)
        #expect(error?.status == 409)
        #expect(try database["one"]?.currentRevision?.attachment(named: "a")?.content == Data("first".utf8))
        #expect(try database["two"] == nil)
        #expect(try database["three"] == nil)
        try attach("first", to: "four")
        #expect(try database["four"]?.currentRevision?.attachment(named: "a")?.content == Data("first".utf8))
    }

    @Test("Attachments that JSON names must be there")
    func named() throws {
        let stub =
            #"{"_attachments":{"a":{"digest":"sha1-gOHUOBmIMoDCrMuGyaLWzf1hQTE=","length":27,"revpos":1,"stub":true}}}"#
        #expect(thrown { try database.save(json: Data(stub.utf8), withID: "x") }?.code == .attachmentNotFound)
        #expect(try database["x"] == nil)
        let draft = try document.newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Data("This is the body of attach1".utf8))
        try draft.save()
        try database.save(json: Data(stub.utf8), withID: "x")
        #expect(
            try database["x"]?.currentRevision?.attachment(named: "a")?.content
                == Data("This is the body of attach1".utf8))
        let wrong = stub.replacingOccurrences(of: "27", with: "28")
        #expect(thrown { try database.save(json: Data(wrong.utf8), withID: "y") }?.code == .invalidAttachment)
        let none = try database.save(
            json: Data(#"{"_attachments":{}}"#.utf8), withID: "x",
            replacing: try database.document(withID: "x").currentRevisionID)
        #expect(try none.attachmentNames == [])
        #expect(try none.json == Data("{}".utf8))
        for (old, new) in [
            ("revpos\":1", "revpos\":2"), ("\"stub\":true", "\"stub\":true,\"data\":\"\""),
        ] {
            let strange = stub.replacingOccurrences(of: old, with: new)
            let error = thrown { try database.save(json: Data(strange.utf8), withID: "z") }
            #expect(error?.code == .invalidJSON, "\(strange)")
            #expect(error?.subject == "document z")
        }
        for bad in [#"{"_attachments":{"a":1}}"#, #"{"_attachments":{"a":{"digest":"x"}}}"#, #"{"_attachments":[]}"#] {
            #expect(thrown { try database.save(json: Data(bad.utf8), withID: "z") }?.code == .invalidJSON)
        }
    }
}
