internal import ArgumentParser

/// `coffer key`: what is done with a store's keys without encrypting it again.
struct KeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "List, add, remove, replace, back up or restore the keys of a store, or make a new one.",
        discussion: """
            A store has up to eight keys, each of which opens all of it. Adding, removing and replacing them \
            re-encrypts nothing, so a removed key still opens the store together with a MANIFEST that somebody kept \
            from before. After a key has become known, use coffer rekey.
            """,
        subcommands: [
            KeyListCommand.self, KeyAddCommand.self, KeyRemoveCommand.self, KeyReplaceCommand.self,
            KeyGenerateCommand.self, KeyBackupCommand.self, KeyRestoreCommand.self,
        ]
    )

    func run() throws {
        throw Failure.usage("there is no command after key", hint: "coffer key --help lists them")
    }
}
