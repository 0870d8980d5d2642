internal import ArgumentParser
internal import Coffer
@_spi(Tool) internal import CofferMaintenance
internal import CofferKeys

struct RekeyCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "rekey",
        abstract: "Re-encrypt a whole store under another key, in one step.",
        usage: "coffer rekey <store> [<options>]",
        discussion: """
            The database and every attachment are encrypted under a fresh data key that the new key opens. Killed at \
            any instant, exactly one of the two keys opens the whole store; ^C leaves it unchanged. The change needs \
            as much free space as the store takes. Name other keys of the store to keep them, or say that they are \
            dropped.

            At the end the data under the old key is removed. If some of it can't be removed, such as an immutable \
            file, the change counts anyway: the command says which folder is left and whether it may be readable \
            without a key, and ends with 3. The next command that writes tries again; if the store is encrypted and \
            that folder may be readable, that command says so and does nothing else.
            """
    )

    @OptionGroup var arguments: StoreArguments
    @OptionGroup var newKey: NewKeyArguments
    @OptionGroup var change: KeyChangeArguments

    @Option(
        help: ArgumentHelp(
            "Another key of the store to keep. Repeatable.", valueName: "source"))
    var keepKey: [String] = []

    @Flag(help: "Drop all other keys of the store.")
    var dropOtherKeys = false

    @Flag(
        inversion: .prefixedNo,
        help: "Turn names of attachment files that reveal nothing on or off. The default is as before.")
    var keyedNames: Bool?

    var keySources: [KeySource] {
        get throws(Failure) {
            try [arguments.keySource(), newKey.namedSource(of: arguments.store)].compactMap(\.self) + keptSources()
        }
    }

    private func keptSources() throws(Failure) -> [KeySource] {
        try keepKey.map { (text) throws(Failure) in
            try KeySource(text, of: "--keep-key").asked(for: .kept, of: try? arguments.path())
        }
    }

    func run(_ console: Console) throws {
        let kept = try keptSources()
        try newKey.checkStandardInput(arguments, others: kept)
        Interruption.watch()
        let path = try arguments.path()
        let result = try arguments.withMaintainedStore(readOnly: false) { store in
            try store.checkIsEncrypted(arguments.store)
            let keptKeys = try kept.map { try $0.key(for: "Another key of \(Console.printable(path.fileName))") }
            let key = try newKey.key(of: path, console)
            let order = KeyChangeOrder(
                newKey: key, keptKeys: keptKeys, dropsOtherKeys: dropOtherKeys, keyedNames: keyedNames)
            return try change.run(console) { try await store.changeKey(order, $0) }
        }
        try change.print(result, of: arguments.store, console)
    }
}
