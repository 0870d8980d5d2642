import CofferFaults
import CofferSealing
import Foundation
import Synchronization
import Testing

@testable import CofferVault

/// Content is staged without any lock, so that a file could come into a directory of a store that was being taken apart.
/// The deletion failed then, and what was left of the store stayed until the next one.
@Suite("Deleting a store in which content is being staged")
struct DeletionTests {
    /// Calls `body` after each step of a deletion of a store in which some content is being staged.
    private func delete(
        afterEachStep body: @escaping @Sendable (_ scratch: String, _ step: String, AttachmentStore) -> Void
    ) throws -> AttachmentFixture {
        let watched = Lock<(String, AttachmentStore)?>(nil)
        let recording = RecordingFileSystem(afterStep: { _, step in
            // What `body` does has steps of its own.
            guard let (scratch, store) = watched.withLock({ $0.take() }) else { return }
            body(scratch, step, store)
            watched.withLock { $0 = (scratch, store) }
        })
        let fixture = try AttachmentFixture(fileSystem: recording)
        let staged = try (1...3).map { try fixture.stage([UInt8](repeating: $0, count: 10)) }
        watched.withLock { $0 = (fixture.scratch.path, fixture.attachments) }
        try fixture.store.delete()
        watched.withLock { $0 = nil }
        #expect(fixture.scratch.names == [])
        withExtendedLifetime(staged) {}
        return fixture
    }

    @Test("A store is deleted though content is staged after any of its steps, which is refused as closed before long")
    func staging() throws {
        let codes = Lock<[CofferError.Code?]>([])
        let writers = Lock<[AttachmentWriter]>([])
        let fixture = try delete { _, _, store in
            let code = code {
                let writer = try store.beginStaging()
                writers.withLock { $0.append(writer) }
            }
            codes.withLock { $0.append(code) }
        }
        let all = codes.withLock { $0 }
        #expect(all.count > 8)
        #expect(all.allSatisfy { $0 == nil || $0 == .closed })
        #expect(all.last == .some(.closed))
        #expect(code { _ = try fixture.attachments.beginStaging() } == .closed)
        withExtendedLifetime(writers) {}
    }

    /// Whoever was let in before the deletion began may still make its file.
    @Test("A store is deleted though a file comes into one of its directories while that is emptied")
    func lateFiles() throws {
        let late = Lock<Int>(0)
        _ = try delete { scratch, step, _ in
            guard step.hasPrefix("unlink "), late.withLock({ $0 < 2 }) else { return }
            for path in (try? FileManager.default.subpathsOfDirectory(atPath: scratch)) ?? []
            where path.hasSuffix("/incoming") {
                let isMade = FileManager.default.createFile(atPath: "\(scratch)/\(path)/late", contents: nil)
                late.withLock { $0 += isMade ? 1 : 0 }
            }
        }
        #expect(late.withLock { $0 } == 2)
    }
}
