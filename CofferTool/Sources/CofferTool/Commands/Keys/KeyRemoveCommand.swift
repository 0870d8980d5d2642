internal import ArgumentParser
internal import Coffer

struct KeyRemoveCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove a key, so that it no longer opens the store.",
        discussion: """
            The last key stays; coffer decrypt removes the encryption. Nothing is re-encrypted: see coffer key --help.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of the key, as coffer key list shows it.")
    var id: String

    func run(_ console: Console) throws {
        try arguments.withMaintainedStore(readOnly: false) { store in
            try store.checkIsEncrypted(arguments.store)
            try store.checkHasKey(id)
            try store.removeKey(id)
        }
        if console.isJSON {
            var line = JSONLine(type: "key")
            line.add("id", id)
            line.add("removed", true)
            try console.printResult(line.finished)
        }
    }
}
