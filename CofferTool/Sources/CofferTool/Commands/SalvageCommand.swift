internal import ArgumentParser
internal import Coffer
internal import Foundation

struct SalvageCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "salvage",
        abstract: "Copy everything readable of a damaged store into a new one.",
        usage: "coffer salvage <store> <target> [<options>]",
        discussion: """
            The damaged store is only read. Losses go to standard output, one line for each page, document and \
            attachment; the command ends with 3 then, and with 0 when everything was salvaged. The new store opens \
            with the same key, unless --new-key names another. It gets its name when it is whole; ^C leaves nothing. A \
            store whose MANIFEST is damaged needs a backup of its keys first: see coffer key restore.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Argument(help: "The new store: the path of a folder called NAME.coffer, which must not exist.")
    var target: String

    @OptionGroup var newKey: NewKeyArguments

    @Flag(help: "Report progress on standard error, even if it is not a terminal.")
    var progress = false

    var stores: [String] { [arguments.store, target] }

    var keySources: [KeySource] {
        get throws(Failure) { try [arguments.keySource(), newKey.namedSource(of: target)].compactMap(\.self) }
    }

    func run(_ console: Console) throws {
        let path = try arguments.path()
        let targetPath = try StorePath(target)
        try targetPath.checkFolder()
        if newKey.newKey != nil { try newKey.checkStandardInput(arguments) }
        Interruption.watch()
        let manager = try Manager(directory: path.folder)
        let key: SymmetricKey?
        let result: Salvage
        let meter = WorkMeter(console, isAsked: progress)
        defer { meter.clear() }
        do {
            key = try arguments.openingKey(manager)
            let other = newKey.newKey == nil ? nil : try newKey.key(of: targetPath, console)
            let url = targetPath.folder.appending(path: targetPath.fileName, directoryHint: .isDirectory)
            result = try Interruptible.run {
                try await manager.salvageDatabase(
                    named: path.databaseName, encryptionKey: key, to: url, newKey: other
                ) { meter.show($0) }
            }
        } catch let error as CofferError where error.code == .damaged {
            var failure = Failure(error)
            failure.hint = "where MANIFEST is damaged, coffer key restore puts back one that key backup kept"
            throw failure
        }
        meter.clear()
        for (findings, isLost) in [(result.losses, true), (result.harmless, false)] {
            for finding in findings {
                let text = "\(isLost ? "lost" : "harmless"): \(finding)"
                try console.printResult(console.isJSON ? finding.json(isLost: isLost) : Console.printable(text))
            }
        }
        try console.printResult(console.isJSON ? result.json(target) : result.text)
        guard result.isComplete else {
            try console.flush()
            throw Failure(
                message:
                    "\(path.fileName): \(result.losses.count) losses; everything else is in \(targetPath.fileName)",
                code: "damaged", status: 500, exit: .partlyDone)
        }
    }
}

extension Salvage {
    fileprivate var text: String {
        """
        \(isComplete ? "all salvaged" : "partly salvaged")
        documents    \(documentCount)
        revisions    \(revisionCount)
        local        \(localDocumentCount)
        attachments  \(attachmentCount), of \(attachmentByteCount) bytes
        """
    }

    fileprivate func json(_ path: String) -> String {
        var line = JSONLine(type: "salvage")
        line.add("path", path)
        line.add("complete", isComplete)
        line.add("losses", losses.count)
        line.add("harmless", harmless.count)
        line.add("documents", documentCount)
        line.add("revisions", revisionCount)
        line.add("localDocuments", localDocumentCount)
        line.add("attachments", attachmentCount)
        line.add("attachmentBytes", attachmentByteCount)
        return line.finished
    }
}
