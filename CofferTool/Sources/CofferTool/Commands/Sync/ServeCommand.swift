#if Sync
internal import ArgumentParser
internal import Coffer
internal import CofferMaintenance
internal import CofferSync
internal import Foundation
@_spi(Tool) internal import CofferKeys

struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract:
            "Serve the stores of a folder over HTTP, in CouchDB's protocol: to coffer pull and push, CouchDB, and curl.",
        discussion: """
            It prints its URL when it listens; a store's name follows after a slash. Anyone who sends the name and the \
            password may read, change, make and delete every store of the folder, which stay as encrypted as they are. \
            A store is opened at the first request for it, and nobody else can have it from then on. One that the key \
            does not open is answered with an error (500), and the others are served. ^C, and an orderly end of the \
            process, let requests under way end, for up to eight seconds, close the stores, and end with 0, after ten \
            seconds at the latest. Requests that were answered are saved; those under way are saved whole or not at \
            all.

            Without --host only this machine reaches it. Other machines reach it with --tls-certificate and --tls-key; \
            with --allow-plain-http everybody on the way can read everything, also the password.
            """
    )

    @Argument(help: "The folder with the stores.", completion: .directory)
    var folder: String

    @Option(help: ArgumentHelp("The address to listen on.", valueName: "address"))
    var host = "127.0.0.1"

    @Option(help: ArgumentHelp("The port; 0 picks a free one.", valueName: "number"))
    var port = 59_840

    @Option(help: ArgumentHelp("A user who may connect.", valueName: "name"))
    var user: String?

    @Option(
        help: ArgumentHelp(
            "Where the password of --user comes from, as for --key; without it you are asked.", valueName: "source"))
    var password: String?

    @Flag(help: "Let in anyone who reaches it: every user and program of this machine.")
    var noAuthentication = false

    @Option(
        help: ArgumentHelp(
            "Where the key of the stores comes from, also for new ones: see coffer get --help.",
            valueName: "source"))
    var key: String?

    @Flag(
        help: """
            Run the command of --key for each store, when a client first asks for it, and when one is made, and tell the \
            command which store it is. Otherwise it runs once, and its key is for all stores.
            """)
    var keyForEachStore = false

    @Flag(help: "Use no key: new stores are readable by anyone, and encrypted ones are not served.")
    var unencrypted = false

    @Flag(help: "Serve stores that aren't encrypted too, beside those that open with --key. They stay as they are.")
    var serveUnencrypted = false

    @Flag(help: "Change nothing: stores are opened for reading only.")
    var readOnly = false

    @Option(
        help: ArgumentHelp(
            "The server's certificate chain in PEM, down to one that clients trust. Only https is served then.",
            valueName: "file"),
        completion: .file())
    var tlsCertificate: String?

    @Option(help: ArgumentHelp("The certificate's private key in PEM.", valueName: "file"), completion: .file())
    var tlsKey: String?

    @Flag(help: "Serve other machines without TLS.")
    var allowPlainHttp = false

    @Option(
        name: .customLong("max-body"),
        help: ArgumentHelp("The largest document, or JSON body, that is accepted.", valueName: "bytes"))
    var documentByteLimit = 64 << 20

    @Option(
        name: .customLong("max-memory"),
        help: ArgumentHelp(
            "Memory for the bodies of all requests under way; a request waits for its share.", valueName: "bytes"
        ))
    var memoryByteLimit = 384 << 20

    @Option(
        name: .customLong("max-attachment"),
        help: ArgumentHelp(
            "The largest attachment that is accepted. The default is what fits on the disk.", valueName: "bytes"))
    var attachmentByteLimit: Int?

    @Option(name: .customLong("max-connections"), help: ArgumentHelp("The maximum at a time.", valueName: "count"))
    var connectionLimit = 256

    @Flag(help: "Write one JSON object per line, also for errors.")
    var json = false

    func run() throws {
        let console = Console(isJSON: json)
        Interruption.watch()
        let sources = try sources()
        try checkReach()
        let tls = try identity()
        var isFolder: ObjCBool = false
        guard unsafe FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
            throw Failure.noFolder(at: folder)
        }
        let manager = try Manager(directory: URL(filePath: folder, directoryHint: .isDirectory))
        try Owner.act(
            asOneOf: Owner.others(ofFolderOfStoresAt: folder),
            keys: keyForEachStore ? [] : [sources.key].compactMap(\.self),
            texts: [sources.password].compactMap(\.self))
        let keys = try ServedKeys(sources.key, ofStoresIn: folder, isForEachStore: keyForEachStore, isJSON: json)
        try noteUnencrypted(manager, hasKey: !keys.areNone, console)
        var options = ListenerOptions(access: try access(sources.password))
        options.host = host
        options.port = port
        options.tls = tls
        options.isReadOnly = readOnly
        options.documentByteLimit = documentByteLimit
        options.memoryByteLimit = memoryByteLimit
        options.attachmentByteLimit = attachmentByteLimit
        options.connectionLimit = connectionLimit
        options.requiresEncryption = !keys.areNone && !serveUnencrypted
        options.encryptionKey = { [serveUnencrypted] name in
            // A store says itself whether it is encrypted, before the key is proven: only whoever asked for it takes its word.
            if serveUnencrypted, (try? manager.storeInfo(named: name).isEncrypted) == false { return nil }
            return try await keys.key(ofStoreNamed: name)
        }
        try serve(manager, options, console)
    }

    private func serve(_ manager: Manager, _ options: ListenerOptions, _ console: Console) throws {
        let isJSON = console.isJSON
        let maintenance = acceptMaintenance(of: manager, console)
        try Interruptible.run {
            let listener = try await Self.listener(manager, options)
            do {
                let console = Console(isJSON: isJSON)
                var line = JSONLine(type: "listening")
                line.add("url", listener.url)
                line.add("port", listener.port)
                try console.printResult(isJSON ? line.finished : listener.url)
                try console.flush()
            } catch {
                await listener.stop()
                throw error
            }
            // Until it is cancelled.
            while !Task.isCancelled { try? await Task.sleep(for: .seconds(86_400)) }
            OrderlyEnd.atTheLatest(in: Self.longestEnd)
            maintenance?.stop()
            await listener.stop(grace: Self.grace)
        }
    }

    /// Lets other commands work on the stores that this one has open. Without that they find them busy, and nothing else is lost.
    private func acceptMaintenance(of manager: Manager, _ console: Console) -> MaintenanceListener? {
        do {
            return try manager.acceptMaintenance()
        } catch {
            console.printNote("other commands can't work on these stores meanwhile: \(error)")
            return nil
        }
    }

    /// So long requests under way may go on, and so much later the process has ended, whatever runs.
    private static let (grace, longestEnd): (Duration, TimeInterval) = (.seconds(8), 10)

    private static func listener(_ manager: Manager, _ options: ListenerOptions) async throws -> Listener {
        do {
            return try await Listener(manager, options: options)
        } catch let error as SyncError where error.status == 400 {
            throw Failure.usage(error.description)
        } catch let error as SyncError {
            throw Failure(error)
        }
    }

    // MARK: What the arguments say

    private func sources() throws(Failure) -> (key: KeySource?, password: KeySource?) {
        guard (1...Int(Int32.max)).contains(connectionLimit), documentByteLimit > 0, memoryByteLimit > 0,
            (attachmentByteLimit ?? 1) > 0
        else {
            throw .usage("--max-body, --max-memory, --max-attachment and --max-connections must be more than 0")
        }
        guard (0...65_535).contains(port) else { throw .usage("--port is a number from 0 to 65535") }
        let (ofKey, ofPassword) = (try keySource(), try passwordSource())
        guard !(ofKey?.usesStandardInput == true && ofPassword?.usesStandardInput == true) else {
            throw .usage("standard input cannot be two secrets")
        }
        return (ofKey, ofPassword)
    }

    private func keySource() throws(Failure) -> KeySource? {
        guard !unencrypted else {
            guard key == nil else { throw .usage("--key and --unencrypted can't be used together") }
            guard !serveUnencrypted else { throw .usage("--serve-unencrypted goes with --key") }
            guard !keyForEachStore else { throw .usage("--key-for-each-store goes with --key") }
            return nil
        }
        if let named = try KeySource.given(key) {
            guard !keyForEachStore || named.isCommand else {
                throw .usage("--key-for-each-store needs a key from cmd:COMMAND")
            }
            return named
        }
        guard Terminal.isPresent else {
            throw .usage(
                "there is no key", hint: "--key SOURCE, or --unencrypted if everybody may read what is stored")
        }
        return KeySource(origin: .prompt)
    }

    private func passwordSource() throws(Failure) -> KeySource? {
        guard let user else {
            guard password == nil else { throw .usage("--password needs a --user") }
            guard noAuthentication else {
                throw .usage(
                    "nobody could connect",
                    hint: "--user NAME and --password SOURCE, or --no-authentication for all of this machine")
            }
            return nil
        }
        guard !noAuthentication else { throw .usage("--user and --no-authentication can't be used together") }
        guard !user.isEmpty, !user.contains(":") else { throw .usage("--user is a name without a colon") }
        return try KeySource.ofPassword(password)
    }

    private func access(_ source: KeySource?) throws(Failure) -> ListenerOptions.Access {
        guard let user, let source else { return .unauthenticatedLoopback }
        let purpose = "Password for \(Console.printable(user))"
        return .passwords([user: try source.text(for: purpose, "password")])
    }

    /// Others than this machine are served by TLS, unless told otherwise.
    private func checkReach() throws(Failure) {
        guard !["127.0.0.1", "::1", "localhost"].contains(host) else { return }
        guard !noAuthentication else { throw .usage("without authentication, coffer serves only this machine") }
        guard tlsCertificate != nil || allowPlainHttp else {
            throw .usage(
                "without TLS, coffer serves only this machine",
                hint: "--tls-certificate FILE and --tls-key FILE, or --allow-plain-http behind what has them")
        }
    }

    private func identity() throws(Failure) -> ListenerOptions.TLS? {
        guard tlsCertificate != nil || tlsKey != nil else { return nil }
        guard let tlsCertificate, let tlsKey else { throw .usage("--tls-certificate and --tls-key go together") }
        return ListenerOptions.TLS(
            certificateChain: String(decoding: try InputFile.contents(of: tlsCertificate), as: UTF8.self),
            privateKey: String(decoding: try InputFile.contents(of: tlsKey), as: UTF8.self))
    }

    /// Says which stores aren't encrypted. That a store says itself: its key is tried when somebody asks for it, since with a
    /// password each takes a quarter of a second, and one that has another key is no reason to refuse the others.
    private func noteUnencrypted(_ manager: Manager, hasKey: Bool, _ console: Console) throws {
        for name in try manager.allDatabaseNames {
            guard let info = try? manager.storeInfo(named: name), !info.isEncrypted else { continue }
            let isServed = !hasKey || serveUnencrypted
            console.printNote(
                "\(Console.printable(name)) is not encrypted"
                    + (isServed ? "" : " and not served (--serve-unencrypted serves it)"))
        }
        try Interruption.check()
    }
}

/// The keys that `coffer serve` opens stores with: one for all, or what a command says of each.
struct ServedKeys: Sendable {
    private enum Origin {
        case none
        case same(SymmetricKey)
        case command(KeySource)
    }

    private let origin: Origin
    private let folder: String
    private let isJSON: Bool

    /// Whether stores are served without a key.
    var areNone: Bool { if case .none = origin { true } else { false } }

    /// Reads the key, unless a command is asked for each store later.
    init(
        _ source: KeySource?, ofStoresIn folder: String, isForEachStore: Bool, isJSON: Bool
    ) throws(Failure) {
        (self.folder, self.isJSON) = (folder, isJSON)
        guard let source else {
            origin = .none
            return
        }
        origin = isForEachStore ? .command(source) : .same(try source.key(for: "Key of the stores"))
    }

    /// The key of a store of the folder, or of one that is to be made there. What a command fails with is noted on standard
    /// error, since clients are not told.
    func key(ofStoreNamed name: String) async throws -> SymmetricKey? {
        switch origin {
        case .none: return nil
        case .same(let key): return key
        case .command(let source):
            let path = try StorePath("\(folder)/\(name.replacing("/", with: ":")).coffer")
            return try await Self.onThread {
                do {
                    // One that is being made has none yet.
                    let uuid = path.uuid
                    let request = KeyRequest(uuid == nil ? .new : .old, storePath: path.path, storeUUID: uuid)
                    return try source.asked(for: request).reading(for: "key").key
                } catch {
                    Console(isJSON: isJSON).printNote(
                        "the key of \(Console.printable(name)) can't be had: \((error as? Failure)?.message ?? "it failed")"
                    )
                    throw error
                }
            }
        }
    }

    /// Does what waits for another process, apart from the threads that tasks share.
    private static func onThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
        }
    }
}
#endif
