#if Sync
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Keeps the promise that a process ends in time after it was told to, whatever still runs in it.
enum OrderlyEnd {
    /// Ends the process with 0 after that many seconds, unless it has ended by then.
    ///
    /// Stores that are still open are as a crash leaves them, which takes back what was not committed. Nothing of the
    /// process is waited for, since what runs too long may hold what an end with all its duties needs.
    static func atTheLatest(in seconds: TimeInterval) {
        Thread.detachNewThread {
            Thread.sleep(forTimeInterval: seconds)
            _exit(0)
        }
    }
}
#endif
