internal import Coffer
internal import Foundation
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// What a process that works as an owner says on its standard output, and is answered on its standard input. Safe from any
/// thread.
final class PartChannel: Sendable {
    /// One message at a time, and with it the answer to it.
    private let turn = Mutex(())
    /// When it was last said of each store how far it is.
    private let lastProgress = Mutex<[String: ContinuousClock.Instant]>([:])

    /// Says that a store is about to be changed, and waits until it may be.
    ///
    /// - Throws: where it may not, or nobody listens any more.
    func announce(_ store: StoreBeginning) throws {
        try turn.withLock { _ in
            try Self.write(.begins(store))
            try PartMessage.receiveAnswer(from: STDIN_FILENO)
        }
    }

    /// Asks for the keys of a store.
    ///
    /// - Throws: if the keys can't be had, or the process that was asked has ended.
    func keys(ofStoreAt path: String, _ uuid: UUID) throws -> [SymmetricKey] {
        try turn.withLock { _ in
            try Self.write(.wantsKeys(path: path, uuid: uuid))
            return try PartMessage.receiveKeys(from: STDIN_FILENO)
        }
    }

    /// Asks for the new key of a store.
    ///
    /// - Throws: if it can't be had, or the process that was asked has ended.
    func newKey(ofStoreAt path: String, _ uuid: UUID) throws -> SymmetricKey {
        let keys = try turn.withLock { _ in
            try Self.write(.wantsNewKey(path: path, uuid: uuid))
            return try PartMessage.receiveKeys(from: STDIN_FILENO)
        }
        guard let key = keys.first else { throw Failure.usage("only coffer rotate runs this") }
        return key
    }

    /// Says what became of a store.
    func report(_ report: RotationReport) throws {
        _ = lastProgress.withLock { $0.removeValue(forKey: report.path) }
        try turn.withLock { _ in try Self.write(.report(report)) }
    }

    /// Says how far a store is, but not more than ten times a second. What nobody hears keeps nothing from being done.
    func show(_ progress: StoreProgress) {
        let now = ContinuousClock.now
        let isDue = lastProgress.withLock { last in
            if let time = last[progress.path], now - time < .milliseconds(100) { return false }
            last[progress.path] = now
            return true
        }
        if isDue { try? turn.withLock { _ in try Self.write(.progress(progress)) } }
    }

    private static func write(_ message: PartedRotation.Message) throws {
        try Console.write(Array(JSONEncoder().encode(message)) + [UInt8(ascii: "\n")], to: STDOUT_FILENO)
    }
}
