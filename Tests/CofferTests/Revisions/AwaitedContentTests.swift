import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords

@Suite("Content of another database's revision")
struct AwaitedContentTests {
    let stores = TestStores()
    let database: Database
    let hello = Data("hello".utf8)
    let digest: JSONValue = "sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00="

    init() throws { database = try stores.open() }

    private func stub(_ digest: JSONValue, _ length: Int = 5) -> JSONObject {
        ["_attachments": ["x": ["stub": true, "digest": digest, "length": .number(JSONNumber(length))]]]
    }

    @Test("Awaited content that is not here is nil, until anybody brings it")
    func awaited() throws {
        let result = try database.putExistingRevision(stub(digest), withID: "a", history: ids("1-a"))
        let attachment = try #require(try result.revision.attachment(named: "x"))
        #expect(!attachment.contentAvailable)
        #expect(try attachment.content == nil)
        #expect(try attachment.content(in: 0..<1) == nil)
        #expect(try attachment.chunks == nil)
        #expect(try attachment.openContentStream() == nil)
        #expect(attachment.contentURL == nil)

        // Edits keep it, and it stays away.
        let draft = try result.revision.createRevision()
        draft["n"] = 1
        let edited = try #require(try draft.save().attachment(named: "x"))
        #expect(edited.digest == attachment.digest)
        #expect(try edited.content == nil)

        let other = try database.document(withID: "b").newRevision()
        other.setAttachment(named: "y", contentType: nil, content: hello)
        try other.save()
        #expect(attachment.contentAvailable)
        #expect(try attachment.content == hello)
        #expect(try edited.content == hello)
        try database.compact()
        #expect(try edited.content == hello)
    }

    @Test("Content that comes with a foreign revision is checked, and kept under its own digest")
    func brought() throws {
        let properties: JSONObject = [
            "_attachments": [
                "x": [
                    "follows": true, "digest": "md5-XUFAKrxLKna5cZ2REBfFkg==", "length": 5, "revpos": 1,
                    "content_type": "text/plain",
                ],
                "e\u{301}": ["stub": true],
            ]
        ]
        let result = try database.putExistingRevision(
            properties, withID: "a", history: ids("2-b", "1-a"),
            attachments: ["x": Blob(data: hello), "e\u{301}": Blob(data: Data())])
        let attachment = try #require(try result.revision.attachment(named: "x"))
        #expect(attachment.digest == digest.stringValue)
        #expect(attachment.contentType == "text/plain")
        #expect(attachment.changedInGeneration == 1)
        #expect(try attachment.content == hello)
        let empty = try #require(try result.revision.attachment(named: "e\u{301}"))
        #expect(try empty.content == Data())
        #expect(empty.changedInGeneration == 2)

        let wrong = thrown {
            try database.putExistingRevision(
                stub("sha1-gOHUOBmIMoDCrMuGyaLWzf1hQTE="), withID: "w", history: ids("1-a"),
                attachments: ["x": Blob(data: hello)])
        }
        #expect(wrong?.code == .invalidAttachment)
        let short = thrown {
            try database.putExistingRevision(
                stub(digest, 4), withID: "w", history: ids("1-a"), attachments: ["x": Blob(data: hello)])
        }
        #expect(short?.code == .invalidAttachment)
        let otherMD5 = thrown {
            try database.putExistingRevision(
                stub("md5-gOHUOBmIMoDCrMuGyaLWzQ=="), withID: "w", history: ids("1-a"),
                attachments: ["x": Blob(data: hello)])
        }
        #expect(otherMD5?.code == .invalidAttachment)
        #expect(try database["w"] == nil)
    }

    @Test("Content of a foreign revision that is here already need not come again, and has one length")
    func here() throws {
        let draft = try database.document(withID: "b").newRevision()
        draft.setAttachment(named: "y", contentType: nil, content: hello)
        try draft.save()
        let result = try database.putExistingRevision(stub(digest), withID: "a", history: ids("1-a"))
        #expect(try result.revision.attachment(named: "x")?.content == hello)
        let error = thrown { try database.putExistingRevision(stub(digest, 4), withID: "c", history: ids("1-a")) }
        #expect(error?.code == .invalidAttachment)
    }

    @Test("Awaited content in blobs may be away, too")
    func blobs() throws {
        let properties: JSONObject = ["face": ["@type": "blob", "digest": digest, "length": 5]]
        let result = try database.putExistingRevision(properties, withID: "a", history: ids("1-a"))
        let blob = try #require(try result.revision.blob(forKey: "face"))
        #expect(try blob.content == nil)
        #expect(!blob.contentAvailable)
        let mutable = try database.document(withID: "a").toMutable()
        mutable["n"] = 1
        try database.saveDocument(mutable)
        #expect(try mutable.blob(forKey: "face")?.content == nil)

        let whole: JSONObject = ["face": .blob(Blob(contentType: "text/plain", data: hello))]
        let second = try database.putExistingRevision(whole, withID: "b", history: ids("1-a"))
        #expect(try second.revision.blob(forKey: "face")?.content == hello)
        #expect(try blob.content == hello)
    }

    @Test("Awaited content survives a change of the key, and is forgotten with its last revision")
    func keyChange() throws {
        _ = try database.putExistingRevision(stub(digest), withID: "a", history: ids("1-a"))
        _ = try database.putExistingRevision(stub("md5-abc"), withID: "b", history: ids("1-a"))
        _ = try database.changeEncryptionKey(to: testKey(9))
        let document = database.document(withID: "b")
        #expect(try document.currentRevision?.attachment(named: "x")?.digest == "md5-abc")
        #expect(try document.currentRevision?.attachment(named: "x")?.content == nil)
        try document.purge()
        let result = try database.compact()
        #expect(result.attachmentCount == 0, "there was no content")
        let count = try database.storage.read { (tables) throws(CofferError) in
            try tables.attachments.attachmentCount()
        }
        #expect(count == 1)
    }

    @Test("Awaited content is not taken for a save's own: a save of what is unknown is still a 404")
    func saves() throws {
        let json = #"{"_attachments":{"x":{"digest":"md5-no","length":5,"revpos":1,"stub":true}}}"#
        #expect(thrown { try database.save(json: Data(json.utf8), withID: "a") }?.code == .attachmentNotFound)
        _ = try database.putExistingRevision(stub("md5-no"), withID: "b", history: ids("1-a"))
        try database.save(json: Data(json.utf8), withID: "a")
    }
}
