import Foundation
import Testing

@testable import Coffer
@testable import CofferVault

@Suite(
    "Attaching onto a full disk",
    .enabled(if: SmallDisk.isAvailable, "a small disk can only be mounted by root on Linux"))
struct FullDiskAttachmentTests {
    let disk: SmallDisk
    let database: Database
    private let large = AttachmentTests.bytes(1_200_000)

    init() throws {
        disk = try SmallDisk(megabytes: 12)
        database = try disk.open()
        let draft = try database.document(withID: "before").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: AttachmentTests.bytes(50_000, seed: 2))
        try draft.save()
        try disk.fill(leaving: 500_000)
    }

    /// Every way in which content comes.
    enum Source: String, CaseIterable {
        case data, file, stream, sequence, blob, blobOfStream
    }

    private func attach(_ source: Source, to draft: UnsavedRevision) async throws {
        switch source {
        case .data: draft.setAttachment(named: "a", contentType: nil, content: large)
        case .file:
            let file = URL.temporaryDirectory.appending(path: "coffer-\(UUID().uuidString)")
            try large.write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            try draft.setAttachment(named: "a", contentType: nil, contentsOf: file)
        case .stream: try draft.setAttachment(named: "a", contentType: nil, contentsOf: InputStream(data: large))
        case .sequence:
            let bytes = AsyncStream<UInt8> { continuation in
                for byte in large { continuation.yield(byte) }
                continuation.finish()
            }
            try await draft.setAttachment(named: "a", contentType: nil, contentsOf: bytes)
        case .blob: draft["b"] = Blob(data: large)
        case .blobOfStream: draft["b"] = Blob(contentsOf: InputStream(data: large))
        }
        try await draft.save()
    }

    private func names(in folder: String) throws -> [String] {
        let store = disk.directory.appending(path: "db.coffer")
        let generation = try #require(
            try FileManager.default.contentsOfDirectory(atPath: store.path).first { $0.hasPrefix("g0") })
        return try FileManager.default.contentsOfDirectory(
            atPath: store.appending(path: "\(generation)/\(folder)").path)
    }

    private func freeByteCount() throws -> Int {
        let attributes = try FileManager.default.attributesOfFileSystem(forPath: disk.directory.path)
        return try #require(attributes[.systemFreeSize] as? NSNumber).intValue
    }

    @Test(
        "An attachment that a full disk refuses is a 507 that stores nothing half, and the database stays usable",
        arguments: Source.allCases)
    func full(source: Source) async throws {
        let free = try freeByteCount()
        let files = try names(in: "attachments")
        let draft = try database.document(withID: "new").newRevision()
        do {
            try await attach(source, to: draft)
            Issue.record("there was room")
        } catch {
            let error = try #require(error as? CofferError)
            #expect(error.code == .noSpace)
            #expect(error.status == 507)
        }
        #expect(try names(in: "incoming") == [])
        #expect(try names(in: "attachments") == files)
        #expect(try database.document(withID: "new").currentRevisionID == nil)
        #expect(try freeByteCount() >= free - 100_000)

        // What fits still goes in, beside what was there.
        let small = try database.document(withID: "small").newRevision()
        small.setAttachment(named: "a", contentType: nil, content: Data("small".utf8))
        try await small.save()
        #expect(
            try database["before"]?.currentRevision?.attachment(named: "a")?.content
                == AttachmentTests.bytes(50_000, seed: 2))

        try disk.empty()
        try await attach(source, to: database.document(withID: "new").newRevision())
        let saved = try #require(try database["new"]?.currentRevision)
        #expect(try (saved.attachment(named: "a")?.content ?? saved.blob(forKey: "b")?.content) == large)
        try await database.close()
        #expect(try disk.open().documentCount == 3)
    }

    @Test("A full disk in the middle of a transaction takes all of it back, files and rows")
    func transaction() throws {
        let files = try names(in: "attachments")
        let error = thrown {
            try database.inTransaction {
                for number in 0..<30 {
                    let draft = try database.document(withID: "\(number)").newRevision()
                    draft.setAttachment(
                        named: "a", contentType: nil, content: AttachmentTests.bytes(100_000, seed: UInt64(10 + number))
                    )
                    try draft.save()
                }
            }
        }
        #expect(error?.status == 507)
        #expect(try names(in: "incoming") == [])
        #expect(try names(in: "attachments") == files)
        #expect(try database.documentIDs() == ["before"])
        try database.save(json: json(1), withID: "after")
    }
}

@Suite("A stream that fails")
struct FailingStreamTests {
    /// Brings some bytes, and then an error or its end.
    private final class Failing: InputStream {
        private var rest: Int
        private let end: Int
        private var status = Stream.Status.notOpen

        init(after count: Int, end: Int) {
            rest = count
            self.end = end
            super.init(data: Data())
        }

        override var streamStatus: Stream.Status { status }
        override var streamError: (any Error)? { end < 0 ? CocoaError(.fileReadCorruptFile) : nil }
        override func open() { status = .open }
        override func close() { status = .closed }
        override var hasBytesAvailable: Bool { true }

        override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
            guard rest > 0 else { return end }
            let count = min(rest, maxLength, 10_000)
            buffer.update(repeating: 7, count: count)
            rest -= count
            return count
        }
    }

    @Test(
        "A stream that fails midway or at once is a 400 with its error as the cause, and attaches nothing",
        arguments: [0, 1, 16_384, 1_000_000])
    func failing(count: Int) throws {
        let stores = TestStores()
        let database = try stores.open()
        let incoming = { [stores] in
            try FileManager.default.contentsOfDirectory(atPath: stores.generation().appending(path: "incoming").path)
        }
        let draft = try database.document(withID: "d").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Data("kept".utf8))
        let error = thrown {
            try draft.setAttachment(named: "a", contentType: nil, contentsOf: Failing(after: count, end: -1))
        }
        #expect(error?.code == .invalidAttachment)
        #expect((error?.cause as? CocoaError)?.code == .fileReadCorruptFile)
        #expect(try incoming() == [])
        #expect(draft.attachmentNames == ["a"])

        draft["b"] = Blob(contentsOf: Failing(after: count, end: -1))
        #expect(thrown { try draft.save() }?.code == .invalidAttachment)
        #expect(try incoming() == [])
        #expect(try database["d"] == nil)

        draft["b"] = nil
        try draft.setAttachment(named: "whole", contentType: nil, contentsOf: Failing(after: count, end: 0))
        let saved = try draft.save()
        #expect(try saved.attachment(named: "a")?.content == Data("kept".utf8))
        #expect(try saved.attachment(named: "whole")?.content == Data(repeating: 7, count: count))
    }
}
