internal import ArgumentParser
internal import Coffer

struct ConvertCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "convert",
        abstract: "Convert a store to another storage engine, in one step.",
        usage: "coffer convert <store> --storage <engine> [<options>]",
        discussion: """
            sqlite is SQLCipher, whose files other programs open with the database's own key; sealed is Coffer's own \
            encryption of SQLite's pages, which is faster and which no other program opens. Both hold the same. All \
            keys of the store go on opening it, with their ids and labels: this is not a change of the key.

            Killed at any instant, the whole store is there with one of the two engines; ^C leaves it unchanged. The \
            conversion needs as much free space as the store takes. A store that has the engine already is left as it \
            is.
            """
    )

    @OptionGroup var arguments: StoreArguments
    @OptionGroup var change: KeyChangeArguments

    @Option(help: ArgumentHelp("sqlite or sealed.", valueName: "engine"))
    var storage: StorageArgument

    func run(_ console: Console) throws {
        Interruption.watch()
        let type = storage.type
        let result = try arguments.withMaintainedStore(readOnly: false) { store in
            guard store.isEncrypted || type != .sealed else {
                throw Failure(
                    message: "\(arguments.store): sealed pages need a key, and it is not encrypted",
                    hint: "coffer encrypt encrypts it", code: "storageTypeUnavailable", status: 406, exit: .failed)
            }
            return try change.run(console) { try await store.converted(to: type, $0) }
        }
        guard let result else {
            return try console.printResult(console.isJSON ? unchanged : "the store has this engine already")
        }
        try console.printResult(console.isJSON ? result.json(arguments.store, storage) : result.text(storage))
        guard let failure = result.oldGenerationLeft(of: arguments.store) else { return }
        try console.flush()
        throw failure
    }

    private var unchanged: String {
        var line = JSONLine(type: "conversion")
        line.add("path", arguments.store)
        line.add("storage", storage.rawValue)
        line.add("converted", false)
        return line.finished
    }
}

extension ConversionResult {
    fileprivate func text(_ storage: StorageArgument) -> String {
        [
            "engine       \(storage.rawValue)",
            "generation   \(oldGeneration) to \(newGeneration)",
            "documents    \(documentCount), in \(databaseByteCount) bytes",
            "attachments  \(attachmentCount), in \(attachmentByteCount) bytes",
            "took         \(Int(duration / .milliseconds(1))) ms",
        ].joined(separator: "\n")
    }

    fileprivate func json(_ store: String, _ storage: StorageArgument) -> String {
        var line = JSONLine(type: "conversion")
        line.add("path", store)
        line.add("storage", storage.rawValue)
        line.add("converted", true)
        line.add("oldGeneration", oldGeneration)
        line.add("generation", newGeneration)
        line.add("documents", documentCount)
        line.add("databaseBytes", databaseByteCount)
        line.add("attachments", attachmentCount)
        line.add("attachmentBytes", attachmentByteCount)
        line.add("oldGenerationIsGone", oldGenerationIsGone)
        line.add("oldGenerations", json: oldGenerations.json)
        line.add("milliseconds", Int(duration / .milliseconds(1)))
        return line.finished
    }
}
