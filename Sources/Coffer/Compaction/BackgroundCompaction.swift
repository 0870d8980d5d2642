internal import CofferRecords
internal import CofferSealing
internal import CofferVault
internal import Dispatch
internal import Synchronization

/// Compacts an open store when enough can be given back. One at a time, and without keeping the store open.
final class BackgroundCompaction: StorageCompanion {
    private let queue = DispatchQueue(label: "coffer.compaction", qos: .utility)
    private let isScheduled = Atomic(false)

    /// Has the store compacted soon.
    func schedule(_ storage: Storage) {
        guard !isScheduled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        queue.async { [weak storage, weak self] in
            if let storage, !storage.isAboutToClose {
                // What it could not do now stays noted, and is tried again when more has come, or at the next open.
                _ = try? storage.compact(CompactionMonitor(givesWay: true))
            }
            self?.isScheduled.store(false, ordering: .releasing)
        }
    }
}

extension BackgroundCompaction {
    func didCommit(_ commit: Commit?, _ writer: borrowing Writer, in storage: Storage) {
        storage.considerCompaction(writer)
    }
}

extension Storage {
    /// Compacts the store when that gives enough back.
    var backgroundCompaction: BackgroundCompaction { companions[BackgroundCompaction.self] }
}

extension Writer {
    /// Notes what a compaction would give back of a revision that gets a child.
    ///
    /// About as much as the child holds: a look at the parent would cost more than it is worth.
    func noteReplaced(_ sequence: SequenceNumber, by revision: NewRevision) throws(CofferError) {
        var byteCount = revision.content?.body.bytes.count ?? 0
        if revision.isDeletion {
            byteCount += Self.usualByteCount + (try tables.attachments.byteCount(usedBy: sequence))
        }
        state.changes.noteReclaimable(byteCount)
    }

    /// Notes what a compaction would give back of a document that is purged.
    func notePurged(_ row: DocumentRow) throws(CofferError) {
        state.changes.noteReclaimable(Self.usualByteCount + (try tables.attachments.byteCount(usedBy: row.winner)))
    }

    /// What a document holds that nobody has looked at.
    private static let usualByteCount = 500

    /// What could be given back with the transaction under way, if it is much more or much less than what is noted in the
    /// database.
    ///
    /// Called before each commit of an outermost transaction.
    func noteReclaimable() throws(CofferError) {
        let new = state.changes.reclaimableByteCount
        guard new > 0 else { return }
        let installed = installation.files.reduce(0) { $0 + $1.digest.byteCount }
        state.reclaimableByteCount = state.reclaimableByteCount.addingSaturated(new).addingSaturated(installed)
        guard state.reclaimableByteCount >> 20 != state.notedReclaimableByteCount >> 20 else { return }
        try records.compaction.note(reclaimable: state.reclaimableByteCount)
        state.notedReclaimableByteCount = state.reclaimableByteCount
    }

    /// Begins to count again: everything was given back.
    func forgetReclaimable() throws(CofferError) {
        state.reclaimableByteCount = 0
        state.nextCompactionByteCount = 0
        guard try tables.compaction.reclaimable() > 0 else { return state.notedReclaimableByteCount = 0 }
        try change { () throws(CofferError) in try records.compaction.note(reclaimable: 0) }
        state.notedReclaimableByteCount = 0
    }
}
