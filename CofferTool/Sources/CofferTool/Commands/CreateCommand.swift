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
