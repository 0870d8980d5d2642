internal import ArgumentParser

/// `coffer key`: what is done with a store's keys without encrypting it again.
struct KeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "List, add, remove, replace, back up or restore the keys of a store, or make a new one.",
        discussion: """
            A store has up to eight keys, each of which opens all of it. Adding, removing and replacing them encrypts \
            nothing again, so that a key that was removed still opens the store together with a MANIFEST that somebody kept \
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
