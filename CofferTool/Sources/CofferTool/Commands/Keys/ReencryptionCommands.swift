internal import ArgumentParser
internal import Coffer
@_spi(Tool) internal import CofferMaintenance
internal import CofferKeys

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
        try change.print(result, of: arguments.store, wasEncrypted: false, console)
    }
}

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

struct ConvertCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "convert",
        abstract: "Convert a store to another storage engine, in one step.",
        usage: "coffer convert <store> --storage <engine> [<options>]",
        discussion: """
            sqlite is SQLCipher, whose files other programs open with the database's own key; sealed is Coffer's own \
            encryption of SQLite's pages, which is faster and which no other program opens. Both hold the same. All \
            keys of the store go on opening it, with their ids and labels: this is not a change of the key.

            Killed at any instant, the whole store is there with one of the two engines; ^C leaves it unchanged. The \
            conversion needs as much free space as the store takes. A store that has the engine already is left as it \
            is.
            """
    )

    @OptionGroup var arguments: StoreArguments
    @OptionGroup var change: KeyChangeArguments

    @Option(help: ArgumentHelp("sqlite or sealed.", valueName: "engine"))
    var storage: StorageArgument

    func run(_ console: Console) throws {
        Interruption.watch()
        let type = storage.type
        let result = try arguments.withMaintainedStore(readOnly: false) { store in
            guard store.isEncrypted || type != .sealed else {
                throw Failure(
                    message: "\(arguments.store): sealed pages need a key, and it is not encrypted",
                    hint: "coffer encrypt encrypts it", code: "storageTypeUnavailable", status: 406, exit: .failed)
            }
            return try change.run(console) { try await store.converted(to: type, $0) }
        }
        guard let result else {
            return try console.printResult(console.isJSON ? unchanged : "the store has this engine already")
        }
        try console.printResult(console.isJSON ? result.json(arguments.store, storage) : result.text(storage))
        guard let failure = result.oldGenerationLeft(of: arguments.store) else { return }
        try console.flush()
        throw failure
    }

    private var unchanged: String {
        var line = JSONLine(type: "conversion")
        line.add("path", arguments.store)
        line.add("storage", storage.rawValue)
        line.add("converted", false)
        return line.finished
    }
}

extension ConversionResult {
    fileprivate func text(_ storage: StorageArgument) -> String {
        [
            "engine       \(storage.rawValue)",
            "generation   \(oldGeneration) to \(newGeneration)",
            "documents    \(documentCount), in \(databaseByteCount) bytes",
            "attachments  \(attachmentCount), in \(attachmentByteCount) bytes",
            "took         \(Int(duration / .milliseconds(1))) ms",
        ].joined(separator: "\n")
    }

    fileprivate func json(_ store: String, _ storage: StorageArgument) -> String {
        var line = JSONLine(type: "conversion")
        line.add("path", store)
        line.add("storage", storage.rawValue)
        line.add("converted", true)
        line.add("oldGeneration", oldGeneration)
        line.add("generation", newGeneration)
        line.add("documents", documentCount)
        line.add("databaseBytes", databaseByteCount)
        line.add("attachments", attachmentCount)
        line.add("attachmentBytes", attachmentByteCount)
        line.add("oldGenerationIsGone", oldGenerationIsGone)
        line.add("oldGenerations", json: oldGenerations.json)
        line.add("milliseconds", Int(duration / .milliseconds(1)))
        return line.finished
    }
}
