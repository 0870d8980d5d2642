internal import Coffer
@_spi(Tool) internal import CofferMaintenance
internal import Foundation

/// What can be said of a store.
struct StoreDescription {
    private let path: String
    private let info: StoreInfo
    /// Nil where there was no key.
    private var inside: Inside?
    let left: [OldGeneration]

    /// What only who has a key can know.
    private struct Inside {
        let documentCount: Int
        let lastSequence: Int
        let keys: [DatabaseKey]
        let sizes: StoreSizes
        let missingContentCount: Int

        init(_ keys: [DatabaseKey], _ counts: DatabaseCounts, _ sizes: StoreSizes) {
            (documentCount, lastSequence) = (counts.documentCount, counts.lastSequence)
            missingContentCount = counts.missingContentCount
            (self.keys, self.sizes) = (keys, sizes)
        }
    }

    init(_ argument: String, key: SymmetricKey?, isOpened: Bool) throws {
        path = argument
        let store = try StorePath(argument)
        let manager = try Manager(directory: store.folder)
        info = try manager.storeInfo(named: store.databaseName)
        if isOpened {
            let open = try StoreOpening(manager: manager, store: store, key: key, readOnly: true).open()
            // What went wrong first is what counts.
            defer { try? open.end() }
            inside = Inside(
                try open.describe().keys, try open.count(), try StoreSizes(of: store, generation: info.generation))
        }
        // A process that has the store open for writing has removed it, or is changing the key now.
        left = (try? manager.oldGenerations(ofDatabaseNamed: store.databaseName)) ?? []
    }

    /// One line, as one of many.
    var line: String {
        let keyCount = info.keySlots.count
        var parts = ["uuid \(info.storeUUID.uuidString.lowercased())", "generation \(info.generation)"]
        if info.storageType == .sealed { parts.append("sealed pages") }
        if info.isEncrypted { parts.append(keyCount.counted("key")) }
        if let inside {
            parts.append(inside.documentCount.counted("document"))
            parts.append("\(inside.sizes.databaseByteCount + inside.sizes.contentByteCount) bytes")
        }
        let state = info.isEncrypted ? "encrypted    " : "not encrypted"
        return "\(state)  \(Console.printable(path))  \(parts.joined(separator: ", "))"
    }

    var text: String {
        var lines = [
            "encrypted   \(info.isEncrypted ? "yes" : "no")",
            "engine      \(info.engine)",
            "uuid        \(info.storeUUID.uuidString.lowercased())",
            "generation  \(info.generation)",
            "sequence    \(info.sequence)",
        ]
        // From one of the two, so that a change in between does not show.
        let keys = inside?.keys.map(\.text) ?? info.keySlots.map { "  " + $0.text }
        lines += keys.map { "key       \($0)" }
        if let inside {
            let sizes = inside.sizes
            lines.append("documents   \(inside.documentCount), last sequence \(inside.lastSequence)")
            lines.append("database    \(sizes.databaseByteCount) bytes")
            lines.append("contents    \(sizes.contentCount), in \(sizes.contentByteCount) bytes")
            if inside.missingContentCount > 0 {
                lines.append("not here    \(inside.missingContentCount) contents, left out by a pull")
            }
        }
        for generation in left {
            let access = generation.mayBeReadable ? "may be readable without a key" : "encrypted"
            lines.append("left        \(generation.byteCount) bytes of an old generation, \(access)")
        }
        return lines.joined(separator: "\n")
    }

    var json: String {
        var line = JSONLine(type: "store")
        line.add("path", path)
        line.add("encrypted", info.isEncrypted)
        line.add("engine", info.engine)
        line.add("uuid", info.storeUUID.uuidString.lowercased())
        line.add("generation", info.generation)
        line.add("sequence", info.sequence)
        let keys = inside?.keys.map(\.json) ?? info.keySlots.map(\.json)
        line.add("keys", json: "[" + keys.joined(separator: ",") + "]")
        if let inside {
            line.add("documents", inside.documentCount)
            line.add("lastSequence", inside.lastSequence)
            line.add("databaseBytes", inside.sizes.databaseByteCount)
            line.add("contents", inside.sizes.contentCount)
            line.add("contentBytes", inside.sizes.contentByteCount)
            line.add("missingContents", inside.missingContentCount)
        }
        line.add("oldGenerations", json: left.json)
        return line.finished
    }
}

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
