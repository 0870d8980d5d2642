import CofferFaults
import CofferSealing
import Foundation
import Synchronization
import Testing

@testable import CofferVault

@Suite("A generation that is retired")
struct GenerationLeaseTests {
    /// The system tells each opening of a directory once that a write failed. Removing the generation used the opening that
    /// MANIFEST is committed through, on another thread, and took no notice.
    @Test("A retired generation is removed through an opening of the directory that nothing else is synced through")
    func removal() throws {
        let recording = RecordingFileSystem()
        let fixture = try AttachmentFixture(fileSystem: recording)
        let lease = Lock(fixture.attachments.takeLease())
        #expect(!fixture.attachments.retire())
        let before = recording.synchronizedDescriptors.count
        lease.withLock { $0 = nil }
        for _ in 0..<30_000 {
            if recording.synchronizedDescriptors.count > before { break }
            usleep(1_000)
        }
        #expect(!FileManager.default.fileExists(atPath: fixture.generation))
        #expect(recording.synchronizedDescriptors.count == before + 1)
        #expect(recording.synchronizedDescriptors.last != fixture.store.directory.descriptor)
    }
}
