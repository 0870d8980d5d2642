internal import CofferSealing
internal import CofferRecords
internal import CofferVault
internal import Synchronization

/// What one generation of an open store is read through: connections to its database, and its attachment files. A key
/// change puts another in its place; this one lasts until those who began to read from it have ended.
final class OpenGeneration: Sendable {
    let attachments: AttachmentStore
    private let readers: ReaderPool
    /// Lets go of the directory only after the last connection is closed.
    private let lease: GenerationLease?

    /// The database file, if somebody reads it beside the connections. It is closed after them: closing it ends all locks
    /// that the process has on it, theirs too (POSIX, `fcntl`).
    private let databaseFile = Lock<File?>(nil)

    init(attachments: AttachmentStore, readers: ReaderPool) {
        self.attachments = attachments
        self.readers = readers
        lease = attachments.takeLease()
    }

    /// Announces a reading, so that a retirement or a close waits for it.
    ///
    /// - Parameter isBrief: whether it is of a few rows and calls nobody else.
    /// - Throws: `closed` (500).
    func enter(isBrief: Bool = false) throws(CofferError) -> ReaderPool.Entry { try readers.enter(isBrief: isBrief) }

    /// Ends a reading that was announced, for whoever has not read through ``read(_:)``.
    func leave() { readers.leave() }

    /// Lends the tables, in the newest snapshot, to `body`: for who has announced it with ``enter()``.
    func read<Value>(_ body: (borrowing Snapshot) throws(CofferError) -> Value) throws(CofferError) -> Value {
        try readers.read(body)
    }

    /// Gives up what idle readers see, so that a checkpoint can copy the whole log.
    func closeIdleSnapshots() { readers.closeIdleSnapshots() }

    /// Has idle readers keep no more than their part of a cache that has become less.
    func shrinkIdleCaches() { readers.shrinkIdleCaches() }

    /// The database file, opened once.
    func databaseFile(
        opening open: () throws(CofferError) -> File
    ) throws(CofferError) -> File {
        try databaseFile.withLock { (file) throws(CofferError) in
            if let file { return file }
            let opened = try open()
            file = opened
            return opened
        }
    }

    /// Lets nobody begin to read any more, and closes when the last reader is done.
    func retire() { readers.retire() }

    /// Waits for the last reader after ``retire()``.
    func waitForReaders() { readers.waitForReaders() }
}

/// The generation that an open store has now, and those before it that somebody may still read from.
final class Generations: Sendable {
    /// What a key change exchanges, all in one moment.
    struct Current {
        var manifest: UnlockedManifest
        var generation: OpenGeneration
        var databaseFile: DatabaseFile
    }

    private struct Retired {
        weak var generation: OpenGeneration?
    }

    private struct State {
        var current: Current
        var retired: [Retired] = []
    }

    private let state: Lock<State>

    init(_ current: Current) { state = Lock(State(current: current)) }

    var manifest: UnlockedManifest { state.withLock(\.current.manifest) }
    var generation: OpenGeneration { state.withLock(\.current.generation) }
    var databaseFile: DatabaseFile { state.withLock(\.current.databaseFile) }

    /// Those that were exchanged and may still be read, and the one that is the store's now.
    var all: [OpenGeneration] {
        state.withLock { $0.retired.compactMap(\.generation) + [$0.current.generation] }
    }

    /// Announces a reading, before another generation can take the place of the one that is read.
    ///
    /// - Throws: `closed` (500).
    func enter(
        isBrief: Bool = false
    ) throws(CofferError) -> (generation: OpenGeneration, entry: ReaderPool.Entry) {
        try state.withLock { (state) throws(CofferError) in
            (state.current.generation, try state.current.generation.enter(isBrief: isBrief))
        }
    }

    func replaceManifest(by next: UnlockedManifest) { state.withLock { $0.current.manifest = next } }

    /// Puts `next` in the place of what was the store's so far, which it returns.
    func exchange(for next: Current) -> Current {
        state.withLock { state in
            let old = state.current
            state.retired.removeAll { $0.generation == nil }
            state.retired.append(Retired(generation: old.generation))
            state.current = next
            return old
        }
    }
}
