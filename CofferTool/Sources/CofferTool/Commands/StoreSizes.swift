internal import Coffer
internal import Foundation

/// How long the files of a store are, as they are on the disk.
struct StoreSizes {
    /// The database file and its log.
    private(set) var databaseByteCount = 0
    /// The files of attachments and blobs.
    private(set) var contentCount = 0
    private(set) var contentByteCount = 0

    /// Those of the store's one generation; what a killed process left of another doesn't count.
    init(of store: StorePath, generation: Int) throws(Failure) {
        let folder = store.folder.appending(path: store.fileName, directoryHint: .isDirectory)
        let digits = String(generation, radix: 16)
        let prefix = "g" + String(repeating: "0", count: 16 - digits.count) + digits + "-"
        do {
            let files = FileManager.default
            let names = try files.contentsOfDirectory(atPath: folder.path(percentEncoded: false))
            guard let name = names.first(where: { $0.hasPrefix(prefix) }) else { return }
            let generation = folder.appending(path: name, directoryHint: .isDirectory)
            for name in ["db.sqlite3", "db.sqlite3-wal"] {
                databaseByteCount += Self.byteCount(of: generation.appending(path: name)) ?? 0
            }
            let contents = generation.appending(path: "attachments", directoryHint: .isDirectory)
            let path = contents.path(percentEncoded: false)
            guard files.fileExists(atPath: path) else { return }
            for name in try files.contentsOfDirectory(atPath: path) where name.hasSuffix(".blob") {
                contentCount += 1
                contentByteCount += Self.byteCount(of: contents.appending(path: name)) ?? 0
            }
        } catch {
            throw Failure(describing: error, subject: store.fileName)
        }
    }

    /// Those of the generation that the store has now.
    init(of store: StorePath) throws {
        let info = try Manager(directory: store.folder).storeInfo(named: store.databaseName)
        try self.init(of: store, generation: info.generation)
    }

    private static func byteCount(of file: URL) -> Int? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: file.path(percentEncoded: false))
        return (attributes?[.size] as? NSNumber)?.intValue
    }
}
