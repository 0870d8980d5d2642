import Foundation
import Testing

@testable import Coffer

@Suite("Blobs")
struct BlobTests {
    let stores = TestStores()
    let database: Database
    let data = Data("This is a blob to store in the store!".utf8)

    init() throws { database = try stores.open() }

    @Test("Blobs are property values: set, read back before and after saving, and from the disk")
    func values() throws {
        let task = MutableDocument(id: "task-1", ["type": "task"])
        task["avatar"] = Blob(contentType: "image/jpeg", data: data)
        task.setBlob(Blob(data: Data()), forKey: "empty")
        #expect(try task.blob(forKey: "avatar")?.content == data)
        #expect(task.blob(forKey: "image") == nil)
        #expect(task.blob(forKey: "type") == nil)
        try database.saveDocument(task)
        #expect(try task.blob(forKey: "avatar")?.content == data)
        try database.close()

        let again = try stores.open()
        let revision = try #require(try again["task-1"]?.currentRevision)
        let avatar = try #require(try revision.blob(forKey: "avatar"))
        #expect(avatar.digest == "sha1-QneWo5IYIQ0ZrbCG0hXPGC6jy7E=")
        #expect(avatar.length == data.count)
        #expect(avatar.contentType == "image/jpeg")
        #expect(try avatar.content == data)
        #expect(try avatar.content(in: 5..<9) == data.subdata(in: 5..<9))
        #expect(try revision.blob(forKey: "empty")?.content == Data())
        #expect(try revision.blob(forKey: "type") == nil)
        #expect(
            try String(decoding: revision.json, as: UTF8.self)
                == #"{"avatar":{"@type":"blob","content_type":"image/jpeg","digest":"sha1-QneWo5IYIQ0ZrbCG0hXPGC6jy7E=","length":37},"#
                + #""empty":{"@type":"blob","digest":"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=","length":0},"type":"task"}"#)

        // Read, changed and saved again, it is still the same content.
        let mutable = try #require(try again["task-1"]).toMutable()
        mutable["more"] = 1
        try again.saveDocument(mutable)
        #expect(try again["task-1"]?.currentRevision?.blob(forKey: "avatar")?.content == data)
        let blob: Blob? = mutable["avatar"]
        #expect(try blob?.content == data)
    }

    @Test("Blobs may be nested anywhere")
    func nested() throws {
        let task = MutableDocument(id: "t")
        task["list"] = [Blob(data: data), Blob(data: Data("2".utf8))]
        task["object"] = ["inner": ["deep": JSONValue(Blob(data: Data("3".utf8)))]]
        try database.saveDocument(task)
        let properties = try #require(try database["t"]?.properties)
        #expect(try properties["list"]?[1]?.blobValue?.content == Data("2".utf8))
        #expect(try properties["object"]?["inner"]?["deep"]?.blobValue?.content == Data("3".utf8))
        let draft = try database.document(withID: "t").newRevision()
        draft["x"] = 1
        try draft.save()
        #expect(try database["t"]?.properties?["list"]?[0]?.blobValue?.content == data)
    }

    @Test("Blobs come from files and streams too, which are read when they are saved")
    func sources() throws {
        try FileManager.default.createDirectory(at: stores.directory, withIntermediateDirectories: true)
        let file = stores.directory.appending(path: "f")
        try data.write(to: file)
        let task = MutableDocument(id: "t")
        let streamed = Blob(contentsOf: InputStream(data: data))
        task["file"] = try Blob(contentType: "text/plain", contentsOf: file)
        task["stream"] = streamed
        #expect(streamed.digest == nil)
        #expect(try streamed.content == nil)
        try database.saveDocument(task)
        #expect(streamed.digest == "sha1-QneWo5IYIQ0ZrbCG0hXPGC6jy7E=")
        #expect(try streamed.content == data)
        #expect(try database["t"]?.currentRevision?.blob(forKey: "file")?.content == data)
        #expect(thrown { try Blob(contentsOf: stores.directory.appending(path: "none")) }?.code == .invalidAttachment)
    }

    struct Person: Codable, Equatable {
        var name: String
        var photo: Blob?
    }

    @Test("Blobs are in values of one's own")
    func codable() throws {
        try database.save(Person(name: "Robin", photo: Blob(contentType: "image/png", data: data)), withID: "p")
        try database.save(Person(name: "None", photo: nil), withID: "q")
        let person = try database.document(withID: "p").decode(Person.self)
        #expect(person.photo?.contentType == "image/png")
        #expect(try person.photo?.content == data)
        #expect(try database.document(withID: "q").decode(Person.self) == Person(name: "None", photo: nil))
        try database.update("p", as: Person.self) { $0.name = "R" }
        #expect(try database.document(withID: "p").decode(Person.self).photo?.content == data)
        #expect(throws: EncodingError.self) { try JSONEncoder().encode(Blob(contentsOf: InputStream(data: data))) }
    }

    @Test("Blobs of another database are copied")
    func copies() throws {
        let task = MutableDocument(id: "t", ["b": JSONValue(Blob(data: data))])
        try database.saveDocument(task)
        let other = try stores.open("other", key: nil)
        let copy = MutableDocument(id: "t", try #require(try database["t"]?.properties))
        try other.saveDocument(copy)
        #expect(try other["t"]?.currentRevision?.blob(forKey: "b")?.content == data)
    }

    @Test("Blobs and attachments with the same content share one file, and stay while one of them is used")
    func shared() throws {
        try database.saveDocument(MutableDocument(id: "t", ["b": JSONValue(Blob(data: data))]))
        let draft = try database.document(withID: "a").newRevision()
        draft.setAttachment(named: "same", contentType: nil, content: data)
        try draft.save()
        try database.document(withID: "t").delete()
        #expect(try database.compact().attachmentCount == 0)
        #expect(try database["a"]?.currentRevision?.attachment(named: "same")?.content == data)
        try database.document(withID: "a").delete()
        #expect(try database.compact().attachmentCount == 1)
    }

    @Test("Blobs that a document names must be there, and an object that only looks like one is just an object")
    func references() throws {
        let unknown = #"{"b":{"@type":"blob","digest":"sha1-QneWo5IYIQ0ZrbCG0hXPGC6jy7E=","length":37}}"#
        #expect(thrown { try database.save(json: Data(unknown.utf8), withID: "x") }?.code == .attachmentNotFound)
        try database.save(json: Data(#"{"b":{"@type":"blob"},"c":"\"@type\":\"blob\""}"#.utf8), withID: "y")
        #expect(try database["y"]?.currentRevision?.blob(forKey: "b") == nil)
        try database.saveDocument(MutableDocument(id: "t", ["b": JSONValue(Blob(data: data))]))
        try database.save(json: Data(unknown.utf8), withID: "x")
        #expect(try database["x"]?.currentRevision?.blob(forKey: "b")?.content == data)
    }
}
