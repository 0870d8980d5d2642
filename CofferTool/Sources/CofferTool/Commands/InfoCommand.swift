internal import ArgumentParser
internal import Coffer
internal import Foundation

struct InfoCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Say what a store is.",
        discussion: """
            Without --key that is what can be known without one, and the store is neither opened nor locked. With --key it is \
            opened, and its documents are counted.
            """
    )

    @OptionGroup var arguments: StoreArguments

    func run(_ console: Console) throws {
        let path = try arguments.path()
        let info = try Manager(directory: path.folder).storeInfo(named: path.databaseName)
        var documentCount: Int?
        if arguments.key != nil {
            documentCount = try arguments.withDatabase(readOnly: true) { try $0.documentCount }
        }
        try console.printResult(console.isJSON ? json(info, documentCount) : text(info, documentCount))
    }

    private func text(_ info: StoreInfo, _ documentCount: Int?) -> String {
        var lines = [
            "encrypted   \(info.isEncrypted ? "yes" : "no")",
            "uuid        \(info.storeUUID.uuidString.lowercased())",
            "generation  \(info.generation)",
            "sequence    \(info.sequence)",
        ]
        for slot in info.keySlots {
            lines.append("key         \(slot.text)")
        }
        if let documentCount { lines.append("documents   \(documentCount)") }
        return lines.joined(separator: "\n")
    }

    private func json(_ info: StoreInfo, _ documentCount: Int?) -> String {
        var line = JSONLine(type: "store")
        line.add("path", arguments.store)
        line.add("encrypted", info.isEncrypted)
        line.add("uuid", info.storeUUID.uuidString.lowercased())
        line.add("generation", info.generation)
        line.add("sequence", info.sequence)
        line.add("keys", json: "[" + info.keySlots.map(\.json).joined(separator: ",") + "]")
        if let documentCount { line.add("documents", documentCount) }
        return line.finished
    }
}
