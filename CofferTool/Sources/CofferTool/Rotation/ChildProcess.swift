internal import Foundation
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Another process of this command: what it reads on its standard input, and what it says, line by line, on its
/// standard output. Its errors are shown as this one's are.
final class ChildProcess: Sendable {
    /// Where it is written to, until ``endInput()``.
    let input: Int32
    private let output: Int32
    private let process: pid_t
    private let state = Mutex(State())

    private struct State {
        var hasInput = true
        var status: Int32?
    }

    init(_ arguments: [String]) throws(Failure) {
        // One that has gone away is an error, and not the end of this process.
        signal(SIGPIPE, SIG_IGN)
        // Ignored, as it may be from the start, it leaves no status to be waited for.
        signal(SIGCHLD, SIG_DFL)
        let (childInput, input) = try Self.pipe()
        let (output, childOutput) = try Self.pipe()
        defer { for end in [childInput, childOutput] { close(end) } }
        var process: pid_t = 0
        let failure = Self.spawn(["coffer"] + arguments, childInput, childOutput, &process)
        guard failure == 0 else {
            for end in [input, output] { close(end) }
            throw Failure.system(failure, "another process of coffer")
        }
        (self.input, self.output, self.process) = (input, output, process)
    }

    deinit {
        endInput()
        close(output)
    }

    /// Lets it read the end of its input.
    func endInput() {
        state.withLock { state in
            if state.hasInput { close(input) }
            state.hasInput = false
        }
    }

    /// Hands out the lines that it writes until it has closed its output.
    func forEachLine(_ body: (Data) throws -> Void) throws {
        var pending = Data()
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = unsafe read(output, &buffer, buffer.count)
            if count == 0 { return }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw Failure.system(errno, "another process of coffer")
            }
            pending.append(contentsOf: buffer[..<count])
            while let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
                try body(Data(pending[..<end]))
                pending = Data(pending[pending.index(after: end)...])
            }
        }
    }

    /// Ends it in an orderly way, unless it was waited for: its number may be another process's by then.
    func terminate() {
        state.withLock { state in
            guard state.status == nil else { return }
            kill(process, SIGTERM)
            // Stopped, which its owner can do, it would not notice.
            kill(process, SIGCONT)
        }
    }

    /// Waits for its end, which it must have come to or been told of, and returns its exit status, or 128 and the number of
    /// the signal that ended it.
    func wait() -> Int32 {
        // Until it is gone for others to see, a signal may still be sent to it.
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        return state.withLock { state in
            if let status = state.status { return status }
            var status: Int32 = 0
            while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
            let result = status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
            state.status = result
            return result
        }
    }

    private static func pipe() throws(Failure) -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [-1, -1]
        #if canImport(Glibc)
        let result = unsafe Glibc.pipe(&ends)
        #else
        let result = unsafe Darwin.pipe(&ends)
        #endif
        guard result == 0 else { throw Failure.system(errno, "a pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    /// - Returns: 0, or what went wrong.
    private static func spawn(
        _ arguments: [String], _ input: Int32, _ output: Int32, _ process: inout pid_t
    ) -> Int32 {
        #if canImport(Glibc)
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        let executable = "/proc/self/exe"
        #else
        var actions: posix_spawn_file_actions_t?
        var attributes: posix_spawnattr_t?
        let executable = Bundle.main.executablePath ?? CommandLine.arguments[0]
        #endif
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawnattr_init(&attributes)
        defer {
            unsafe posix_spawn_file_actions_destroy(&actions)
            unsafe posix_spawnattr_destroy(&attributes)
        }
        // Threads of the system's pool block signals, and it would, too.
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        unsafe posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        var words: [UnsafeMutablePointer<CChar>?] = unsafe arguments.map { unsafe strdup($0) } + [nil]
        defer { unsafe words.forEach { unsafe free($0) } }
        return unsafe posix_spawn(&process, executable, &actions, &attributes, &words, environ)
    }
}

extension Failure {
    /// That a process of a store's owner ended before it had done what it was told.
    static func ownersProcessEnded(_ status: Int32, _ path: String) -> Failure {
        Failure(
            message: "\(Console.printable(path)): the process that works as its owner exited with \(status)",
            code: "ioFailed", status: 500, exit: .failed)
    }
}
