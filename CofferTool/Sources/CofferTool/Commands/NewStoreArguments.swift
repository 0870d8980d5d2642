internal import ArgumentParser
internal import Coffer
internal import CofferKeys

/// What a new store is like.
struct NewStoreArguments: ParsableArguments {
    @Flag(help: "Make a store that anyone can read.")
    var unencrypted = false

    @Option(
        help: ArgumentHelp(
            "sqlite, which is SQLCipher and the default, or sealed, which is faster and which no other program opens.",
            valueName: "engine"))
    var storage: StorageArgument?

    @Flag(help: "Give attachment files names that reveal nothing, even to somebody who knows the content.")
    var keyedNames = false

    /// How to make the store that those arguments name.
    func options(_ arguments: StoreArguments, _ console: Console) throws(Failure) -> DatabaseOptions {
        var options = DatabaseOptions()
        options.create = true
        options.keyedNames = keyedNames
        guard !(keyedNames && unencrypted) else { throw Failure.usage("--keyed-names needs a key") }
        guard !(storage == .sealed && unencrypted) else { throw Failure.usage("--storage sealed needs a key") }
        options.storageType = storage?.type
        options.encryptionKey = try key(arguments, console)
        return options
    }

    /// The key of the new store, or nil for one that is to be readable. Never nil by oversight.
    private func key(_ arguments: StoreArguments, _ console: Console) throws(Failure) -> SymmetricKey? {
        let purpose = try arguments.path().keyPurpose
        if unencrypted {
            guard arguments.key == nil else { throw .usage("--key and --unencrypted can't be used together") }
            return nil
        }
        switch try arguments.keySource() {
        case let source?: return try source.asked(for: .new, of: try arguments.path()).newKey(for: purpose, console)
        case nil where Terminal.isPresent:
            return try KeySource(origin: .prompt).newKey(for: purpose, console)
        case nil:
            throw .usage("a new store needs a key", hint: "--key SOURCE, or --unencrypted if everybody may read it")
        }
    }
}
