import Coffer
import CofferCouchbaseLite
import CofferSealing
import Foundation
import TestSupport
import Testing

/// Imports of attachments, in each form that stores have them in.
@Suite("Importing attachments of Couchbase Lite") struct AttachmentImportTests {
    private static let first = "1-" + String(repeating: "a", count: 32)

    /// `hello hello hello hello`, compressed with gzip.
    private static let packed =
        Data(
            base64Encoded: "H4sIAAAAAAACA8tIzcnJV8hAJwHjUT2NFwAAAA==") ?? Data()

    private func entry(_ data: Data, _ more: String = "") throws -> String {
        #"{"stub":true,"content_type":"text/plain","digest":"\#(try SourceStore.digest(data))","length":\#(data.count),"revpos":1\#(more)}"#
    }

    private func add(_ entries: String, to source: SourceStore) throws {
        try source.add(
            documents: [1: "a"],
            [.init(sequence: 1, document: 1, id: Self.first, json: #"{"_attachments":{\#(entries)},"n":1}"#)])
    }

    @Test(
        "An import brings an attachment whole from each layout, whatever the case of its file's name",
        arguments: [SourceStore.Shape.folder, .file, .fileWithOldFolder], [true, false])
    func layouts(_ shape: SourceStore.Shape, _ isUpperCase: Bool) throws {
        let source = try SourceStore(shape, version: shape == .folder ? 102 : 17)
        let content = Data((0..<600_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 3) })
        try source.write(content, isUpperCase: isUpperCase)
        try add(#""f.bin":\#(entry(content))"#, to: source)
        let target = try Target()
        let (database, report) = try target.take(source)
        #expect(report.isComplete, "\(report.problems)")
        #expect(report.attachmentCount == 1 && report.contentCount == 1 && report.contentByteCount == content.count)
        let found = try database.document(withID: "a").currentRevision?.attachment(named: "f.bin")
        let attachment = try #require(found)
        #expect(attachment.contentType == "text/plain" && attachment.changedInGeneration == 1)
        #expect(try attachment.content == content)
        try database.close()
    }

    @Test("An import reads the attachment table of old stores", arguments: [11, 16, 20])
    func table(_ version: Int) throws {
        let source = try SourceStore(.file, version: version)
        let content = Data("from the table".utf8)
        try source.write(content, isUpperCase: false)
        try source.add(documents: [1: "a"], [.init(sequence: 1, document: 1, id: Self.first, json: "{}")])
        let hex = try SourceStore.sha1(content).hex
        try source.run("INSERT INTO attachments VALUES (1, 'f', x'\(hex)', 'text/plain', \(content.count), 1, 0, NULL)")
        let target = try Target()
        let (database, report) = try target.take(source)
        #expect(report.isComplete && report.attachmentCount == 1)
        #expect(try database.document(withID: "a").currentRevision?.attachment(named: "f")?.content == content)
        try database.close()
    }

    @Test("An import decompresses an attachment that was stored compressed")
    func gzip() throws {
        let source = try SourceStore()
        try source.write(Self.packed)
        let digest = try SourceStore.digest(Self.packed)
        try add(
            #"""
            "good":{"stub":true,"digest":"\#(digest)","length":23,"encoding":"gzip","encoded_length":\#(Self.packed.count)}
            """#, to: source)
        try source.add(
            documents: [2: "b"],
            [
                .init(
                    sequence: 2, document: 2, id: Self.first,
                    json: #"{"_attachments":{"f":{"stub":true,"digest":"\#(digest)","length":23,"encoding":"gzip"}}}"#)
            ])
        let target = try Target()
        let (database, report) = try target.take(source)
        #expect(report.isComplete, "\(report.problems)")
        #expect(report.contentCount == 1 && report.attachmentCount == 2)
        for (id, name) in [("a", "good"), ("b", "f")] {
            let attachment = try database.document(withID: id).currentRevision?.attachment(named: name)
            #expect(try attachment?.content == Data("hello hello hello hello".utf8))
            let digest = try SourceStore.digest(Data("hello hello hello hello".utf8))
            #expect(attachment?.digest == digest)
        }
        try database.close()
    }

    @Test("An import reports a missing or damaged content, and keeps its attachment without it")
    func missing() throws {
        let source = try SourceStore()
        let (here, gone, damaged) = (Data("here".utf8), Data("gone".utf8), Data("damaged".utf8))
        try source.write(here)
        try source.write(damaged)
        try Data("DAMAGED".utf8).write(to: source.attachments.appending(path: source.name(of: damaged)))
        try add(
            #""here":\#(entry(here)),"gone":\#(entry(gone)),"damaged":\#(entry(damaged)),"none":{"stub":true},"odd":7"#,
            to: source)
        let target = try Target()
        let (database, report) = try target.take(source)
        #expect(report.missingContentCount == 2 && report.contentCount == 1 && report.problemCount == 4)
        #expect(Set(report.problems.compactMap(\.attachmentName)) == ["gone", "damaged", "none", "odd"])
        let current = try database.document(withID: "a").currentRevision
        let revision = try #require(current)
        #expect(Set(try revision.attachmentNames) == ["here", "gone", "damaged"])
        #expect(try revision.attachment(named: "gone")?.contentAvailable == false)
        #expect(try revision.attachment(named: "damaged")?.contentAvailable == false)
        #expect(try revision.attachment(named: "here")?.content == here)
        try database.close()
    }
}
