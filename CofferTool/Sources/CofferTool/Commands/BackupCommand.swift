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
