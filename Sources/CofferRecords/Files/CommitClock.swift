internal import Synchronization

/// Tells a reader whether its snapshot is still the newest, without asking the file system.
///
/// Counts twice a commit: odd while one is under way. A snapshot taken at an even count is the newest as long as the
/// count stays. At an odd one nobody can say which side of the commit a snapshot is on, so none is kept: else a thread
/// could read through one connection what was committed, and then, through another, what was there before.
package final class CommitClock: Sendable {
    private let count = Atomic<UInt64>(0)

    package init() {}

    /// The count now; nil while a commit is under way.
    package var settled: UInt64? {
        let now = count.load(ordering: .acquiring)
        return now & 1 == 0 ? now : nil
    }

    /// Called by the writer right before its commit.
    package func willCommit() { count.add(1, ordering: .acquiringAndReleasing) }

    /// Called by the writer right after its commit, whether it succeeded or not.
    package func didCommit() { count.add(1, ordering: .acquiringAndReleasing) }
}
