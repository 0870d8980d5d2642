internal import ArgumentParser
internal import Coffer

struct DecryptCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "decrypt",
        abstract: "Remove the encryption of a store: all of it, or nothing. Everybody can read it then.",
        usage: "coffer decrypt <store> --yes-remove-encryption [<options>]",
        discussion: "As coffer rekey. It has to be asked for in so many words: --yes-remove-encryption."
    )

    @OptionGroup var arguments: StoreArguments
    @OptionGroup var change: KeyChangeArguments

    @Flag(help: "Yes: whoever can read the files shall be able to read what is in them.")
    var yesRemoveEncryption = false

    @Flag(help: "Do it although other keys open the store too.")
    var dropOtherKeys = false

    func run(_ console: Console) throws {
        guard yesRemoveEncryption else {
            throw Failure.usage(
                "everybody could read the store then", hint: "--yes-remove-encryption says that this is meant")
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
