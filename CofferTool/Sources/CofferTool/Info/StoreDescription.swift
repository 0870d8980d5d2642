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
