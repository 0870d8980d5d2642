internal import CofferModel
internal import CofferRecords
public import CofferSealing
public import Foundation
internal import Dispatch
internal import Synchronization

extension Document {
    // MARK: Expiration

    /// When the document will be purged automatically; nil for never.
    ///
    /// - Throws: `invalidDocumentID` (400), `damaged` and `closed` (500).
    public var expirationDate: Date? {
        get throws(CofferError) {
            let id = try checkedID
            let time = try database.storage.readBriefly { (tables) throws(CofferError) in
                try tables.expirations.time(of: id)
            }
            return time.map { Date(timeIntervalSince1970: Double($0) / 1_000) }
        }
    }

    /// Has the document purged at a time, or never.
    ///
    /// Purged is more than deleted: all its revisions and their attachments are gone as if they had never been there, and no
    /// peer learns of it. That happens within a second of the time while the database is open for writing, and otherwise
    /// when it is opened for writing next; until then, and as long as it is open for reading only, the document can be read.
    /// The time holds for whatever revisions the document has by then, and does not travel to other copies of the database.
    ///
    /// - Parameter date: when, with a precision of a millisecond; one that has passed means at once. Nil: never.
    /// - Throws: `invalidDocumentID` and, for a date that is not a number, `invalidArgument` (400); `readOnly` (403),
    ///   `documentNotFound` (404) when nothing was ever saved under this id, `closed` (500), `busy` (503), `noSpace` (507).
    public func setExpirationDate(_ date: Date?) throws(CofferError) {
        let id = try checkedID
        let time = try date.map { (date) throws(CofferError) in
            guard let time = ExpirationTimer.time(of: date) else {
                throw CofferError(.invalidArgument, of: subject, "the date is not a number")
            }
            return time
        }
        try database.storage.write { (writer) throws(CofferError) in
            guard try writer.tables.document(id) != nil else { throw CofferError(.documentNotFound, of: subject) }
            try writer.change { () throws(CofferError) in try writer.tables.expirations.set(id, time) }
            writer.state.hasChangedExpirations = true
        }
    }
}

/// Has the documents of an open store purged when they expire. Sleeps until the next one does, and for ever when none will.
///
/// It does not keep the store open.
final class ExpirationTimer: StorageCompanion {
    /// Everything happens here, one after another.
    private let queue = DispatchQueue(label: "coffer.expiration", qos: .utility)

    private struct State {
        weak var storage: Storage?
        var timer: (any DispatchSourceTimer)?
    }
    private let state = Lock(State())

    /// How many milliseconds it waits after a purge that found the database busy or the disk full, or a read that failed.
    private let pauseMilliseconds: Int64

    /// How long it sleeps at most: a longer sleep could miss that the clock was set.
    private static let longestSleep: Int64 = 30 * 24 * 3600 * 1_000

    /// Documents that are purged in one transaction, so that others who write need not wait long.
    private static let purgeLimit = 200

    /// - Parameter pause: how long it waits after something failed that may pass. Default: 10 seconds.
    convenience init() { self.init(pause: .seconds(10)) }

    init(pause: Duration) { pauseMilliseconds = Int64(pause / .milliseconds(1)) }

    /// Milliseconds since 1970; nil when that is not a number. Dates that are too far away are as far as can be.
    static func time(of date: Date) -> Int64? {
        let time = (date.timeIntervalSince1970 * 1_000).rounded(.up)
        guard !time.isNaN else { return nil }
        // Far enough for anybody, and exact as a double.
        return Int64(max(-9e15, min(time, 9e15)))
    }

    private static var now: Int64 { time(of: Date()) ?? 0 }

    /// Purges what has expired while the store was closed, and begins to watch.
    ///
    /// - Parameter next: when the first document expires.
    func start(_ storage: Storage, next: Int64) {
        // What expired before an open can't be seen after it, unless it is very much, or the disk is full.
        let isPurged = next > Self.now ? nil : try? storage.purgeExpired(by: Self.now, limit: 1_000)
        queue.async { [weak storage] in
            self.state.withLock { $0.storage = storage }
            if isPurged == nil && next > Self.now { self.sleep(until: next) } else { self.purge() }
        }
    }

    /// Looks again when the next document expires, after a commit that changed that.
    func reconsider(_ storage: Storage) {
        queue.async { [weak storage] in
            self.state.withLock { $0.storage = storage }
            self.sleepUntilNext()
        }
    }

    /// Never wakes again.
    func finish() -> [any Sendable] {
        queue.async { self.sleep(until: nil) }
        return []
    }

    func didCommit(_ commit: Commit?, _ writer: borrowing Writer, in storage: Storage) {
        guard writer.state.hasChangedExpirations else { return }
        writer.state.hasChangedExpirations = false
        reconsider(storage)
    }

    private func purge() {
        guard let storage = state.withLock({ $0.storage }) else { return }
        do throws(CofferError) {
            var count: Int
            repeat {
                count = try storage.purgeExpired(by: Self.now, limit: Self.purgeLimit)
            } while count == Self.purgeLimit
            sleepUntilNext(pausing: count == 0)
        } catch {
            if error.code != .closed {
                CofferLog.write(
                    .warning, .storage, storage.subject, "expired documents were not purged",
                    LogMessage.details(of: error))
            }
            // Damage would only be looked for again.
            if error.code == .damaged { sleep(until: nil) } else { sleep(after: error) }
        }
    }

    /// Tries again in a while, unless the store has to be opened again first.
    private func sleep(after error: CofferError) {
        let isOver = error.code == .closed || error.code == .reopenRequired
        sleep(until: isOver ? nil : Self.now + pauseMilliseconds)
    }

    /// - Parameter pausing: whether what is due by now can wait, since nothing came of it a moment ago.
    private func sleepUntilNext(pausing: Bool = false) {
        guard let storage = state.withLock({ $0.storage }) else { return }
        do throws(CofferError) {
            let next = try storage.read { (tables) throws(CofferError) in try tables.expirations.next() }
            let now = Self.now
            sleep(until: next.map { pausing && $0 <= now ? now + pauseMilliseconds : $0 })
        } catch {
            sleep(after: error)
        }
    }

    private func sleep(until time: Int64?) {
        state.withLock { state in
            state.timer?.cancel()
            state.timer = nil
            guard let time else { return }
            let timer = DispatchSource.makeTimerSource(queue: queue)
            let now = Self.now
            let wait = min(max(time, now), now + Self.longestSleep) - now
            // By the wall clock, which goes on while the machine sleeps.
            timer.schedule(wallDeadline: .now() + .milliseconds(Int(wait)), leeway: .milliseconds(100))
            timer.setEventHandler { [weak self] in self?.purge() }
            timer.activate()
            state.timer = timer
        }
    }
}

extension Storage {
    /// Has documents purged when they expire.
    var expirationTimer: ExpirationTimer { companions[ExpirationTimer.self] }

    /// Purges up to `limit` documents that have expired by `time`.
    ///
    /// - Returns: how many there were.
    func purgeExpired(by time: Int64, limit: Int) throws(CofferError) -> Int {
        // Nothing to do: no transaction.
        let next = try read { (tables) throws(CofferError) in try tables.expirations.next() }
        guard let next, next <= time else { return 0 }
        let count = try healingIndexes { () throws(CofferError) in
            try write { (writer) throws(CofferError) in
                try writer.tables.expirations.removeStrays(by: time)
                let due = try writer.tables.expirations.due(by: time, limit: limit)
                for document in due { _ = try Purge(of: document).removeDocument(in: writer) }
                return due.count
            }
        }
        if count > 0 {
            CofferLog.write(
                .info, .storage, subject, "expired documents were purged", ["documents": String(count)])
        }
        return count
    }
}
