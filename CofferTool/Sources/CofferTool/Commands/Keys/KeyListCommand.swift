internal import ArgumentParser
internal import Coffer
@_spi(Tool) internal import CofferMaintenance

struct KeyListCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the keys of a store.",
        discussion: """
            Each line has a key's id, when it was made, its kind and its label. The key that this command used has a * \
            before its id. Labels are encrypted; coffer info lists the keys without them, and needs no key.
            """
    )

    @OptionGroup var arguments: StoreArguments

    func run(_ console: Console) throws {
        let (keys, isEncrypted) = try arguments.withMaintainedStore(readOnly: true) { store in
            (try store.describe().keys, store.isEncrypted)
        }
        for key in keys { try console.printResult(console.isJSON ? key.json : key.text) }
        if !isEncrypted && !console.isJSON {
            console.printNote("\(Console.printable(arguments.store)): not encrypted, it opens without a key")
        }
    }
}
