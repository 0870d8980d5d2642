internal import ArgumentParser
internal import Coffer
internal import Foundation

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
