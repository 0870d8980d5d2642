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

/// Says of many stores what each is, also where they are several users' and root asks: by one process after the other, each of which
/// becomes an owner's for good before it opens anything.
struct InfoParts {
    /// Opens the stores; nil if none is opened.
    let key: SymmetricKey?
    let isPassword: Bool
    let isJSON: Bool

    /// What a process receives, but for the key.
    struct Part: Codable {
        let owner: Owner
        let paths: [String]
        let isJSON: Bool
    }

    /// Hands out what there is to say of each store, one user's after the other's.
    func describe(_ paths: [String], _ show: (StoreLine) throws -> Void) throws {
        // Without a key no store is opened.
        let parts = key == nil ? [(owner: nil, stores: paths)] : Owner.parts(of: paths)
        if parts.count == 1 { try parts[0].owner?.act() }
        for part in parts {
            if parts.count > 1, let owner = part.owner {
                try describe(Part(owner: owner, paths: part.stores, isJSON: isJSON), show)
                continue
            }
            for path in part.stores {
                try Interruption.check()
                try show(StoreLine.describing(path, key, isJSON: isJSON))
            }
        }
    }

    private func describe(_ part: Part, _ show: (StoreLine) throws -> Void) throws {
        let keys = key.map { [PartedRotation.Key(key: $0, isPassword: isPassword)] } ?? []
        let process = try ChildProcess([InfoPartCommand.name] + (isJSON ? ["--json"] : []))
        var rest = part.paths[...]
        do {
            // One that ends before it has read all says why itself.
            try? PartMessage.send(part, keys, to: process.input)
            process.endInput()
            let decoder = JSONDecoder()
            try process.forEachLine { line in
                try Interruption.check()
                try show(decoder.decode(StoreLine.self, from: line))
                rest = rest.dropFirst()
            }
        } catch {
            process.terminate()
            // It may be waiting for room to write in, and would never end.
            try? process.forEachLine { _ in }
            _ = process.wait()
            throw error
        }
        let status = process.wait()
        try Interruption.check()
        for path in rest {
            try show(StoreLine(path, isJSON: isJSON, failure: .ownersProcessEnded(status, path)))
        }
    }
}

/// The part of `coffer info` that a process does as the owner of some of the stores. Nobody calls it but that.
struct InfoPartCommand: ParsableCommand {
    static let name = "info-part"

    static let configuration = CommandConfiguration(
        commandName: name, abstract: "Do one owner's part of coffer info.", shouldDisplay: false)

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    func run() throws {
        Interruption.watch()
        let (part, keys) = try PartMessage.receive(InfoParts.Part.self, from: STDIN_FILENO)
        guard let key = keys.first else { throw Failure.usage("only coffer info runs this") }
        try part.owner.act()
        let encoder = JSONEncoder()
        for path in part.paths {
            try Interruption.check()
            let line = StoreLine.describing(path, key, isJSON: part.isJSON)
            try Console.write(Array(encoder.encode(line)) + [UInt8(ascii: "\n")], to: STDOUT_FILENO)
        }
    }
}

/// What is printed of one of many stores: what crosses from a process of the store's owner, too.
struct StoreLine: Codable {
    private let line: String
    private let warnings: [OldGenerationWarning]
    /// Why nothing can be said of the store.
    let failure: Failure?

    private init(line: String, warnings: [OldGenerationWarning], failure: Failure?) {
        (self.line, self.warnings, self.failure) = (line, warnings, failure)
    }

    /// Of a store, or a folder, of which nothing can be said.
    init(_ path: String, isJSON: Bool, failure: Failure) {
        self.init(
            line: isJSON ? failure.storeLine(path) : "unreadable     \(Console.printable(path))", warnings: [],
            failure: failure)
    }

    /// Looks at a store, which is opened where there is a key.
    static func describing(_ path: String, _ key: SymmetricKey?, isJSON: Bool) -> StoreLine {
        do {
            let store = try StoreDescription(path, key: key, isOpened: key != nil)
            return StoreLine(
                line: isJSON ? store.json : store.line, warnings: store.left.warnings(of: path), failure: nil)
        } catch {
            return StoreLine(path, isJSON: isJSON, failure: Failure(ofOneStore: error, path))
        }
    }

    func show(_ console: Console) throws(Failure) {
        try console.printResult(line)
        for warning in warnings { warning.show(console) }
        if let failure { console.printFailure(failure) }
    }
}
