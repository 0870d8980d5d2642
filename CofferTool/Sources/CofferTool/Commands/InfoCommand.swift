internal import ArgumentParser
internal import Coffer
internal import Foundation

struct InfoCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Say what a store is.",
        discussion: """
            Without --key that is what can be known without one, and the store is neither opened nor locked. With --key it is \
            opened, its keys are listed with their labels, and it is counted and measured: its documents, the last sequence, \
            the database file with its log, and the files of attachments and blobs.

            What a change of the key has left that was killed is said in any case, with its size, and what removes it.
            """
    )

    @OptionGroup var arguments: StoreArguments

    func run(_ console: Console) throws {
        let path = try arguments.path()
        let manager = try Manager(directory: path.folder)
        let info = try manager.storeInfo(named: path.databaseName)
        var inside: Inside?
        if arguments.key != nil {
            inside = try arguments.withDatabase(readOnly: true) { database in
                Inside(
                    documentCount: try database.documentCount, lastSequence: try database.lastSequenceNumber,
                    keys: try database.keys, sizes: try StoreSizes(of: path, generation: info.generation))
            }
        }
        // Who has the store open for writing has removed it, or is changing the key just now.
        let left = (try? manager.oldGenerations(ofDatabaseNamed: path.databaseName)) ?? []
        try console.printResult(console.isJSON ? json(info, inside, left) : text(info, inside, left))
        left.warn(of: arguments.store, console)
    }

    /// What only who has a key can know.
    private struct Inside {
        let documentCount: Int
        let lastSequence: Int
        let keys: [DatabaseKey]
        let sizes: StoreSizes
    }

    private func text(_ info: StoreInfo, _ inside: Inside?, _ left: [OldGeneration]) -> String {
        var lines = [
            "encrypted   \(info.isEncrypted ? "yes" : "no")",
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
        }
        for generation in left {
            let access = generation.mayBeReadable ? "may be readable without a key" : "encrypted"
            lines.append("left        \(generation.byteCount) bytes of an old generation, \(access)")
        }
        return lines.joined(separator: "\n")
    }

    private func json(_ info: StoreInfo, _ inside: Inside?, _ left: [OldGeneration]) -> String {
        var line = JSONLine(type: "store")
        line.add("path", arguments.store)
        line.add("encrypted", info.isEncrypted)
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
        }
        line.add("oldGenerations", json: left.json)
        return line.finished
    }
}
