internal import ArgumentParser
internal import Coffer
internal import CofferKeys

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// What every command about a store takes: which store, with which key, and how results are written.
struct StoreArguments: ParsableArguments {
    @Argument(help: "The store: the path of a folder called NAME.coffer.", completion: .directory)
    var store: String

    @Option(
        help: ArgumentHelp(
            "Where the key comes from: prompt, file:PATH, env:NAME, fd:N, stdin, cmd:COMMAND, credential:NAME or keyring:NAME.",
            discussion: StoreArguments.keyDiscussion, valueName: "source"))
    var key: String?

    /// What the help of each command says about the sources of keys.
    static let keyDiscussion = """
        The source holds a password, read up to one line end. With hex+, base64+ or raw+ before it, the source holds \
        32 bytes. Without --key, the environment's COFFER_KEY_SOURCE names the source, or a line for the store in the \
        file COFFER_PROFILE (otherwise ~/.config/coffer/profile); otherwise coffer asks for the key of an encrypted \
        store, if there is a terminal.
        """

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    func path() throws(Failure) -> StorePath { try StorePath(store) }

    /// The source that `--key` names, and no other.
    func givenSource() throws(Failure) -> KeySource? { try key == nil ? nil : keySource() }

    func keySource() throws(Failure) -> KeySource? {
        // An invalid path is refused where it is used.
        guard let path = try? path() else { return try KeySource.given(key) }
        let named = try KeySource.given(key)
        let source = if let named { named } else { try KeyProfile.source(of: path) }
        return source?.asked(for: .old, of: path)
    }

    /// Opens the store, which must be there unless it is being made, and closes it after `body`.
    ///
    /// Where it is opened for writing, no signal ends the process from there on: what has begun is done, or undone by `body`.
    ///
    /// - Parameters:
    ///   - making: how to make the store if it doesn't exist.
    ///   - isToBeEncrypted: whether it has no key yet, so that only the one that `--key` names is used.
    func withDatabase<R>(
        readOnly: Bool, making: DatabaseOptions? = nil, isToBeEncrypted: Bool = false, _ body: (Database) throws -> R
    ) throws -> R {
        let path = try path()
        let manager = try Manager(directory: path.folder)
        var options = making ?? DatabaseOptions()
        if making == nil {
            options.readOnly = readOnly
            if key != nil || !isToBeEncrypted { options.encryptionKey = try openingKey(manager) }
        }
        if !readOnly { Interruption.watch() }
        let database = try manager.openDatabase(named: path.databaseName, options: options)
        if !readOnly, !database.isEncrypted { warnOfPlaintext(path) }
        return try ending(database) {
            // Nothing was asked of it so far.
            if making == nil { try Interruption.check() }
            return try body(database)
        }
    }

    /// Opens the store, which must be there, for work on it as a whole: where another process has it open and accepts such work,
    /// that one does it. Ends it after `body`.
    ///
    /// Where it is opened for writing, no signal ends the process from there on: what has begun is done, or undone by `body`.
    func withMaintainedStore<R>(readOnly: Bool, _ body: (any MaintainedStore) throws -> R) throws -> R {
        let path = try path()
        let manager = try Manager(directory: path.folder)
        let key = try openingKey(manager)
        if !readOnly { Interruption.watch() }
        let store = try StoreOpening(manager: manager, store: path, key: key, readOnly: readOnly).open()
        if !readOnly, !store.isEncrypted { warnOfPlaintext(path) }
        return try ending(store) {
            // Nothing was asked of it so far.
            try Interruption.check()
            return try body(store)
        }
    }

    /// Ends the work on a store after `body`, whatever comes of that.
    private func ending<R>(_ store: some MaintainedStore, after body: () throws -> R) throws -> R {
        let result: R
        do {
            result = try body()
        } catch {
            // What went wrong first is what counts.
            try? store.end()
            throw error
        }
        try store.end()
        return result
    }

    /// Says to a person that what is written can be read. A script has chosen its arguments already.
    private func warnOfPlaintext(_ path: StorePath) {
        guard !json, isatty(STDERR_FILENO) != 0 else { return }
        Console(isJSON: false).printNote(
            "\(Console.printable(path.fileName)) is not encrypted: anyone who can read the disk can read it")
    }

    /// The key that was named, or the one that somebody types when the store needs one.
    func openingKey(_ manager: Manager) throws -> SymmetricKey? {
        let path = try path()
        return try key(askingIf: manager.storeInfo(named: path.databaseName).isEncrypted)
    }

    /// The key that was named, or the one that somebody types if there is a terminal and it is needed.
    func key(askingIf isNeeded: @autoclosure () throws -> Bool) throws -> SymmetricKey? {
        let path = try path()
        if let source = try keySource() { return try source.key(for: path.keyPurpose) }
        guard Terminal.isPresent, try isNeeded() else { return nil }
        return try KeySource(origin: .prompt).key(for: path.keyPurpose)
    }
}

extension StorePath {
    /// What a prompt for the store's key says.
    var keyPurpose: String { "Key of \(Console.printable(fileName))" }
}

/// A command about one store.
protocol StoreCommand: ParsableCommand {
    var arguments: StoreArguments { get }

    /// The stores that it works on, or makes.
    var stores: [String] { get }

    /// Where its keys come from, as far as its arguments say that.
    var keySources: [KeySource] { get throws(Failure) }

    /// Where its other secrets come from, as far as its arguments say that.
    var textSources: [KeySource] { get throws(Failure) }

    /// Does the work, and writes results to `console`.
    func run(_ console: Console) throws
}

extension StoreCommand {
    var stores: [String] { [arguments.store] }

    var keySources: [KeySource] {
        get throws(Failure) { try [arguments.keySource()].compactMap(\.self) }
    }

    var textSources: [KeySource] {
        get throws(Failure) { [] }
    }

    func run() throws {
        let console = Console(isJSON: arguments.json)
        try Owner.act(
            asOneOf: stores.flatMap(Owner.others(ofStoreAt:)), keys: try keySources, texts: try textSources)
        do {
            try run(console)
        } catch let error as CofferError {
            throw Failure(error, of: arguments.store)
        }
        try console.flush()
    }
}

/// How documents are shown on a terminal.
struct RawArguments: ParsableArguments {
    @Flag(
        help: """
            On a terminal, write control characters, and those that change the direction of writing, as they are instead of as \
            \\uXXXX. Pipes and files always get them as they are.
            """)
    var raw = false

    /// Whether the characters are escaped that a terminal would act on.
    var escapes: Bool { TerminalText.isOutput && !raw }
}
