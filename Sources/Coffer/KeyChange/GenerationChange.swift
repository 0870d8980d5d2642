internal import CofferSealing
internal import CofferRecords
internal import CofferVault

/// One change of all of a store's files, by whoever holds the right to change the store as a whole: to another key, or to
/// another way of keeping the database.
///
/// The store's next generation is built beside the current one: contents first, while others write; then, while they wait,
/// the database. It becomes the store's with the rename of MANIFEST, which is the only thing about it that cannot be taken
/// back. docs/DURABILITY.md has the order of syncs and why each is there.
struct GenerationChange {
    private let storage: Storage
    private let new: UnlockedManifest
    private let labels: [(slot: KeySlot.ID, label: String)]?
    private let manifestAfterwards: UnlockedManifest
    private let monitor: CopyMonitor

    /// What was made, and what is left of the generation before.
    struct Outcome {
        let contents: ContentSum
        let documentCount: Int
        let databaseByteCount: Int
        let oldGenerationIsGone: Bool
        let oldGenerations: [OldGeneration]
    }

    /// - Parameters:
    ///   - new: the next generation's.
    ///   - labels: what its keys are called; nil if all keys and the master key stay.
    ///   - manifestAfterwards: the next one as whoever opened the database has it.
    init(
        _ storage: Storage, to new: UnlockedManifest, _ labels: [(slot: KeySlot.ID, label: String)]?,
        afterwards manifestAfterwards: UnlockedManifest, _ monitor: CopyMonitor
    ) {
        self.storage = storage
        self.new = new
        self.labels = labels
        self.manifestAfterwards = manifestAfterwards
        self.monitor = monitor
    }

    func run() throws(CofferError) -> Outcome {
        try DatabaseLibrary.require(for: new.manifest.databaseProfile)
        try monitor.checkCancelled()
        let needed = try checkSpace()

        let next = try storage.store.beginNextGeneration(new)
        let copy: CopyOutcome
        var isUncertain = false
        do throws(CofferError) {
            monitor.begin(.attachments, byteCount: needed.contents.byteCount, itemCount: needed.contents.count)
            try ContentCopying(storage, next, monitor).run()
            try next.synchronizeContents()
            monitor.begin(.database, byteCount: needed.databaseByteCount, itemCount: 1)
            copy = try storage.exclusively { () throws(CofferError) in
                try copyDatabase(into: next, &isUncertain)
            }
        } catch {
            if !isUncertain { storage.store.abandon(next) }
            throw error
        }
        // Nothing that was opened in it is held here any more.
        let isGone = copy.oldAttachments.retire()
        return Outcome(
            contents: copy.contents, documentCount: copy.documentCount, databaseByteCount: copy.databaseByteCount,
            oldGenerationIsGone: isGone,
            // The change is made: what can't be listed now is not a failure of it.
            oldGenerations: (try? storage.oldGenerations) ?? [])
    }

    /// - Throws: `noSpace` (507) unless another copy of everything fits beside the first.
    private func checkSpace() throws(CofferError) -> (contents: ContentSum, databaseByteCount: Int) {
        let contents = try storage.readCommitted { (tables) throws(CofferError) in try tables.attachments.contentSum() }
        let file = storage.databaseFile
        let databaseByteCount = file.byteCount + file.logByteCount
        // Each content has a header and tags, and each file its own last block.
        let needed = contents.byteCount + contents.byteCount / 1000 + contents.count * 8192 + databaseByteCount + 65536
        let free = try storage.store.freeByteCount()
        guard free >= needed else {
            throw CofferError(.noSpace, "\(needed) bytes are needed for a second copy, and \(free) are free")
        }
        return (contents, databaseByteCount)
    }

    // MARK: While others wait to write

    private func copyDatabase(
        into next: GenerationBuilder, _ isUncertain: inout Bool
    ) throws(CofferError) -> CopyOutcome {
        // As much as the export has beside it, until the file takes the place of the other.
        let target = try DatabaseFile(
            path: next.databasePath, subject: storage.subject, protection: DatabaseProtection(of: next.manifest),
            sharedByteCount: storage.settings.cache.byteCount / 4)
        let copy = DatabaseCopy(from: storage.databaseFile, to: target, next.manifest.manifest, monitor.work)
        let rowCounts = try copy.export(cacheByteCount: storage.settings.cache.byteCount / 4)
        let late = ContentCopying(storage, next, monitor)
        let contents = try copy.finish(labels) { (row) throws(CofferError) in try late.header(for: row) }
        // Only read from here on.
        next.beginSynchronizingDatabase()
        let documentCount = try copy.verify(rowCounts: rowCounts)
        try next.seal()

        let successor = try storage.openSuccessor(
            next.manifest, target, continuing: storage.lent { (writer) throws(CofferError) in writer.state.counts })
        do throws(CofferError) {
            try monitor.checkCancelled()
            try storage.store.commit(next)
        } catch {
            if error.code == .reopenRequired {
                isUncertain = true
                storage.refuseMoreWork()
            }
            throw error
        }
        let oldAttachments = storage.attachments
        storage.exchange(with: successor, manifestAfterwards, target)
        monitor.complete()
        return CopyOutcome(
            oldAttachments: oldAttachments, contents: contents, documentCount: documentCount,
            databaseByteCount: target.byteCount)
    }
}

/// What came of copying the database.
private struct CopyOutcome {
    let oldAttachments: AttachmentStore
    let contents: ContentSum
    let documentCount: Int
    let databaseByteCount: Int
}
