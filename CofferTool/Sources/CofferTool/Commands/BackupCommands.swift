internal import ArgumentParser
internal import Coffer
internal import Foundation

struct BackupCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copy a consistent snapshot of a store, under its own key.",
        usage: "coffer backup <store> <copy> [<options>]",
        discussion: """
            The copy is an independent store with all attachments, without the data that compact would drop. It gets \
            its name when it is whole; ^C leaves nothing. The copy of an encrypted store needs a key, or --unencrypted \
            if it should be readable.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The copy: the path of a folder called NAME.coffer, which must not exist.")
    var copy: String

    @OptionGroup var newKey: NewKeyArguments

    @Flag(help: "Make a copy that anyone can read.")
    var unencrypted = false

    @Flag(help: "Report progress on standard error, even if it is not a terminal.")
    var progress = false

    var stores: [String] { [arguments.store, copy] }

    var keySources: [KeySource] {
        get throws(Failure) { try [arguments.keySource(), newKey.namedSource(of: copy)].compactMap(\.self) }
    }

    func run(_ console: Console) throws {
        guard !unencrypted || newKey.newKey == nil else {
            throw Failure.usage("--unencrypted and --new-key can't be used together")
        }
        let copyPath = try StorePath(copy)
        try copyPath.checkFolder()
        if !unencrypted { try newKey.checkStandardInput(arguments) }
        Interruption.watch()
        let meter = WorkMeter(console, isAsked: progress)
        defer { meter.clear() }
        let result = try arguments.withMaintainedStore(readOnly: false) { store in
            let key = unencrypted ? nil : try newKey.key(of: copyPath, console)
            let url = copyPath.folder.appending(path: copyPath.fileName, directoryHint: .isDirectory)
            return try Interruptible.run {
                try await store.backUp(to: url, key) { meter.show($0) }
            }
        }
        try console.printResult(console.isJSON ? result.json(copy) : result.text)
    }
}

extension BackupResult {
    fileprivate var text: String {
        """
        documents    \(documentCount), in \(databaseByteCount) bytes
        attachments  \(attachmentCount), in \(attachmentByteCount) bytes
        """ + (missingContentCount > 0 ? "\nnot here     \(missingContentCount), left out by a pull" : "")
    }

    fileprivate func json(_ path: String) -> String {
        var line = JSONLine(type: "backup")
        line.add("path", path)
        line.add("documents", documentCount)
        line.add("databaseBytes", databaseByteCount)
        line.add("attachments", attachmentCount)
        line.add("attachmentBytes", attachmentByteCount)
        line.add("missingContents", missingContentCount)
        return line.finished
    }
}

struct RestoreCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Check a whole backup, and make a store from it.",
        usage: "coffer restore <store> <target> [<options>]",
        discussion: """
            The store is the backup, and the target the store to make from it. The backup is only read, and its keys \
            open the new store. Every page, document and attachment of the copy is checked; damage ends the command \
            with 26. The store gets its name when it is whole and on the disk: killed at any time, the name is free \
            or, with --replace, has the old store, or the whole new one. Once begun, ^C does not stop it. A killed run \
            leaves a hidden folder, .coffer- and 16 digits, which the next one removes.

            A restored store has the store UUID and the master key of its backup, as all copies have, and its own \
            database UUID. So receipts of coffer rotate distinguish it by databaseUUID, and pull and push start from \
            the beginning, as with a new database: a pull brings the revisions that it lacks. Keys that were removed \
            after the backup was made open it again. coffer rekey gives it keys that no copy has.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(
        help: "The store to make: the path of a folder called NAME.coffer, which must not exist without --replace.",
        completion: .directory)
    var target: String

    @Flag(help: "Replace the existing store, which nobody may have open. Its content is lost.")
    var replace = false

    var stores: [String] { [arguments.store, target] }

    func run(_ console: Console) throws {
        let (backup, path) = (try arguments.path(), try StorePath(target))
        try path.checkFolder()
        guard FileIdentity(path: backup.path).map({ $0 != FileIdentity(path: path.path) }) ?? true else {
            throw Failure.usage("\(Console.printable(target)): it is the backup itself")
        }
        let isThere = try checkTarget(path, backup)
        Interruption.watch()
        let key = try arguments.openingKey(Manager(directory: backup.folder))
        try Interruption.check()
        // Somebody may have typed a key meanwhile.
        try checkTarget(path, backup)
        let manager = try Manager(directory: path.folder)
        let source = backup.folder.appending(path: backup.fileName, directoryHint: .isDirectory)
        do {
            try manager.replaceDatabase(named: path.databaseName, withDatabaseAt: source, encryptionKey: key)
        } catch {
            throw failure(error, path)
        }
        let info = try manager.storeInfo(named: path.databaseName)
        try console.printResult(console.isJSON ? json(info, isThere) : text(info, isThere))
    }

    /// Whether something is there.
    ///
    /// - Throws: where that may not be replaced, or has the backup in it.
    @discardableResult
    private func checkTarget(_ path: StorePath, _ backup: StorePath) throws(Failure) -> Bool {
        guard let there = FileIdentity(path: path.path) else { return false }
        guard replace else {
            throw Failure(
                message: "\(target): it exists already",
                hint: "--replace replaces a store with the backup", code: "databaseExists", status: 412,
                exit: .failed)
        }
        guard !there.contains(folder: backup.path) else {
            throw Failure.usage("\(target): the backup is in it, and would be lost")
        }
        return true
    }

    /// An error of the library, which calls all that is wrong with the backup by the name of the new store.
    private func failure(_ error: CofferError, _ path: StorePath) -> Failure {
        if error.code == .notAStore {
            // The backup was looked at before.
            return Failure(
                message: "\(target): the target of --replace is not a store: \(error.detail ?? "no MANIFEST") (404)",
                hint: "move it away, and restore without --replace", code: "notAStore", status: 404, exit: .noStore)
        }
        let isOfBackup = [.wrongKey, .keyRequired, .notEncrypted, .damaged].contains(error.code)
        let failure = Failure(error, of: isOfBackup ? arguments.store : target)
        let subject = "database \(path.databaseName)"
        guard isOfBackup, failure.message.hasPrefix(subject) else { return failure }
        return Failure(
            message: arguments.store + failure.message.dropFirst(subject.count), hint: failure.hint, code: failure.code,
            status: failure.status, exit: failure.exit)
    }

    private func text(_ info: StoreInfo, _ hasReplaced: Bool) -> String {
        """
        restored    \(Console.printable(target))\(hasReplaced ? ", in the place of another" : "")
        uuid        \(info.storeUUID.uuidString.lowercased())
        generation  \(info.generation)
        """
    }

    private func json(_ info: StoreInfo, _ hasReplaced: Bool) -> String {
        var line = JSONLine(type: "restore")
        line.add("path", target)
        line.add("backup", arguments.store)
        line.add("uuid", info.storeUUID.uuidString.lowercased())
        line.add("generation", info.generation)
        line.add("replaced", hasReplaced)
        return line.finished
    }
}
