internal import ArgumentParser
internal import Coffer

struct KeyAddCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Add another key that opens the store.",
        usage: "coffer key add <store> [<options>]",
        discussion: "The result is the new key's id."
    )

    @OptionGroup var arguments: StoreArguments
    @OptionGroup var newKey: NewKeyArguments
    @OptionGroup var label: LabelArguments

    var keySources: [KeySource] {
        get throws(Failure) { try [arguments.keySource(), newKey.namedSource(of: arguments.store)].compactMap(\.self) }
    }

    func run(_ console: Console) throws {
        try newKey.checkStandardInput(arguments)
        let added = try arguments.withMaintainedStore(readOnly: false) { store in
            try store.checkIsEncrypted(arguments.store)
            return try store.addKey(newKey.key(of: arguments.path(), console), label: label.label)
        }
        try console.printResult(console.isJSON ? added.json : added.id)
    }
}
