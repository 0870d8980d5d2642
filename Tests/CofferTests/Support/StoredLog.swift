import Foundation

@testable import Coffer
@testable import CofferRecords
@testable import CofferVault

/// The write-ahead log of a store that nobody has open, of either engine.
struct StoredLog {
    let headerByteCount: Int
    let frameByteCount: Int
    /// As its key reads them.
    let frames: [WriteAheadLog.Frame]

    init(of stores: TestStores, _ name: String, key: SymmetricKey? = TestStores.key) throws {
        let store = try LockedStore.open(path: stores.url(name).path, access: .readOnly)
        defer { store.close() }
        let manifest = try store.readManifest().unlock(with: key)
        let isSealed = StorageType(of: manifest.manifest) == .sealed
        (headerByteCount, frameByteCount) = isSealed ? (72, 4128) : (32, 24 + 4096)
        var frames: [WriteAheadLog.Frame] = []
        try WriteAheadLog(SystemFileSystem(), store.remains(of: manifest), DatabaseProtection(of: manifest))?
            .forEachFrame { (frame, _) in
                frames.append(frame)
                return true
            }
        self.frames = frames
    }

    /// The frames, from 0, that end a commit.
    var commits: [Int] { frames.indices.filter { frames[$0].pageCount != 0 } }

    /// Where a frame is in the file, counted from 0.
    func bytes(ofFrame number: Int) -> Range<Int> {
        headerByteCount + number * frameByteCount..<headerByteCount + (number + 1) * frameByteCount
    }
}
