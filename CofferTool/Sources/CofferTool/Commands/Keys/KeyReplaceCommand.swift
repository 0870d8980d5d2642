internal import ArgumentParser
internal import Coffer

struct KeyReplaceCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "replace",
        abstract: "Replace a key with a new one, in one step.",
        usage: "coffer key replace <store> [<id>] [<options>]",
        discussion: """
            Without an id, the command replaces the key that opened the store. The new key keeps the label, unless \
            --label gives another. The result is its id. Nothing is re-encrypted: see coffer key --help.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The id of the key to replace, as coffer key list shows it.")
    var id: String?

    @OptionGroup var newKey: NewKeyArguments
    @OptionGroup var label: LabelArguments

    var keySources: [KeySource] {
        get throws(Failure) { try [arguments.keySource(), newKey.namedSource(of: arguments.store)].compactMap(\.self) }
    }

    func run(_ console: Console) throws {
        try newKey.checkStandardInput(arguments)
        let key = try arguments.withMaintainedStore(readOnly: false) { store in
            try store.checkIsEncrypted(arguments.store)
            if let id { try store.checkHasKey(id) }
            return try store.replaceKey(id, with: newKey.key(of: arguments.path(), console), label: label.label)
        }
        try console.printResult(console.isJSON ? key.json : key.id)
    }
}
