import Foundation
import Testing

@testable import Coffer
@testable import CofferVault

@Suite("Attachments as nobody should have them")
struct HostileAttachmentTests {
    let stores = TestStores()
    let database: Database
    private let content = Data("This is the body of attach1".utf8)
    private let digest = "sha1-gOHUOBmIMoDCrMuGyaLWzf1hQTE="

    init() throws {
        database = try stores.open()
        let draft = try database.document(withID: "d").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: content)
        try draft.save()
    }

    /// Stubs that are none, whatever content is there.
    private static let strangeStubs: [String] =
        [
            "null", "true", "1", #""x""#, "[]", #"{"a":null}"#, #"{"a":[]}"#, #"{"a":"x"}"#, #"{"a":{}}"#,
        ]
        + [
            ("D\"", "D\",\"follows\":true"), ("D\"", "D\",\"data\":\"VGhpcw==\""), ("D\"", "D\",\"x\":1"),
            ("\"digest\":\"D\"", "\"digest\":null"), ("\"digest\":\"D\"", "\"digest\":7"),
            ("\"digest\":\"D\"", "\"digest\":[\"D\"]"), (":true", ":false"), (":true", ":1"), (":true", ":\"true\""),
            (",\"stub\":true", ""),
        ].map { #"{"a":{"digest":"D","length":27,"revpos":1,"stub":true}}"#.replacingOccurrences(of: $0, with: $1) }
        + ["-1", "27.5", "\"27\"", "null", "[27]", "18446744073709551615", "9223372036854775808"].map {
            #"{"a":{"digest":"D","length":\#($0),"revpos":1,"stub":true}}"#
        }
        + ["0", "-1", "-9223372036854775808", "1.5", "\"1\"", "null", "2", "9223372036854775807"].map {
            #"{"a":{"digest":"D","length":27,"revpos":\#($0),"stub":true}}"#
        }
        + ["null", "1", "[]", "{}", "true"].map {
            #"{"a":{"content_type":\#($0),"digest":"D","length":27,"revpos":1,"stub":true}}"#
        }

    private func save(_ attachments: String) throws -> SavedRevision {
        let text = #"{"_attachments":\#(attachments.replacingOccurrences(of: "D\"", with: digest + "\""))}"#
        return try database.save(json: Data(text.utf8), withID: "x")
    }

    @Test("Attachments that are said in JSON are a 400 that saves nothing", arguments: strangeStubs)
    func stubs(text: String) throws {
        let error = thrown { try save(text) }
        #expect(error?.status == 400)
        #expect(error?.code == .invalidJSON)
        #expect(try database.document(withID: "x").currentRevisionID == nil)
    }

    @Test("Attachments with another length or digest than a content that is here are refused, and the right ones taken")
    func references() throws {
        for length in ["0", "26", "28", "4503599627370496", "9223372036854775807"] {
            let error = thrown { try save(#"{"a":{"digest":"D","length":\#(length),"revpos":1,"stub":true}}"#) }
            #expect(error?.code == .invalidAttachment, "\(length)")
        }
        for digest in [
            "", "sha1-", "md5-gOHUOBmIMoDCrMuGyaLWzf1hQTE=", "sha1-gOHUOBmIMoDCrMuGyaLWzf1hQTF=",
            "sha1-gOHUOBmIMoDCrMuGyaLWzf1hQTE", "SHA1-gOHUOBmIMoDCrMuGyaLWzf1hQTE=",
            "sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "../../MANIFEST", "sha1-\\u0000", String(repeating: "x", count: 100_000),
        ] {
            let text = #"{"_attachments":{"a":{"digest":"\#(digest)","length":27,"revpos":1,"stub":true}}}"#
            #expect(
                thrown { try database.save(json: Data(text.utf8), withID: "x") }?.code == .attachmentNotFound,
                "\(digest.prefix(50))")
            let blob = #"{"b":{"@type":"blob","digest":"\#(digest)","length":27}}"#
            let error = thrown { try database.save(json: Data(blob.utf8), withID: "x") }
            #expect(error == nil || error?.code == .attachmentNotFound, "\(digest.prefix(50))")
            if error == nil {
                // Only looks like one.
                #expect(try database["x"]?.currentRevision?.blob(forKey: "b") == nil)
                try #require(try database["x"]?.currentRevision).deleteDocument()
                try database.compact()
            }
        }
        #expect(try database["x"] == nil)
        #expect(
            try save(#"{"a":{"digest":"D","length":27,"revpos":1,"stub":true}}"#).attachment(named: "a")?.content
                == content)
    }

    static let names = [
        "a/b/c", "..", ".", "../../../etc/passwd", "/", "a\0b", "\0", String(repeating: "n", count: 10_240), "👨‍👩‍👧‍👦.png",
        "caf\u{E9}", "cafe\u{301}", " ", "\n", "\u{FEFF}", "\"quoted\"\\", "_attachments", "_id", "%2e%2e%2f",
    ]

    @Test("Names of attachments of every kind are kept apart byte by byte, before and after the store is opened again")
    func strangeNames() throws {
        let types = [nil, "", "image/png", "\0", "💾", String(repeating: "t", count: 100_000), "a\r\nb: c"]
        let draft = try database.document(withID: "names").newRevision()
        for (index, name) in Self.names.enumerated() {
            draft.setAttachment(
                named: name, contentType: types[index % types.count], content: Data("content \(index)".utf8))
        }
        #expect(draft.attachmentNames.count == Self.names.count)
        try draft.save()
        try database.close()
        let again = try stores.open()
        let revision = try #require(try again["names"]?.currentRevision)
        #expect(try Set(revision.attachmentNames.map { Array($0.utf8) }) == Set(Self.names.map { Array($0.utf8) }))
        for (index, name) in Self.names.enumerated() {
            let attachment = try #require(try revision.attachment(named: name))
            #expect(attachment.name.utf8.elementsEqual(name.utf8))
            #expect(attachment.contentType == types[index % types.count])
            #expect(try attachment.content == Data("content \(index)".utf8))
        }
        #expect(try revision.attachment(named: "") == nil)
        #expect(try revision.attachment(named: "no such name") == nil)
    }

    @Test("Attachments without a name are a 400 when they are saved, and nothing is left")
    func noName() throws {
        let draft = try database.document(withID: "x").newRevision()
        draft.setAttachment(named: "", contentType: nil, content: content)
        #expect(thrown { try draft.save() }?.code == .invalidAttachment)
        draft.removeAttachment(named: "")
        try draft.setAttachment(named: "", contentType: nil, contentsOf: InputStream(data: Data("other".utf8)))
        #expect(thrown { try draft.save() }?.code == .invalidAttachment)
        draft.removeAttachment(named: "")
        try draft.save()
        let incoming = try stores.generation().appending(path: "incoming")
        #expect(try FileManager.default.contentsOfDirectory(atPath: incoming.path) == [])
    }

    @Test("Attachments give no bytes from beyond their ends, saved or not, whatever they were made from")
    func ranges() throws {
        let file = stores.directory.appending(path: "file")
        try content.write(to: file)
        let draft = try database.document(withID: "x").newRevision()
        draft.setAttachment(named: "memory", contentType: nil, content: content)
        try draft.setAttachment(named: "stream", contentType: nil, contentsOf: InputStream(data: content))
        let saved = try #require(try database["d"]?.currentRevision?.attachment(named: "a"))
        let blobs = [Blob(data: content), try Blob(contentsOf: file)]
        let readers: [(Range<Int>) throws -> Data?] =
            [saved, try #require(draft.attachment(named: "memory")), try #require(draft.attachment(named: "stream"))]
            .map { attachment in { try attachment.content(in: $0) } }
            + blobs.map { blob in { try blob.content(in: $0) } }
        for (index, read) in readers.enumerated() {
            for range in [
                -1..<0, -1..<5, 0..<28, 27..<28, 28..<28, 100..<200, Int.min..<Int.max, 0..<Int.max,
                Int.max..<Int.max, Int.min..<Int.min, (1 << 52)..<(1 << 53),
            ] {
                #expect(thrown { try read(range) }?.code == .invalidArgument, "\(index), \(range)")
            }
            for range in [0..<0, 13..<13, 27..<27, 0..<27, 26..<27] {
                #expect(try read(range) == content.subdata(in: range), "\(index), \(range)")
            }
        }
        // A blob of a file is there before it is saved, however it is read.
        let blob = try Blob(contentsOf: file)
        #expect(try blob.content == content)
        var pieces = Data()
        try #require(try blob.chunks).forEach { pieces += $0 }
        #expect(pieces == content)
        #expect(try DamagedFileTests.read(blob.openContentStream()) == content)
    }
}
