import CTerminal
import Foundation

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The built command, run as a process of its own: in a session without a terminal, unless a test brings one.
struct CofferProcess {
    /// How it ended, and what it wrote.
    struct Outcome {
        let status: Int32
        let outputBytes: Data
        let errors: String

        /// The output as text.
        var output: String { String(decoding: outputBytes, as: UTF8.self) }

        /// The lines of the output.
        var lines: [String] { output.split(separator: "\n").map(String.init) }

        /// Each line of the output as an object of JSON.
        var objects: [[String: Any]] { get throws { try CofferProcess.objects(in: output) } }

        /// The failure that was written as JSON, on the last line of the errors.
        var failure: [String: Any] {
            get throws { try CofferProcess.objects(in: errors.split(separator: "\n").last ?? "").last ?? [:] }
        }
    }

    /// What the process gets beside its arguments.
    struct Surroundings {
        /// Standard input.
        var input = Data()
        /// The environment, whole.
        var environment: [String: String] = ["PATH": "/usr/bin:/bin"]
        /// What can be read from further descriptors.
        var descriptors: [Int32: Data] = [:]
        /// Where standard output goes instead of into the outcome.
        var outputPath: String?
        /// The terminal that the process belongs to.
        var terminal: FakeTerminal?
        /// Whether standard error is that terminal.
        var showsErrorsOnTerminal = false
    }

    struct DidNotEnd: Error {}

    static let executable = CofferProcess.folderOfProducts.appending(path: "coffer")

    /// The test bundle lies beside the executable.
    private static var folderOfProducts: URL {
        let bundle = Bundle.allBundles.first { $0.bundleURL.pathExtension == "xctest" }?.bundleURL
        return (bundle ?? URL(filePath: CommandLine.arguments[0])).deletingLastPathComponent()
    }

    /// Runs `coffer` with `arguments` in `folder`, and does `meanwhile` while it runs. One that goes on for ever is stopped then,
    /// in an orderly way, once it has written a line. What it reads and writes as its standard
    /// input and output is kept in that folder, unless another is given.
    static func run(
        _ arguments: [String], in folder: URL, _ surroundings: Surroundings = Surroundings(),
        keepingFilesIn place: URL? = nil, goesOnForEver: Bool = false, meanwhile: (pid_t) throws -> Void = { _ in }
    ) throws -> Outcome {
        let files = (place ?? folder).appending(path: ".process-\(UUID())")
        try FileManager.default.createDirectory(at: files, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: files) }
        func path(_ name: String) -> String { files.appending(path: name).path(percentEncoded: false) }

        #if canImport(Glibc)
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        #else
        var actions: posix_spawn_file_actions_t?
        var attributes: posix_spawnattr_t?
        #endif
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        terminal_begin_session(&attributes)
        // The first terminal that a session's first process opens becomes the session's.
        if let terminal = surroundings.terminal {
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, terminal.path, O_RDWR, 0)
        }
        if !surroundings.showsErrorsOnTerminal {
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, path("errors"), O_WRONLY | O_CREAT, 0o600)
        }
        let output = surroundings.outputPath ?? path("output")
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT, 0o600)
        let inputs = surroundings.descriptors.merging([STDIN_FILENO: surroundings.input]) { $1 }
        for (descriptor, contents) in inputs {
            try contents.write(to: files.appending(path: "input-\(descriptor)"))
            posix_spawn_file_actions_addopen(&actions, descriptor, path("input-\(descriptor)"), O_RDONLY, 0)
        }
        terminal_begin_in_folder(&actions, folder.path(percentEncoded: false))

        var arguments: [UnsafeMutablePointer<CChar>?] = (["coffer"] + arguments).map { strdup($0) } + [nil]
        var environment: [UnsafeMutablePointer<CChar>?] =
            surroundings.environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { (arguments + environment).forEach { free($0) } }
        var process: pid_t = 0
        let failure = posix_spawn(
            &process, executable.path(percentEncoded: false), &actions, &attributes, &arguments, &environment)
        guard failure == 0 else { throw POSIXError(POSIXErrorCode(rawValue: failure) ?? .EIO) }
        do {
            if goesOnForEver { _ = try firstLine(of: output, by: process) }
            try meanwhile(process)
            if goesOnForEver { kill(process, SIGTERM) }
            let status = try wait(for: process)
            return Outcome(
                status: status,
                outputBytes: surroundings.outputPath == nil ? try Data(contentsOf: URL(filePath: output)) : Data(),
                errors: try text(path("errors")))
        } catch {
            kill(process, SIGKILL)
            throw error
        }
    }

    /// The first line that a process has written to a file; nil when it ends without one.
    static func firstLine(of path: String, by process: pid_t) throws -> String? {
        let end = ContinuousClock.now + longestWait
        while true {
            let hasEnded = hasEnded(process)
            let text = try text(path)
            if let lineEnd = text.firstIndex(of: "\n") { return String(text[..<lineEnd]) }
            if hasEnded { return nil }
            guard ContinuousClock.now < end else { throw DidNotEnd() }
            usleep(2_000)
        }
    }

    /// Whether `process` has ended; it is still there to be waited for.
    static func hasEnded(_ process: pid_t) -> Bool {
        var information = siginfo_t()
        return waitid(P_PID, id_t(process), &information, WEXITED | WNOHANG | WNOWAIT) == 0
            && information.si_signo == SIGCHLD
    }

    /// Returns when `process` has ended, whoever waits for it then.
    static func waitForEnd(of process: pid_t) throws {
        if !eventually({ hasEnded(process) }) { throw DidNotEnd() }
    }

    private static func text(_ path: String) throws -> String {
        FileManager.default.fileExists(atPath: path) ? try String(contentsOfFile: path, encoding: .utf8) : ""
    }

    /// The exit status of `process`, or 128 and the number of the signal that ended it.
    private static func wait(for process: pid_t) throws -> Int32 {
        let end = ContinuousClock.now + longestWait
        var status: Int32 = 0
        while waitpid(process, &status, WNOHANG) == 0 {
            guard ContinuousClock.now < end else { throw DidNotEnd() }
            usleep(2_000)
        }
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
    }

    private static func objects(in text: some StringProtocol) throws -> [[String: Any]] {
        try text.split(separator: "\n").map { line in
            try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
        }
    }
}

/// A terminal with nobody in front of it: a test types, and reads what is shown.
final class FakeTerminal {
    /// The device that a process opens.
    let path: String

    /// Everything that was shown so far.
    private(set) var shown = ""

    private let master: Int32

    /// The other side, held open so that what is shown stays to be read when the process is gone.
    private let slave: Int32

    struct SaidNothing: Error {
        let shown: String
    }

    init() throws {
        var name = [CChar](repeating: 0, count: 256)
        master = terminal_open(&name, name.count)
        guard master >= 0 else { throw POSIXError(.ENXIO) }
        path = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
    }

    deinit {
        close(slave)
        close(master)
    }

    /// Waits until `text` is shown, after what was shown when this was last called.
    func wait(for text: String) throws {
        let before = shown.endIndex.utf16Offset(in: shown)
        while !shown.dropFirst(before).contains(text) {
            var ready = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
            guard poll(&ready, 1, Int32(longestWait / .milliseconds(1))) == 1 else { throw SaidNothing(shown: shown) }
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = read(master, &bytes, bytes.count)
            guard count > 0 else { throw SaidNothing(shown: shown) }
            shown += String(decoding: bytes.prefix(count), as: UTF8.self)
        }
    }

    /// Whether what is typed is shown.
    var showsTyping: Bool {
        var settings = termios()
        return tcgetattr(master, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
    }

    /// Has what is typed shown, as a shell does when it is its turn.
    func showTyping() {
        var settings = termios()
        tcgetattr(master, &settings)
        settings.c_lflag |= tcflag_t(ECHO)
        tcsetattr(master, TCSANOW, &settings)
    }

    /// Types `text`.
    func type(_ text: String) {
        _ = write(master, text, text.utf8.count)
    }
}
