internal import CofferSealing
internal import CofferRecords
internal import Synchronization

/// The writer of an open store, with the lock that whoever uses it holds.
///
/// The writer can't be copied, and is lent only by borrowing, so that nobody has it without the lock or for longer than the
/// lock: the compiler sees to that everywhere but in this file. Here each way to it looks whether the caller holds the lock.
final class WriterOwner: Sendable {
    /// Lets one thread at a time write.
    let lock = WriterLock()

    /// Nil when the store is open read-only, and after ``close(_:)``. `lend`, `replace` and `close` alone touch it, and stop
    /// the process where the caller doesn't hold the lock (test: "The writer can't be reached without its lock: the process
    /// stops").
    private nonisolated(unsafe) var writer: Writer?

    /// Whether the writer has met damage and is to be replaced before it is used again.
    private let isTainted = Atomic(false)
    var hasMetDamage: Bool {
        get { isTainted.load(ordering: .relaxed) }
        set { isTainted.store(newValue, ordering: .relaxed) }
    }

    /// Whether the holder of the lock may only read.
    private let isReading = Atomic(false)

    init(_ writer: consuming sending Writer?) { unsafe self.writer = writer }

    /// Waits for the lock. The caller must not hold it.
    ///
    /// - Throws: `busy` (503) when `deadline` has passed, `closed` (500) after a close.
    func acquire(until deadline: ContinuousClock.Instant, subject: String) throws(CofferError) {
        try lock.lock(until: deadline, subject: subject)
        occupy()
    }

    /// Takes the lock for a moment, without waiting: see ``WriterLock/lockBriefly()``.
    func acquireBriefly() -> Bool {
        guard lock.lockBriefly() else { return false }
        occupy()
        return true
    }

    /// Gives the lock back.
    func release() {
        lend { $0.tables.vacate() }
        lock.unlock()
    }

    private func occupy() { lend { $0.tables.occupy() } }

    /// Lends the writer to `body`. Only for whoever holds the lock; loans nest.
    ///
    /// - Returns: what `body` returns; nil if there is no writer.
    @discardableResult
    func lend<Value, Failure: Error>(
        _ body: (borrowing Writer) throws(Failure) -> Value
    ) throws(Failure) -> Value? {
        checkHeld()
        switch unsafe writer {
        case .some(let writer): return try body(writer)
        case .none: return nil
        }
    }

    /// Lends the writer's tables to `body`, which reads what was committed. Only for whoever holds the lock, and is in no
    /// transaction. Were anything written from `body`, the process would stop (test: "A brief read that writes stops the
    /// process").
    ///
    /// - Returns: what `body` returns; nil if there is no writer, or one that has met damage.
    func lendToRead<Value>(
        _ body: (borrowing Snapshot) throws(CofferError) -> Value
    ) throws(CofferError) -> Value? {
        guard !hasMetDamage else { return nil }
        isReading.store(true, ordering: .relaxed)
        defer { isReading.store(false, ordering: .relaxed) }
        do throws(CofferError) {
            return try lend { (writer) throws(CofferError) in try writer.tables.read(body) }
        } catch {
            // A page that failed its check leaves a connection that calls healthy pages damaged.
            hasMetDamage = true
            throw error
        }
    }

    /// Stops the process where the holder of the lock may only read.
    func checkMayWrite() {
        if isReading.load(ordering: .relaxed) { fatalError("a read that borrowed the writer's connection wrote") }
    }

    /// Puts `successor` in the writer's place, which is closed. Only for whoever holds the lock, and outside of every loan.
    func replace(with successor: consuming sending Writer) {
        // Nothing was written through it that the successor doesn't see: what closing says changes nothing.
        try? close { (writer) throws(CofferError) in try writer.tables.close() }
        successor.tables.occupy()
        unsafe writer = consume successor
    }

    /// Ends the writer's life, after `body` has closed its connection, one way or another. Only for whoever holds the lock,
    /// and outside of every loan.
    ///
    /// - Throws: what `body` throws; the writer is gone all the same.
    func close(_ body: (borrowing Writer) throws(CofferError) -> Void) throws(CofferError) {
        checkHeld()
        guard let last = unsafe writer.take() else { return }
        try body(last)
    }

    private func checkHeld() {
        guard lock.isHeldByCaller else { fatalError("the writer was used without its lock") }
    }
}
