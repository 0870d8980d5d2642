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

    /// Ends the process with this status.
    func endProcess() -> Never { exit(rawValue) }
}
