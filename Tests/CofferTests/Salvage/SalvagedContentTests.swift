import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferVault

@Suite("Salvaging attachments")
struct SalvagedContentTests {
    enum Kind: String, CaseIterable, CustomTestStringConvertible {
        case plainNames = "plain names"
        case keyedNames = "keyed names"
        case unencrypted = "not encrypted"
        var testDescription: String { rawValue }
    }

    private static let lengths = [0, 1, 16_383, 16_384, 40_000, 100_000]
    private static let contentCount = lengths.count + 1

    /// Documents with an attachment each, two that share one, and one with a blob.
    private func make(_ kind: Kind) throws -> SalvageFixture {
        try SalvageFixture(key: kind == .unencrypted ? nil : TestStores.key, keyedNames: kind == .keyedNames) {
            database in
            for (number, length) in Self.lengths.enumerated() {
                for name in number == 4 ? ["a", "b"] : ["a"] {
                    let draft = try database.document(withID: "document-\(number)-\(name)").newRevision()
                    draft.setAttachment(named: "content", contentType: "x/y", content: AttachmentTests.bytes(length))
                    try draft.save()
                }
            }
            let document = MutableDocument(id: "blob")
            document["blob"] = Blob(contentType: "x/z", data: AttachmentTests.bytes(333))
            try database.saveDocument(document)
        }
    }

    private func files(_ fixture: SalvageFixture) throws -> [URL] {
        let folder = try fixture.stores.generation().appending(path: "attachments")
        return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map {
            folder.appending(path: $0)
        }
    }

    @Test(
        "A salvage brings each whole attachment, and names each that is changed, cut, long, swapped, linked or missing",
        arguments: Kind.allCases)
    func damaged(kind: Kind) throws {
        let fixture = try make(kind)
        let files = try files(fixture)
        #expect(files.count == Self.contentCount)
        let whole = try files.map { try Data(contentsOf: $0) }
        for (index, file) in files.enumerated() {
            let other = files[(index + 1) % files.count]
            let changes: [(URL) throws -> Void] = [
                { try FileManager.default.removeItem(at: $0) },
                { try (whole[index] + [0]).write(to: $0) },
                { try (whole[index].isEmpty ? Data([1]) : whole[index].dropLast()).write(to: $0) },
                { url in try url.patch { $0.isEmpty ? $0.append(1) : ($0[$0.count / 2] ^= 1) } },
                { try Data(contentsOf: other).write(to: $0) },
                {
                    try FileManager.default.removeItem(at: $0)
                    try FileManager.default.createSymbolicLink(at: $0, withDestinationURL: other)
                },
            ]
            // Each change meets two or three contents.
            for change in changes.enumerated().filter({ ($0.offset + index) % 3 == 0 }).map(\.element) {
                try? FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
                try change(file)
                let outcome = try fixture.salvage()
                let lost = outcome.result.losses
                #expect(Set(lost.map(\.digest)).count == 1)
                #expect(lost.allSatisfy { $0.kind == .attachment })
                #expect(outcome.result.attachmentCount == Self.contentCount - 1)
                // The document is there, and says what it had: as of one that was not fetched yet.
                let id = try #require(lost.first?.documentID)
                #expect(outcome.contents.documents[id]?.json == fixture.original.documents[id]?.json)
                #expect(outcome.contents.documents[id]?.revision == fixture.original.documents[id]?.revision)
                let attachments = outcome.contents.documents[id]?.attachments
                #expect(id == "blob" || attachments?["content"] == .some(nil))
                try? FileManager.default.removeItem(at: file)
                try whole[index].write(to: file)
            }
        }
        #expect(try fixture.salvage().result.isComplete)
        try FileManager.default.removeItem(at: files[0].deletingLastPathComponent())
        let outcome = try fixture.salvage()
        #expect(outcome.result.losses.count == Self.contentCount + 1)
        #expect(outcome.contents.rows["revisions"] == fixture.original.rows["revisions"])
    }

    @Test("A salvage brings attachments whose rows are lost by what their files prove", arguments: Kind.allCases)
    func rowsLost(kind: Kind) throws {
        let fixture = try make(kind)
        let source = try fixture.source()
        let pages = try (2...UInt32(source.pageCount)).filter { number in
            guard let page = try source.page(number), let tree = TreePage(page, number: number),
                let cell = tree.cells.first, let record = Record(Array(page[cell.local]))
            else { return false }
            guard case .attachment? = try FoundRow(record, rowID: cell.rowID) else { return false }
            return tree.kind == .tableLeaf
        }
        #expect(pages.count == 1)
        try fixture.databaseFile.patch { data in
            for page in pages {
                let start = (Int(page) - 1) * 4096
                data.replaceSubrange(start..<start + 4096, with: repeatElement(0xee, count: 4096))
            }
        }
        let outcome = try fixture.salvage()
        #expect(outcome.result.isComplete)
        #expect(outcome.result.harmless.count == 1)
        #expect(outcome.result.attachmentCount == Self.contentCount)
    }

    @Test("A salvage gives attachments whose documents are lost to a document of their own", arguments: Kind.allCases)
    func foundlings(kind: Kind) throws {
        let fixture = try make(kind)
        let source = try fixture.source()
        for number in 2...UInt32(source.pageCount) {
            guard let page = try source.page(number), let tree = TreePage(page, number: number),
                tree.kind == .tableLeaf,
                let cell = tree.cells.first, let record = Record(Array(page[cell.local])),
                case .revision? = try FoundRow(record, rowID: cell.rowID)
            else { continue }
            try fixture.databaseFile.patch { data in
                let start = (Int(number) - 1) * 4096
                data.replaceSubrange(start..<start + 4096, with: repeatElement(0xee, count: 4096))
            }
        }
        // One of them is damaged too.
        let file = try files(fixture)[3]
        try? FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
        try file.patch { $0.isEmpty ? $0.append(1) : ($0[$0.count / 2] ^= 1) }
        let outcome = try fixture.salvage()
        #expect(outcome.result.documentCount == 1)
        #expect(outcome.named.isSuperset(of: fixture.original.documents.keys))
        #expect(outcome.result.attachmentCount == Self.contentCount - 1)
        let found = try #require(outcome.contents.documents["salvaged-attachments"]?.attachments)
        #expect(found.count == Self.contentCount - 1)
        #expect(Set(found.values.compactMap(\.self)).isSubset(of: fixture.original.contents.values))
        // A compaction leaves them, and a second salvage has them again.
        let database = try fixture.stores.open("out", key: fixture.key)
        try database.compact()
        #expect(try database["salvaged-attachments"]?.currentRevision?.attachments.count == found.count)
        try database.close()
        let again = try fixture.stores.manager.salvageDatabase(
            named: "out", encryptionKey: fixture.key, to: fixture.stores.url("again"))
        #expect(again.isComplete)
        #expect(again.attachmentCount == found.count)
    }
}
