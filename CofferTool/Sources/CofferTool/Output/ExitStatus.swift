#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// How the command ends, as scripts see it. These numbers do not change between versions.
enum ExitStatus: Int32, Codable {
    case ok = 0
    /// What was asked for did not happen, for a reason that has no number of its own; a missing document is one.
    case failed = 1
    case partlyDone = 3
    case noStore = 10
    case busy = 11
    case wrongKey = 12
    case keyUnavailable = 13
    case encryptionUnavailable = 14
    case damaged = 26
    case noSpace = 28
    case usage = 64
    /// Cancelled, and the store is as it was.
    case cancelled = 130
    /// Nobody reads standard output any more. The process ends by SIGPIPE, as it would have if it had not noticed.
    case readerGone = 141

    /// Ends the process with this status.
    func endProcess() -> Never {
        if self == .readerGone {
            _ = signal(SIGPIPE, SIG_DFL)
            raise(SIGPIPE)
        }
        exit(rawValue)
    }
}
