internal import ArgumentParser
internal import Coffer

struct EncryptCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "encrypt",
        abstract: "Encrypt an unencrypted store in one step.",
        usage: "coffer encrypt <store> [<options>]",
        discussion: """
            Works like coffer rekey. Old copies and backups stay readable, and so may the disk's remains of the \
            removed files.
            """
    )

    @OptionGroup var arguments: StoreArguments
    @OptionGroup var newKey: NewKeyArguments
    @OptionGroup var change: KeyChangeArguments

    @Flag(help: "Give attachment files names that reveal nothing, even to somebody who knows the content.")
    var keyedNames = false

    var keySources: [KeySource] {
        get throws(Failure) {
            try [arguments.givenSource(), newKey.namedSource(of: arguments.store)].compactMap(\.self)
        }
    }

    func run(_ console: Console) throws {
        try newKey.checkStandardInput(arguments)
        Interruption.watch()
        let path = try arguments.path()
        let result = try arguments.withDatabase(readOnly: false, isToBeEncrypted: true) { database in
            guard !database.isEncrypted else {
                throw Failure(
                    message: "\(arguments.store): it is encrypted already", hint: "coffer rekey changes its key",
                    code: "invalidArgument", status: 400, exit: .failed)
            }
            let key = try newKey.key(of: path, console)
            return try change.run(console) { progress in
                try await database.changeEncryptionKey(to: key, keyedNames: keyedNames, progress: progress)
            }
        }
        try change.print(result, of: arguments.store, console)
    }
}
