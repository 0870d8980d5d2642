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
            Without --key that is what can be known without one, and the store is neither opened nor locked. With --key it is \
            opened, its keys are listed with their labels, and it is counted and measured: its documents, the last sequence, \
            the database file with its log, and the files of attachments and blobs.

            What a change of the key has left that was killed is said in any case, with its size, and what removes it.

            Of a folder of stores, a file with the path of a store on each line, or - for such lines on standard input, each store \
            has a line. One that can't be read, or that the key doesn't open, keeps no other out: the command ends with 3 then, \
            and with what was wrong with the first where none could be read. As root, with a key, those of several users are \
            looked at by a process for each of them, which has no other rights. See also coffer audit.
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
