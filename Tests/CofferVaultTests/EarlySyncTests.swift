import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

@Suite("A sync of the next generation's contents while they are written")
struct EarlySyncTests {
    private let fixture: AttachmentFixture
    private let saved: StagedAttachment
    private let other: StagedAttachment

    init() throws {
        fixture = try AttachmentFixture()
        saved = try fixture.save(content(1 << 20))
        other = try fixture.save(content(1 << 20, seed: 2))
        fixture.store.close()
    }

    /// Copies a content of a megabyte into a next generation that syncs after so many bytes, and makes that durable; then
    /// another one.
    private func copy(
        _ fileSystem: RecordingFileSystem, earlySyncByteCount: Int = 256 << 10, late: StagedAttachment? = nil
    ) throws(CofferError) {
        let (store, attachments) = try openAttachments(at: fixture.scratch.store, fileSystem: fileSystem)
        defer { store.close() }
        let manifest = try store.readManifest().unlock(with: rawKey())
        let new = try manifest.nextGeneration(openedBy: [rawKey()], cost: .standard, attachmentNames: .sha1)
        let next = try store.beginNextGeneration(new, earlySyncByteCount: earlySyncByteCount)
        defer { store.abandon(next) }
        try next.encrypt(attachments.open(saved.digest, header: saved.header, subject: subject)) { _ in }
        try next.synchronizeContents()
        if let late {
            try next.encrypt(attachments.open(late.digest, header: late.header, subject: subject)) { _ in }
        }
    }

    /// One more than without it at least; how many more depends on how fast the disk is.
    @Test("An early sync of the next generation's contents comes before the last one")
    func early() throws {
        let (early, late) = (RecordingFileSystem(), RecordingFileSystem())
        try copy(early)
        try copy(late, earlySyncByteCount: 2 << 20)
        #expect(early.stepNames.count { $0 == "syncfs" } > 1)
        #expect(late.stepNames.count { $0 == "syncfs" } == 1)
    }

    @Test("An early sync does not begin after the last one, when each content is synced by itself")
    func late() throws {
        let steps = RecordingFileSystem()
        try copy(steps, earlySyncByteCount: 3 << 19, late: other)
        #expect(steps.stepNames.count { $0 == "syncfs" } == 1)
        #expect(steps.stepNames.last { $0.hasPrefix("fsync file") }?.contains("blob") == true)
    }

    @Test("An early sync that fails is a failure of the whole, since no later one is told of it")
    func failing() throws {
        let error = #expect(throws: CofferError.self) {
            try copy(RecordingFileSystem(.failFirst("syncfs", EIO)))
        }
        #expect(error?.code == .ioFailed)
        // Nothing of it is left.
        let (store, _) = try openAttachments(at: fixture.scratch.store)
        defer { store.close() }
        #expect(names(in: fixture.scratch.store).count { $0.hasPrefix("g") } == 1)
    }
}
