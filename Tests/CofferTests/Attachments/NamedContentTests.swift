import Foundation
import Testing

@testable import Coffer

@Suite("JSON that names contents which are elsewhere")
struct NamedContentTests {
    let stores = TestStores()
    let database: Database
    private let json = Data(
        (#"{"_id":"d","_attachments":{"a":{"digest":"sha1-4JlqN8E9RMOwYHSTnUP6N1m9MsE=","length":5,"revpos":1,"stub":true}},"#
            + #""deep":[{"b":{"@type":"blob","digest":"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=","length":0}}],"#
            + #""again":{"@type":"blob","digest":"sha1-4JlqN8E9RMOwYHSTnUP6N1m9MsE=","length":5}}"#).utf8)
    private let contents = [
        "sha1-4JlqN8E9RMOwYHSTnUP6N1m9MsE=": Data("first".utf8), "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=": Data(),
    ]

    init() throws { database = try stores.open() }

    /// What the store keeps of contents, by the names of the files.
    private var contentFiles: [String] {
        get throws {
            try stores.snapshot().keys.filter { $0.contains("/incoming/") || $0.hasSuffix(".blob") }
        }
    }

    @Test("JSON that names contents which are elsewhere asks for each once, and only while it is not there")
    func saved() throws {
        var asked: [ContentReference] = []
        try database.save(json: json) { reference in
            asked.append(reference)
            return contents[reference.digest].map { Blob(data: $0) }
        }
        #expect(asked.map(\.length) == [5, 0])
        let revision = try #require(try database["d"]?.currentRevision)
        #expect(try revision.attachment(named: "a")?.content == Data("first".utf8))
        #expect(try revision["deep"]?[0]?["b"]?.blobValue?.content == Data())
        #expect(try revision.blob(forKey: "again")?.content == Data("first".utf8))
        let other = try database.save(json: json.replacingID(), withID: "e") { _ in
            Issue.record("it is there")
            return nil
        }
        #expect(try other.attachment(named: "a")?.content == Data("first".utf8))
    }

    @Test("JSON in a transaction finds the contents that it saved before")
    func transaction() throws {
        try database.inTransaction {
            var count = 0
            for id in ["d", "e"] {
                try database.save(json: json.replacingID(), withID: id) { reference in
                    count += 1
                    return contents[reference.digest].map { Blob(data: $0) }
                }
            }
            #expect(count == 2)
        }
        #expect(try database["e"]?.currentRevision?.attachment(named: "a")?.content == Data("first".utf8))
    }

    @Test("JSON that names a content that is missing, is another or has another length is refused, and nothing stays")
    func refused() throws {
        #expect(thrown { try database.save(json: json) { _ in nil } }?.code == .attachmentNotFound)
        for wrong in [Data("First".utf8), Data("first ".utf8), Data()] {
            let error = thrown {
                try database.save(json: json) { Blob(data: $0.length == 0 ? Data() : wrong) }
            }
            #expect(error?.code == .invalidAttachment)
            #expect(error?.description.contains("document d") == true)
        }
        let lies = Data(String(decoding: json, as: UTF8.self).replacing("\"length\":5", with: "\"length\":4").utf8)
        let error = thrown {
            try database.save(json: lies) { reference in contents[reference.digest].map { Blob(data: $0) } }
        }
        #expect(error?.code == .invalidAttachment)
        struct Other: Error {}
        #expect(throws: Other.self) { try database.save(json: json) { _ in throw Other() } }
        #expect(try database["d"] == nil)
        #expect(try contentFiles == [])
    }

    @Test("JSON in a task names contents that are elsewhere as any does")
    func task() async throws {
        let contents = contents
        let saved = try await database.save(json: json) { reference in
            contents[reference.digest].map { Blob(data: $0) }
        }
        #expect(try saved.attachment(named: "a")?.content == Data("first".utf8))
    }
}

extension Data {
    /// The same JSON without its `_id`.
    fileprivate func replacingID() -> Data {
        Data(String(decoding: self, as: UTF8.self).replacing("\"_id\":\"d\",", with: "").utf8)
    }
}
