package import CofferSealing
internal import CofferSQLite
internal import Dispatch
internal import Synchronization

/// A connection that reads, with its statements and the snapshot that it holds open.
///
/// A snapshot stays open after a read, since opening one costs as much as a small read, and is given up when it is not
/// the newest any more, or before a checkpoint.
///
/// Sendable, since a ``ReaderPool``, which alone knows it, lets one thread at a time have it; only its tables leave this file,
/// lent. Were two threads in one all the same, the process would stop (test: "A second thread in a connection stops the
/// process, also between two calls of the first").
private final class Reader: @unchecked Sendable {
    let tables: Snapshot

    private var isSnapshotOpen = false
    private var snapshot: UInt64?
    private(set) var cacheByteCount: Int

    init(_ snapshot: consuming Snapshot, cacheByteCount: Int) {
        self.cacheByteCount = cacheByteCount
        tables = snapshot
    }

    /// Has the calling thread be inside its connection until ``vacate()``.
    func occupy() { tables.connection.occupy() }

    func vacate() { tables.connection.vacate() }

    /// Closes its connection. Nothing was written: what closing says changes nothing.
    func close() { try? tables.connection.close() }

    func openSnapshot(at now: UInt64?) throws(CofferError) {
        if isSnapshotOpen {
            if let snapshot, snapshot == now { return }
            try closeSnapshot()
        }
        try tables.beginReading()
        isSnapshotOpen = true
        snapshot = now
    }

    /// Gives the snapshot up unless it is the newest: kept by an idle reader, an old one would keep the log from starting
    /// again.
    func closeOldSnapshot(at now: UInt64?) throws(CofferError) {
        if snapshot == nil || snapshot != now { try closeSnapshot() }
    }

    func setCache(byteCount: Int) throws(CofferError) {
        guard byteCount != cacheByteCount else { return }
        cacheByteCount = byteCount
        try tables.connection.setCache(byteCount: byteCount)
    }

    func shrinkCache(to byteCount: Int) throws(CofferError) {
        if byteCount < cacheByteCount { try setCache(byteCount: byteCount) }
    }

    func closeSnapshot() throws(CofferError) {
        guard isSnapshotOpen else { return }
        isSnapshotOpen = false
        try tables.endReading()
    }
}

/// Readers, opened as threads need them. No reader waits for the writer or for another reader.
package final class ReaderPool: Sendable {
    private struct State {
        var idle: [Reader] = []
        var lentCount = 0
        var isClosed = false
        /// How many were lent at once, at most, in this span of reads and in the one before: as many share the cache.
        var width = 1
        private var widest = 1
        private var readsLeft = ReaderPool.span
        /// How many more brief reads may do without a reader: none once one was opened.
        private var borrowsLeft = ReaderPool.borrowLimit

        /// Counts one who is about to read.
        mutating func lend(isBrief: Bool) -> Entry {
            lentCount += 1
            let mayBorrow = isBrief && borrowsLeft > 0
            if mayBorrow { borrowsLeft -= 1 }
            readsLeft -= 1
            let endsSpan = readsLeft < 0
            if endsSpan {
                width = widest
                widest = 1
                readsLeft = ReaderPool.span
            }
            widest = max(widest, lentCount)
            width = max(width, widest)
            return Entry(endsSpan: endsSpan, mayBorrow: mayBorrow)
        }

        mutating func noteOpening() { borrowsLeft = 0 }

        /// Counts rows that a reader has gone through as so many reads.
        mutating func noteListed(_ rowCount: Int) { readsLeft = max(0, readsLeft - rowCount) }

        /// Takes out idle readers that are too many, now that one comes back: those that were used longest ago.
        mutating func takeSpare() -> [Reader] {
            let spare = min(idle.count, idle.count + 1 - width)
            guard spare > 0 else { return [] }
            defer { idle.removeFirst(spare) }
            return Array(idle.prefix(spare))
        }
    }

    /// What somebody who is about to read learns.
    package struct Entry {
        /// Whether a span of reads ends with it.
        package let endsSpan: Bool
        /// Whether it may read through a connection that there is already, so that a store that was opened for the sake of a
        /// document or two needs no second one.
        package let mayBorrow: Bool
    }

    /// How many brief reads go through another connection, at most, before a reader is opened.
    private static let borrowLimit = 16

    /// After how many reads, or rows of lists, a pool forgets that more threads once read at the same time.
    private static let span = 4096

    private let state = Lock(State())
    private let lastReturned = DispatchSemaphore(value: 0)
    private let clock: CommitClock
    private let subject: String
    private let open: @Sendable (_ cacheByteCount: Int) throws(CofferError) -> Snapshot
    private let cache: CacheBudget
    /// Whether the connections share a cache beside their own.
    private let haveSharedCache: Bool
    /// Connections kept when nobody reads. More are opened under load, and closed as they come back.
    private let idleLimit: Int

    /// Of those that read this file in this way.
    package convenience init(
        of database: DatabaseFile, _ reading: DatabaseFile.Reading, clock: CommitClock, cache: CacheBudget,
        idleLimit: Int
    ) {
        self.init(
            subject: database.subject, clock: clock, cache: cache, haveSharedCache: database.hasSharedCache,
            idleLimit: idleLimit
        ) { (share) throws(CofferError) in try database.openSnapshot(reading, cacheByteCount: share) }
    }

    init(
        subject: String, clock: CommitClock, cache: CacheBudget, haveSharedCache: Bool = false, idleLimit: Int,
        open: @escaping @Sendable (_ cacheByteCount: Int) throws(CofferError) -> Snapshot
    ) {
        self.subject = subject
        self.clock = clock
        self.cache = cache
        self.haveSharedCache = haveSharedCache
        self.idleLimit = idleLimit
        self.open = open
    }

    /// Counts a reader who is about to ``read(_:)``, once, or to ``leave()``.
    ///
    /// - Parameter isBrief: whether it reads a few rows and calls nobody else.
    /// - Throws: `closed` (500).
    package func enter(isBrief: Bool = false) throws(CofferError) -> Entry {
        try state.withLock { state throws(CofferError) in
            if state.isClosed { throw CofferError(.closed, of: subject) }
            return state.lend(isBrief: isBrief)
        }
    }

    /// Lends the tables, in the newest snapshot, to `body`; checks afterwards that no page failed. Only after ``enter()``.
    ///
    /// - Throws: what `body` throws, `damaged` (500).
    package func read<Value>(_ body: (borrowing Snapshot) throws(CofferError) -> Value) throws(CofferError) -> Value {
        let reader = try take()
        reader.occupy()
        do throws(CofferError) {
            try reader.openSnapshot(at: clock.settled)
            let value = try body(reader.tables)
            try reader.tables.confirmReads()
            try reader.closeOldSnapshot(at: clock.settled)
            giveBack(reader)
            return value
        } catch {
            // A page that failed its check leaves a connection that calls healthy pages damaged.
            discard(reader)
            throw error
        }
    }

    /// What each of so many readers may keep.
    private func share(among width: Int) -> Int {
        cache.readersByteCount(besideShared: haveSharedCache) / width
    }

    private func take() throws(CofferError) -> Reader {
        let (idle, share) = state.withLock { state in (state.idle.popLast(), self.share(among: state.width)) }
        do throws(CofferError) {
            guard let idle else {
                state.withLock { $0.noteOpening() }
                return Reader(try open(share), cacheByteCount: share)
            }
            try idle.setCache(byteCount: share)
            return idle
        } catch {
            noteReturn()
            throw error
        }
    }

    /// Takes back a reader in which the calling thread is.
    private func giveBack(_ reader: Reader) {
        let rowCount = reader.tables.takeListedRowCount()
        var spare: [Reader] = []
        var isKept = state.withLock { state in
            state.noteListed(rowCount)
            spare = state.takeSpare()
            // Whoever waits for the last reader waits for the end of these, too.
            return spare.isEmpty ? keep(reader, in: &state) : nil
        }
        for reader in spare { reader.close() }
        while isKept == nil {
            let share = state.withLock { self.share(among: $0.width) }
            guard (try? reader.shrinkCache(to: share)) != nil else { return discard(reader) }
            isKept = state.withLock { keep(reader, in: &$0) }
        }
        if isKept == false { discard(reader) }
    }

    /// Has a reader in which the calling thread is wait for the next read.
    ///
    /// - Returns: false if there are enough already; nil if it holds more than its part, since others have come or the writer
    ///   has taken its own part back: nobody looks at it once it is idle.
    private func keep(_ reader: Reader, in state: inout State) -> Bool? {
        guard reader.cacheByteCount <= share(among: state.width) else { return nil }
        guard !state.isClosed, state.idle.count < idleLimit else { return false }
        state.lentCount -= 1
        reader.vacate()
        state.idle.append(reader)
        return true
    }

    /// Has idle readers keep no more than their part of a cache that has become less. Others wait for it, for about a
    /// millisecond, rather than find nobody and open connections of their own.
    package func shrinkIdleCaches() {
        state.withLock { state in
            // One that fails fails again when it reads.
            for reader in state.idle { try? reader.shrinkCache(to: share(among: state.width)) }
        }
    }

    private func discard(_ reader: Reader) {
        reader.close()
        noteReturn()
    }

    /// Counts as gone whoever announced itself and read through a connection of its own.
    package func leave() { noteReturn() }

    private func noteReturn() {
        let isLast = state.withLock { state in
            state.lentCount -= 1
            return state.isClosed && state.lentCount == 0
        }
        if isLast { lastReturned.signal() }
    }

    /// Gives up the snapshots of readers that nobody uses, so that a checkpoint can copy the whole log.
    package func closeIdleSnapshots() {
        let idle = state.withLock { state in
            let idle = state.idle
            state.idle = []
            state.lentCount += idle.count
            return idle
        }
        for reader in idle {
            reader.occupy()
            if (try? reader.closeSnapshot()) == nil { discard(reader) } else { giveBack(reader) }
        }
    }

    /// Closes idle connections, and those that are lent as they come back. Later readers fail with `closed`.
    package func retire() {
        let idle = state.withLock { state in
            state.isClosed = true
            let idle = state.idle
            state.idle = []
            return idle
        }
        for reader in idle { reader.close() }
    }

    /// Waits for the last reader after ``retire()``. Only one may wait.
    package func waitForReaders() {
        let mustWait = state.withLock { $0.lentCount > 0 }
        if mustWait { lastReturned.wait() }
    }
}
