package import CofferSealing
internal import Dispatch
internal import Synchronization

/// What one transaction makes the store's.
///
/// Files get their places when it commits. Of many contents that are in memory, batches get theirs before that, on another
/// thread while the transaction goes on: so no more than two batches are in memory, and the disk is at work meanwhile. Each
/// batch is announced as everything is that gets a place before its rows are committed.
///
/// Belongs to whoever has the transaction: calls come one after another.
package final class Installation {
    /// What is to be installed, each content once.
    package private(set) var files: [StagedAttachment] = []
    private var filesBySHA1: [[UInt8]: StagedAttachment] = [:]

    private let store: AttachmentStore
    private var batches: [Batch] = []
    /// How many of `files` may have their places: the first ones. They are in a batch, or ``install()`` has installed them.
    private var placedCount = 0
    /// Of the others, how many are in memory and how many bytes they are.
    private var sealed = (count: 0, byteCount: 0)
    /// What was rolled back after it may have got its place, by its SHA-1. It may be in `attachments/`.
    private var dropped: [[UInt8]: StagedAttachment] = [:]
    /// What is to be installed again after that: it may be in `attachments/`, too, wherever it stands in `files`.
    private var returned: Set<[UInt8]> = []

    /// How many bytes of contents that are in memory make a batch, and how many contents.
    package static let batchByteCount = 1 << 22
    package static let batchCount = 256

    package init(_ store: AttachmentStore) { self.store = store }

    /// The file that is to be installed as the content of this SHA-1.
    package func file(of sha1: [UInt8]) -> StagedAttachment? { filesBySHA1[sha1] }

    /// Has `file` installed with the others; there isn't one of its SHA-1 among them.
    ///
    /// Throws what placing earlier ones met, as ``install()``: the transaction can only be rolled back then.
    package func add(_ file: StagedAttachment) throws(CofferError) {
        let sha1 = file.digest.sha1
        precondition(filesBySHA1[sha1] == nil, "one content, installed twice")
        if let other = dropped[sha1] {
            if other === file {
                returned.insert(sha1)
            } else {
                try finishBatches()
                try store.takeBackEarly([other])
            }
            dropped[sha1] = nil
        }
        filesBySHA1[sha1] = file
        files.append(file)
        count(file)
        if sealed.count >= store.batchCount || sealed.byteCount >= Self.batchByteCount { try beginBatch() }
    }

    private func count(_ file: StagedAttachment) {
        guard let byteCount = file.sealedByteCount else { return }
        sealed.count += 1
        sealed.byteCount += byteCount
    }

    private func beginBatch() throws(CofferError) {
        // No more than one is under way.
        try finishBatches()
        let batch = Batch(Array(files[placedCount...]), store)
        batches.append(batch)
        noteAllPlaced()
        store.placing.async { batch.finishAndSynchronize() }
    }

    private func noteAllPlaced() {
        placedCount = files.count
        sealed = (0, 0)
    }

    private func finishBatches() throws(CofferError) {
        // Of those before it, ``beginBatch()`` said it.
        guard let error = batches.last?.finish() else { return }
        // What failed first is why the rest did.
        waitForEarlySyncs()
        throw failedSync ?? error
    }

    /// A transaction was rolled back, before which there were `count` files: a nested one, or, with 0, the outermost, also
    /// after ``install()``. What has its place keeps that until the outermost has ended.
    package func rollBack(to count: Int) {
        for index in count..<files.count {
            let sha1 = files[index].digest.sha1
            filesBySHA1[sha1] = nil
            let isReturned = returned.remove(sha1) != nil
            if isReturned || index < placedCount { dropped[sha1] = files[index] }
        }
        files.removeSubrange(count...)
        placedCount = min(placedCount, count)
        sealed = (0, 0)
        for file in files[placedCount...] { self.count(file) }
    }

    /// Makes the contents the store's, durably: see ``AttachmentStore/install(_:)``. On an error nothing is installed.
    package func install() throws(CofferError) {
        do throws(CofferError) {
            try finishBatches()
            // A failure that an early sync was notified of is not told again.
            waitForEarlySyncs()
            if let failedSync { throw failedSync }
            if !dropped.isEmpty { try store.takeBackEarly(Array(dropped.values)) }
            if !files.isEmpty || !batches.isEmpty { try store.install(files, hasChanged: !batches.isEmpty) }
            noteAllPlaced()
        } catch {
            didRollBack()
            throw error
        }
    }

    /// The transaction was committed, after ``install()``.
    package func didCommit() {
        store.didCommit(files, intents(of: files))
        forget()
    }

    /// The transaction was rolled back, and it is certain that it was: see ``AttachmentStore/didRollBack(_:)``.
    ///
    /// It makes no difference whether ``rollBack(to:)`` has said so of its files, too.
    package func didRollBack() {
        for batch in batches { batch.finish() }
        waitForEarlySyncs()
        let all = files + dropped.values
        let intents = intents(of: all)
        store.takeBack(all, intents, hasChanged: !intents.isEmpty)
        forget()
    }

    /// Waits until nothing is changed any more, for when it is open whether the transaction was committed.
    package func abandon() {
        for batch in batches { batch.finish() }
        waitForEarlySyncs()
        forget()
    }

    /// Why the first sync failed that did beside the transaction.
    private var failedSync: CofferError? { batches.lazy.compactMap(\.failedSync).first }

    private func waitForEarlySyncs() { if !batches.isEmpty { store.placing.sync {} } }

    /// What announces batches, and `files` that got their places otherwise. Some may be named twice.
    private func intents(of files: [StagedAttachment]) -> [InstallIntent] {
        batches.compactMap(\.intent) + store.intents(of: files)
    }

    private func forget() {
        files = []
        filesBySHA1 = [:]
        batches = []
        placedCount = 0
        sealed = (0, 0)
        dropped = [:]
        returned = []
    }
}

/// Contents that are announced together and get their places, by whichever thread comes first.
private final class Batch: Sendable {
    private let store: AttachmentStore
    private let state: Lock<State>

    private struct State {
        /// Let go of when they have their places: whoever else does so removes what is left of them.
        var files: [StagedAttachment]
        var intent: InstallIntent?
        var error: CofferError?
    }

    init(_ files: [StagedAttachment], _ store: AttachmentStore) {
        self.store = store
        state = Lock(State(files: files))
    }

    var intent: InstallIntent? { state.withLock(\.intent) }

    /// Why the sync of ``finishAndSynchronize()`` failed, if it did.
    var failedSync: CofferError? { syncFailure.withLock(\.self) }
    /// Apart from the state, which others need not wait for meanwhile.
    private let syncFailure = Lock<CofferError?>(nil)

    /// Gives them their places, unless somebody did, and has the disk write them.
    func finishAndSynchronize() {
        guard finish() == nil else { return }
        do throws(CofferError) { try store.synchronizeEarly() } catch { syncFailure.withLock { $0 = error } }
    }

    /// Gives them their places, or waits for who does that already. Returns what was in the way; then some may have theirs.
    @discardableResult
    func finish() -> CofferError? {
        state.withLock { state in
            if state.files.isEmpty { return state.error }
            do throws(CofferError) {
                let files = state.files
                state.files = []
                try store.place(files) { state.intent = $0 }
            } catch {
                state.error = error
            }
            return state.error
        }
    }
}
