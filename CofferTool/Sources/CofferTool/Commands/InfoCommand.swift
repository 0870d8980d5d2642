internal import ArgumentParser
internal import Coffer
internal import CofferKeys
internal import Foundation

struct InfoCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Describe a store, or each of many.",
        usage: "coffer info <store> [<options>]",
        discussion: """
            Without --key this reports everything that is known without a key, and neither opens nor locks the store. \
            With --key it opens the store, lists its keys with their labels, and counts and measures its documents, \
            the last sequence, the database file with its write-ahead log, and the files of attachments and blobs.

            It always reports remains of a key change that was killed, with their size and the command that removes \
            them.

            In a folder of stores, or for a file with the path of a store on each line, or - for such lines on \
            standard input, each store has one line. A store that can't be read, or that the key doesn't open, doesn't \
            stop the others: the command ends with 3 then, and with the first store's status if none could be read. As \
            root, with a key, a process for each user, with no other rights, reads that user's stores. See also coffer \
            audit.
            """
    )

    @OptionGroup var arguments: StoreArguments

    @Flag(help: "Also look into subfolders of a folder of stores. Links and names that begin with a dot are skipped.")
    var recursive = false

    /// Whether it is one store that is named, and not a folder or a list of them.
    private var isOfOne: Bool { (try? arguments.path()) != nil }

    /// Many may be several users': see ``InfoParts``.
    var stores: [String] { isOfOne ? [arguments.store] : [] }

    /// It is opened only where `--key` says so.
    var keySources: [KeySource] {
        get throws(Failure) { try [arguments.givenSource()].compactMap(\.self) }
    }

    func run(_ console: Console) throws {
        guard !isOfOne else {
            guard !recursive else { throw Failure.usage("--recursive is for a folder of stores") }
            let key = try arguments.key == nil ? nil : openingKey()
            let store = try StoreDescription(arguments.store, key: key, isOpened: arguments.key != nil)
            try console.printResult(console.isJSON ? store.json : store.text)
            store.left.warn(of: arguments.store, console)
            return
        }
        let source = try arguments.givenSource()
        guard arguments.store != "-" || source?.usesStandardInput != true else {
            throw Failure.usage("standard input cannot be both a key and the list of stores")
        }
        let list = try StoreList(arguments.store, isRecursive: recursive)
        list.notePassedOver(console)
        Interruption.watch()
        let key = try source.map { (source) throws(Failure) in try source.key(for: "Key of the stores") }
        var failures: [Failure] = []
        let isJSON = console.isJSON
        try InfoParts(key: key, isPassword: source?.encoding == .password, isJSON: isJSON).describe(list.paths) {
            try $0.show(console)
            if let failure = $0.failure { failures.append(failure) }
        }
        for folder in list.unreadable {
            try StoreLine(folder.path, isJSON: isJSON, failure: folder.failure).show(console)
            failures.append(folder.failure)
        }
        try console.flush()
        guard let first = failures.first else { return }
        let count = list.paths.count + list.unreadable.count
        throw Failure(
            message: "\(failures.count.counted("store", of: count)) could not be read", code: first.code,
            status: first.status, exit: failures.count < count ? .partlyDone : first.exit)
    }

    private func openingKey() throws -> SymmetricKey? {
        try arguments.openingKey(Manager(directory: arguments.path().folder))
    }
}
