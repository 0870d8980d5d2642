internal import ArgumentParser
internal import Coffer

struct DecryptCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "decrypt",
        abstract: "Decrypt a store in one step. Anyone can read it then.",
        usage: "coffer decrypt <store> --yes-remove-encryption [<options>]",
        discussion: "Works like coffer rekey, and requires --yes-remove-encryption."
    )

    @OptionGroup var arguments: StoreArguments
    @OptionGroup var change: KeyChangeArguments

    @Flag(help: "Confirm that anyone who can read the files may read their content.")
    var yesRemoveEncryption = false

    @Flag(help: "Decrypt even if other keys open the store too.")
    var dropOtherKeys = false

    func run(_ console: Console) throws {
        guard yesRemoveEncryption else {
            throw Failure.usage(
                "anyone could read the store then", hint: "--yes-remove-encryption confirms that you want this")
        }
        Interruption.watch()
        let result = try arguments.withDatabase(readOnly: false) { database in
            try database.checkIsEncrypted(arguments.store)
            return try change.run(console) { progress in
                try await database.changeEncryptionKey(
                    to: nil, droppingOtherKeys: dropOtherKeys, progress: progress)
            }
        }
        try change.print(result, of: arguments.store, console)
    }
}
