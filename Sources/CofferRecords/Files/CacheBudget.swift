internal import Synchronization

/// How many bytes of pages the writer's connection and those of all readers may keep, of those that the database may.
///
/// Sealed pages are opened into a cache that all connections share. It has most of all: readers keep only what they are at work
/// on, and pages of the log; the writer has half of what it has otherwise, since what it misses is mostly in that cache.
///
/// Otherwise the writer has a quarter: inserting at random places among 100,000 and 400,000 documents took the same time with an
/// eighth and with a half, while all that the readers had more made reading faster. When readers have been at work for a
/// while and nobody has written, they have its part too, until somebody writes. Safe from any thread.
package final class CacheBudget: Sendable {
    package let byteCount: Int

    /// What a connection is left that has nothing to do.
    package static let leastByteCount = 64 << 10

    private let haveReadersAll = Atomic(false)
    /// The commits up to the end of the last span of reads.
    private let lastCount = Atomic<UInt64>(.max)

    package init(byteCount: Int) { self.byteCount = max(1 << 20, byteCount) }

    /// - Parameter besideShared: whether there is a cache that connections share.
    package func writerByteCount(besideShared: Bool) -> Int { besideShared ? byteCount / 8 : byteCount / 4 }

    /// What all readers may keep together.
    ///
    /// - Parameter besideShared: whether there is a cache that connections share.
    package func readersByteCount(besideShared: Bool) -> Int {
        besideShared ? byteCount / 32 : byteCountBesideWriter(besideShared: false)
    }

    /// What the cache that connections share may keep, where there is one.
    package var sharedByteCount: Int {
        byteCountBesideWriter(besideShared: true) - readersByteCount(besideShared: true)
    }

    private func byteCountBesideWriter(besideShared: Bool) -> Int {
        byteCount - (areReadersAlone ? Self.leastByteCount : writerByteCount(besideShared: besideShared))
    }

    /// Whether the readers have the writer's part. Whoever has the writer changes it, or there isn't one.
    package var areReadersAlone: Bool {
        get { haveReadersAll.load(ordering: .relaxed) }
        set { haveReadersAll.store(newValue, ordering: .relaxed) }
    }

    /// Notes that a span of reads has ended, when the clock of commits said `count`; nil while one is under way.
    ///
    /// - Returns: whether nobody has written in it.
    package func endSpan(at count: UInt64?) -> Bool {
        guard let count else { return false }
        return lastCount.exchange(count, ordering: .relaxed) == count
    }
}
