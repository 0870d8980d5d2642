internal import Foundation

#if canImport(Glibc)
internal import CLinux
internal import Glibc
#else
internal import Darwin
#endif

/// A command that writes a key to its standard output.
///
/// It is in this process's group, so that it may ask at the terminal, and ^C reaches it. (Foundation's `Process` gives each a
/// group of its own, and takes one whose status nobody can know for one that succeeded.)
struct KeyCommand: ~Copyable {
    /// Where its output is read.
    let output: Int32
    private let process: pid_t
    /// Whether its status was taken: its number may be another process's by then.
    private var hasEnded = false

    /// Starts `line` with the shell. Its input is empty, and its errors go where this process's go.
    init(_ line: String, environment: [String: String]) throws(KeySourceError) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw Self.cannotStart(errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[1]) }
        let variables = environment.map { "\($0.key)=\($0.value)" }
        var process: pid_t = 0
        let failure = Self.spawn(["/bin/sh", "-c", line], variables, output: ends[1], &process)
        guard failure == 0 else {
            close(ends[0])
            throw Self.cannotStart(failure)
        }
        (output, self.process) = (ends[0], process)
    }

    private static func cannotStart(_ number: Int32) -> KeySourceError {
        .unavailable(SystemError.message(number, "the command for the key"))
    }

    /// Waits for its end.
    ///
    /// - Parameter wait: what it throws ends the waiting.
    /// - Throws: where it failed, or nobody can know whether it did.
    mutating func checkSuccess(waiting wait: KeySource.Wait) throws {
        var status: Int32 = 0
        var pause: UInt32 = 1_000
        while true {
            let result = unsafe waitpid(process, &status, WNOHANG)
            hasEnded = result == process || (result < 0 && errno != EINTR)
            if result == process { break }
            // SIGCHLD is ignored: the system has thrown the status away.
            if hasEnded {
                throw KeySourceError.unavailable("the exit status of the command for the key is unknown")
            }
            try wait(output)
            usleep(pause)
            pause = min(pause * 2, 50_000)
        }
        guard status == 0 else {
            let code = status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
            throw KeySourceError.unavailable("the command for the key ended with status \(code)")
        }
    }

    /// Ends it, unless it was waited for: in an orderly way, and where it takes no notice within a second by force.
    func end() {
        var status: Int32 = 0
        close(output)
        guard !hasEnded else { return }
        for attempt in 0..<100 {
            if attempt == 0 {
                guard unsafe waitpid(process, &status, WNOHANG) == 0 else { return }
                kill(process, SIGTERM)
                // One that is stopped would not notice.
                kill(process, SIGCONT)
            }
            usleep(10_000)
            guard unsafe waitpid(process, &status, WNOHANG) == 0 else { return }
        }
        kill(process, SIGKILL)
        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
    }

    /// - Returns: 0, or what went wrong.
    private static func spawn(
        _ arguments: [String], _ variables: [String], output: Int32, _ process: inout pid_t
    ) -> Int32 {
        #if canImport(Glibc)
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        #else
        var actions: posix_spawn_file_actions_t?
        var attributes: posix_spawnattr_t?
        #endif
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawnattr_init(&attributes)
        defer {
            unsafe posix_spawn_file_actions_destroy(&actions)
            unsafe posix_spawnattr_destroy(&attributes)
        }
        // What this process blocks or ignores says nothing of what the command expects.
        var none = sigset_t()
        var ignored = sigset_t()
        unsafe sigemptyset(&none)
        unsafe sigemptyset(&ignored)
        for signal in [SIGPIPE, SIGCHLD] { unsafe sigaddset(&ignored, signal) }
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setsigdefault(&attributes, &ignored)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        #if canImport(Glibc)
        // Another key may be waiting in a descriptor.
        unsafe posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1)
        #endif
        var words: [UnsafeMutablePointer<CChar>?] = unsafe arguments.map { unsafe strdup($0) } + [nil]
        var environment: [UnsafeMutablePointer<CChar>?] = unsafe variables.map { unsafe strdup($0) } + [nil]
        defer { unsafe (words + environment).forEach { unsafe free($0) } }
        return unsafe posix_spawn(&process, arguments[0], &actions, &attributes, &words, &environment)
    }
}

/// The kernel's key management (keyrings(7)).
enum Keyring {
    /// What a key of type `user` holds that is described so.
    static func contents(ofKey description: String) throws(KeySourceError) -> KeyBytes {
        #if os(Linux)
        let key = try identifier(ofKey: description)
        var secret = KeyBytes()
        let count = unsafe secret.append { unsafe coffer_read_key(key, $0.baseAddress, UInt($0.count)) }
        guard count >= 0 else { throw failure(errno) }
        // What is longer is copied in part only.
        guard count <= KeyBytes.maximumByteCount else { throw KeyBytes.tooLong }
        return secret
        #else
        throw .unavailable("only Linux has keyrings in the kernel")
        #endif
    }

    #if os(Linux)
    private static func identifier(ofKey description: String) throws(KeySourceError) -> Int {
        var key = unsafe coffer_request_key("user", description)
        // A service has no link from its session to the keyring of its user.
        if key < 0, errno == ENOKEY || errno == EACCES {
            let first = errno
            key = unsafe coffer_search_user_keyring("user", description)
            if key < 0, errno == ENOKEY { throw failure(first) }
        }
        guard key >= 0 else { throw failure(errno) }
        return key
    }

    private static func failure(_ number: Int32) -> KeySourceError {
        switch number {
        case ENOKEY:
            .unavailable(
                "no keyring of this process or user has a key of that name",
                hint: "keyctl padd user NAME @u, with the key on standard input, makes one")
        case ENOSYS, EPERM:
            .unavailable(
                SystemError.message(number, "the kernel's keyrings"),
                hint: "containers often forbid them; a file or a credential serves there")
        default: .unavailable(SystemError.message(number, "the key of the kernel's keyring"))
        }
    }
    #endif
}

enum SystemError {
    /// What the system says to an error number (strerror(3)), and of what.
    static func message(_ number: Int32, _ subject: String) -> String {
        guard let reason = unsafe strerror(number) else { return "\(subject): error \(number)" }
        return unsafe "\(subject): \(String(cString: reason))"
    }
}
