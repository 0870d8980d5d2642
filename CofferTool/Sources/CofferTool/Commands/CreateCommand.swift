internal import ArgumentParser
internal import Coffer

struct CreateCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Make a store.",
        usage: "coffer create <store> --key <source> | --unencrypted [--keyed-names] [--json]"
    )

    @OptionGroup var arguments: StoreArguments

    @Flag(help: "Make a store that everybody can read.")
    var unencrypted = false

    @Flag(help: "Give attachment files names that say nothing of their content, not even to who knows it.")
    var keyedNames = false

    func run(_ console: Console) throws {
        let path = try arguments.path()
        let manager = try Manager(directory: path.folder)
        guard !manager.databaseExists(named: path.databaseName) else {
            throw Failure(
                message: "\(arguments.store): there is one already", code: "databaseExists", status: 412, exit: .failed)
        }
        try path.checkFolder()
        var options = DatabaseOptions()
        options.create = true
        options.keyedNames = keyedNames
        guard !(keyedNames && unencrypted) else { throw Failure.usage("--keyed-names needs a key") }
        options.encryptionKey = try newKey(path)
        try manager.openDatabase(named: path.databaseName, options: options).close()

        if console.isJSON {
            var line = JSONLine(type: "store")
            line.add("path", arguments.store)
            line.add("encrypted", !unencrypted)
            try console.printResult(line.finished)
        }
    }

    /// The key of the new store, or nil for one that is to be readable. Never nil by oversight.
    private func newKey(_ path: StorePath) throws(Failure) -> SymmetricKey? {
        switch (try arguments.keySource(), unencrypted) {
        case (nil, true): return nil
        case (_?, true): throw .usage("--key and --unencrypted exclude each other")
        case (let source?, false): return try source.key(for: path.keyPurpose, isNew: true)
        case (nil, false) where Terminal.isPresent:
            return try KeySource(origin: .prompt).key(for: path.keyPurpose, isNew: true)
        case (nil, false):
            throw .usage("a new store needs a key", hint: "--key SOURCE, or --unencrypted if everybody may read it")
        }
    }
}
