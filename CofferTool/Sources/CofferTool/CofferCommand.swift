internal import ArgumentParser
internal import Coffer

#if Sync
internal import CofferSync
#endif

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The command `coffer`.
@main
struct CofferCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "coffer",
        abstract: "Keep JSON documents in encrypted stores.",
        discussion: """
            Results go to standard output, everything else to standard error. The exit status is 0 when everything is \
            done, 1 after a failure (also for a missing document or attachment), 3 when only a part could be done (a \
            key was changed, but data under the old key can't be removed; a source holds something that can't be \
            imported), 10 if there is no store, or no such folder or list of stores, 11 when another process has the \
            store open, 12 for a wrong or missing key, 13 when the source of a key is unavailable or holds no key, 14 \
            if SQLCipher is missing, 26 when damage was found (salvage, which repairs what it can, ends with 0 or 3), \
            28 when the disk is full, 64 for an invalid command line, and 130 when the command was cancelled, with the \
            store unchanged (a pull keeps what it has fetched). If a server refuses, also because of its own \
            passwords, the status is 1 and never 12.

            As root, coffer works on another user's store as that user. It reads keys first; give other files that \
            only root can read as standard input.
            """,
        version: "0.1.0-dev",
        subcommands: [
            CreateCommand.self, PutCommand.self, GetCommand.self, ListCommand.self, RemoveCommand.self,
            AttachCommand.self, CatCommand.self, ImportCommand.self, ImportCouchbaseCommand.self, ExportCommand.self,
            InfoCommand.self, LogCommand.self, ChangesCommand.self, QueryCommand.self, SearchCommand.self,
            IndexCommand.self, KeyCommand.self, RekeyCommand.self, ConvertCommand.self, RotateCommand.self,
            RotatePartCommand.self,
            InfoPartCommand.self,
            ReceiptsCommand.self,
            EncryptCommand.self, DecryptCommand.self, CompactCommand.self, BackupCommand.self, RestoreCommand.self,
            CheckCommand.self, SalvageCommand.self, LeakCheckCommand.self, AuditCommand.self, DoctorCommand.self,
        ] + syncCommands
    )

    #if Sync
    private static let syncCommands: [any ParsableCommand.Type] = [
        PullCommand.self, PushCommand.self, DownloadCommand.self, ServeCommand.self,
    ]
    #else
    private static let syncCommands: [any ParsableCommand.Type] = []
    #endif

    func run() throws {
        throw Failure.usage("there is no command", hint: "coffer --help lists them")
    }

    static func main() {
        crashQuietly()
        outliveReaders()
        holdStandardDescriptors()
        let arguments = Array(CommandLine.arguments.dropFirst())
        // A command line that cannot be parsed may have asked for JSON all the same.
        let console = Console(isJSON: arguments.prefix { $0 != "--" }.contains("--json"))
        do {
            try perform(arguments)
        } catch {
            if error.exit != .readerGone { console.printFailure(error) }
            error.exit.endProcess()
        }
    }

    /// Takes the places of standard input, output and errors where they are closed: the next file that is opened would get
    /// one, and what is written for somebody to read would end up in it. Reading and writing there fail as before.
    private static func holdStandardDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            _ = unsafe open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Has a crash end the process as the system does: Swift's backtracer would print registers and memory, which may hold keys
    /// and documents, to standard error.
    private static func crashQuietly() {
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGBUS, SIGSEGV] {
            _ = signal(number, SIG_DFL)
        }
        // A parent that ignores it, as nohup may, wants it ignored.
        if !SignalAction.current(SIGQUIT).isIgnoring { _ = signal(SIGQUIT, SIG_DFL) }
    }

    /// Has a write that nobody will read fail, instead of ending the process at once: what is under way is undone or ended, and
    /// stores are closed. Processes that this one starts do as they would anywhere, since a handler is not handed on to them.
    private static func outliveReaders() {
        if !SignalAction.current(SIGPIPE).isIgnoring { SignalAction { _ in }.install(for: SIGPIPE) }
    }

    private static func perform(_ arguments: [String]) throws(Failure) {
        var command = try parse(arguments)
        do {
            try command.run()
        } catch {
            throw failure(running: error)
        }
    }

    /// The command that `arguments` ask for. Asked for help or the version, it prints that and ends the process.
    private static func parse(_ arguments: [String]) throws(Failure) -> any ParsableCommand {
        do {
            return try parseAsRoot(arguments)
        } catch {
            // The parser's own way out prints help and versions.
            if exitCode(for: error).isSuccess { exit(withError: error) }
            if let failure = CommandNames.failure(naming: arguments, below: Self.self) { throw failure }
            let lines = fullMessage(for: error).split(separator: "\n")
            let hint = lines.last { $0.contains("--help") }?.trimmingPrefix(while: \.isWhitespace)
            throw Failure.usage(beginningLow(message(for: error)), hint: hint.map { beginningLow($0) })
        }
    }

    /// What the parser says as a sentence, as it stands behind "error:".
    private static func beginningLow(_ text: some StringProtocol) -> String {
        text.prefix(1).lowercased() + text.dropFirst()
    }

    /// What ended a command.
    static func failure(running error: any Error) -> Failure {
        switch error {
        case let failure as Failure: failure
        case let error as CofferError: Failure(error)
        #if Sync
        case let error as SyncError: Failure(error)
        #endif
        case _ where exitCode(for: error).isSuccess: exit(withError: error)  // coffer help
        default: Failure(describing: error, subject: "coffer")
        }
    }
}

/// The names of commands, to suggest one where a command line has a name that doesn't exist.
enum CommandNames {
    /// A failure that says so where the command that `arguments` name, or one in a group such as `coffer key`, does not exist;
    /// nil for any other command line.
    static func failure(naming arguments: [String], below root: any ParsableCommand.Type) -> Failure? {
        var group = root
        var line = "coffer"
        for argument in arguments {
            // coffer help COMMAND
            if argument == "help" { continue }
            let commands = group.configuration.subcommands
            guard !commands.isEmpty, !argument.hasPrefix("-") else { return nil }
            if let command = commands.first(where: { $0.configuration.commandName == argument }) {
                group = command
                line += " \(argument)"
                continue
            }
            #if !Sync
            if group == root, ["pull", "push", "download", "serve"].contains(argument) {
                return Failure.usage(
                    "this coffer was built without replication, and has no \(argument)",
                    hint: "one that is built with the trait Sync, the default, has it")
            }
            #endif
            let names = commands.filter { $0.configuration.shouldDisplay }.compactMap { $0.configuration.commandName }
            let meant = nearest(to: argument, among: names).map { "did you mean \(line) \($0)? " } ?? ""
            return Failure.usage(
                "there is no command \(line) \(Console.printable(argument))",
                hint: "\(meant)\(line) --help lists the commands")
        }
        return nil
    }

    /// The name that `word` was probably meant to be; nil if none is near.
    static func nearest(to word: String, among names: [String]) -> String? {
        let candidates = names.map { (name: $0, distance: distance(Array(word.utf8), Array($0.utf8))) }
        // A typing error or two, of a word that is long enough to be told from others then.
        let limit = word.utf8.count < 4 ? 1 : 2
        return candidates.filter { $0.distance <= limit }.min { $0.distance < $1.distance }?.name
    }

    /// How many letters have to be added, left out, exchanged for others or with their neighbours (Damerau and Levenshtein's
    /// restricted distance).
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        // Whatever is longer than any command is far from all of them.
        guard left.count <= 32 else { return left.count }
        var rows = [Array(0...right.count)]
        for (i, letter) in left.enumerated() {
            var row = [i + 1]
            for (j, other) in right.enumerated() {
                var cost = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (letter == other ? 0 : 1))
                let isExchange = i > 0 && j > 0 && letter == right[j - 1] && left[i - 1] == other
                if isExchange { cost = min(cost, rows[i - 1][j - 1] + 1) }
                row.append(cost)
            }
            rows.append(row)
        }
        return rows[left.count][right.count]
    }
}
