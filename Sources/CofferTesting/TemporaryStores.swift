public import Coffer
internal import CofferVault
public import Foundation

/// A folder of stores of a test's own, removed when nobody has this, its manager or a database of it any more.
///
/// Everything is real, files and encryption alike, but for the cost of passwords: where these stores are created, a
/// password is stretched a hundred times less than usual (scrypt with N = 2^10, p = 1), so that tests with many passwords
/// take no time. Such stores are for tests alone. Safe from any thread.
public final class TemporaryStores: Sendable {
    /// The directory of the stores: a new one for temporary files, for its owner alone.
    public let directory: URL

    /// The manager of that directory, to be given to the code under test.
    public let manager: Manager

    /// Makes a folder with nothing in it.
    public init() {
        let folder = Folder()
        directory = folder.url
        manager = Manager(
            directory: directory, fileSystem: SystemFileSystem(), passwordCost: .scrypt(log2N: 10, p: 1),
            keeping: folder)
    }

    /// A place for a folder, which goes away with it.
    private final class Folder: Sendable {
        let url = URL.temporaryDirectory.appending(
            path: "coffer-testing-\(UUID().uuidString)", directoryHint: .isDirectory)

        deinit { try? FileManager.default.removeItem(at: url) }
    }

    /// The directory of the store that has, or would have, the database `name`: `NAME.coffer`.
    public func url(ofDatabaseNamed name: String) -> URL {
        directory.appending(component: name.replacing("/", with: ":") + ".coffer", directoryHint: .isDirectory)
    }
}
