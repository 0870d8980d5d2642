internal import ArgumentParser
internal import Coffer
@_spi(Tool) internal import CofferMaintenance
internal import Foundation

/// `coffer key`: what is done with a store's keys without encrypting it again.
struct KeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "List, add, remove, replace, back up or restore the keys of a store, or make a new one.",
        discussion: """
            A store has up to eight keys, each of which opens all of it. Adding, removing and replacing them \
            re-encrypts nothing, so a removed key still opens the store together with a MANIFEST that somebody kept \
            from before. After a key has become known, use coffer rekey.
            """,
        subcommands: [
            KeyListCommand.self, KeyAddCommand.self, KeyRemoveCommand.self, KeyReplaceCommand.self,
            KeyGenerateCommand.self, KeyBackupCommand.self, KeyRestoreCommand.self,
        ]
    )

    func run() throws {
        throw Failure.usage("there is no command after key", hint: "coffer key --help lists them")
    }
}

struct KeyGenerateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "generate",
        abstract: "Make a new key: 32 random bytes in hex.",
        discussion: """
            The key is written to standard output, or into a new file that only its owner can read. --key \
            hex+file:FILE makes or opens a store with it.
            """
    )

    @Argument(help: "The file, which must not exist.", completion: .file())
    var file: String?

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    func run() throws {
        let console = Console(isJSON: json)
        let key = try SymmetricKey()
        if let file {
            try NewFile.write(Array((Self.hex(key) + "\n").utf8), to: file)
            if json {
                var line = JSONLine(type: "key")
                line.add("file", file)
                try console.printResult(line.finished)
            }
        } else if json {
            var line = JSONLine(type: "key")
            line.add("hex", Self.hex(key))
            try console.printResult(line.finished)
        } else {
            try console.printResult(Self.hex(key))
        }
        try console.flush()
    }

    private static func hex(_ key: SymmetricKey) -> String {
        unsafe key.withBytes { unsafe hexadecimal($0) }
    }
}

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

struct KeyBackupCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copy MANIFEST, the file without which no key opens the store.",
        discussion: """
            With the copy and a key that it names, coffer key restore makes the store open again after MANIFEST was \
            lost or damaged, or a key was replaced and the new one forgotten. The other way round, removing a key does \
            not help against somebody who has such a copy and that key; coffer rekey does, and makes the copy \
            worthless: make a new one then.

            The copy holds no key, but lets passwords be guessed. With --key the command checks that the key opens it. \
            The store is not locked.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The copy, which must not exist.", completion: .file())
    var file: String

    func run(_ console: Console) throws {
        let path = try arguments.path()
        let manager = try Manager(directory: path.folder)
        let key = try arguments.keySource().map { (source) throws(Failure) in try source.key(for: path.keyPurpose) }
        let backup = try manager.keyBackup(ofDatabaseNamed: path.databaseName, encryptionKey: key)
        try NewFile.write(Array(backup), to: file)
        guard console.isJSON else { return }
        var line = JSONLine(type: "keyBackup")
        line.add("file", file)
        line.add("proven", key != nil)
        try console.printResult(line.finished)
    }
}

struct KeyRestoreCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Replace the store's MANIFEST with a copy that key backup made.",
        discussion: """
            Only the copy's keys open the store from then on: keys that were added after the copy was made end. The \
            key asked for is one of the copy's. A copy of another store, or from before the last coffer rekey, is \
            refused. Killed at any time, the store has the old MANIFEST or the copy's.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The copy.", completion: .file())
    var file: String

    func run(_ console: Console) throws {
        let path = try arguments.path()
        let backup = try InputFile.contents(of: file)
        let manager = try Manager(directory: path.folder)
        // What is in the way of a wrong backup is a right key.
        let key = try arguments.key(askingIf: true)
        // From here on it is put back, or not.
        Interruption.watch()
        let info: StoreInfo
        do {
            info = try manager.restoreKeys(ofDatabaseNamed: path.databaseName, from: backup, encryptionKey: key)
        } catch {
            guard error.subject == "the backup" else { throw error }
            throw Failure(error).about(Console.printable(file))
        }
        guard console.isJSON else {
            for slot in info.keySlots { try console.printResult(slot.text) }
            return
        }
        var line = JSONLine(type: "store")
        line.add("path", arguments.store)
        line.add("uuid", info.storeUUID.uuidString.lowercased())
        line.add("generation", info.generation)
        line.add("sequence", info.sequence)
        line.add("keys", json: "[" + info.keySlots.map(\.json).joined(separator: ",") + "]")
        try console.printResult(line.finished)
    }
}
