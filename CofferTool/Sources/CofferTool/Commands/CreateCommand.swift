internal import ArgumentParser
internal import Coffer
internal import CofferKeys

struct CreateCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Make a store.",
        usage: """
            coffer create <store> --key <source> [--storage <engine>] [<options>]
            coffer create <store> --unencrypted [--json]
            """
    )

    @OptionGroup var arguments: StoreArguments

    @OptionGroup var new: NewStoreArguments

    /// The key of a store that is being made is a new one.
    var keySources: [KeySource] {
        get throws(Failure) {
            guard !new.unencrypted else { return [] }
            return try [arguments.keySource()?.asked(for: .new, of: try? arguments.path())].compactMap(\.self)
        }
    }

    func run(_ console: Console) throws {
        let path = try arguments.path()
        let manager = try Manager(directory: path.folder)
        guard !manager.databaseExists(named: path.databaseName) else {
            throw Failure(
                message: "\(arguments.store): it exists already", code: "databaseExists", status: 412, exit: .failed)
        }
        try path.checkFolder()
        let options = try new.options(arguments, console)
        // From here on it is made, or not.
        Interruption.watch()
        try Interruption.check()
        try manager.openDatabase(named: path.databaseName, options: options).close()

        if console.isJSON {
            let info = try manager.storeInfo(named: path.databaseName)
            var line = JSONLine(type: "store")
            line.add("path", arguments.store)
            line.add("encrypted", !new.unencrypted)
            line.add("engine", info.engine)
            try console.printResult(line.finished)
        }
    }
}

/// What a new store is like.
struct NewStoreArguments: ParsableArguments {
    @Flag(help: "Make a store that anyone can read.")
    var unencrypted = false

    @Option(
        help: ArgumentHelp(
            "sqlite, which is SQLCipher and the default, or sealed, which is faster and which no other program opens.",
            valueName: "engine"))
    var storage: StorageArgument?

    @Flag(help: "Give attachment files names that reveal nothing, even to somebody who knows the content.")
    var keyedNames = false

    /// How to make the store that those arguments name.
    func options(_ arguments: StoreArguments, _ console: Console) throws(Failure) -> DatabaseOptions {
        var options = DatabaseOptions()
        options.create = true
        options.keyedNames = keyedNames
        guard !(keyedNames && unencrypted) else { throw Failure.usage("--keyed-names needs a key") }
        guard !(storage == .sealed && unencrypted) else { throw Failure.usage("--storage sealed needs a key") }
        options.storageType = storage?.type
        options.encryptionKey = try key(arguments, console)
        return options
    }

    /// The key of the new store, or nil for one that is to be readable. Never nil by oversight.
    private func key(_ arguments: StoreArguments, _ console: Console) throws(Failure) -> SymmetricKey? {
        let purpose = try arguments.path().keyPurpose
        if unencrypted {
            guard arguments.key == nil else { throw .usage("--key and --unencrypted can't be used together") }
            return nil
        }
        switch try arguments.keySource() {
        case let source?: return try source.asked(for: .new, of: try arguments.path()).newKey(for: purpose, console)
        case nil where Terminal.isPresent:
            return try KeySource(origin: .prompt).newKey(for: purpose, console)
        case nil:
            throw .usage("a new store needs a key", hint: "--key SOURCE, or --unencrypted if everybody may read it")
        }
    }
}

/// A storage engine, as a command line names it.
enum StorageArgument: String, ExpressibleByArgument, CaseIterable {
    case sqlite, sealed

    var type: StorageType {
        switch self {
        case .sqlite: .sqlite
        case .sealed: .sealed
        }
    }
}

extension StoreInfo {
    /// What keeps the database, in a word.
    var engine: String {
        if storageType == .sealed { return "Sealed" }
        return isEncrypted ? "SQLCipher" : "SQLite"
    }
}
