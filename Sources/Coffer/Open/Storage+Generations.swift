internal import CofferSealing
internal import CofferRecords
internal import CofferVault

extension Storage {
    /// The manifest as it is now.
    var manifest: UnlockedManifest { generations.manifest }

    /// Notes that the store has this manifest now, of the same generation.
    func didReplaceManifest(by next: UnlockedManifest) { generations.replaceManifest(by: next) }

    /// The attachment files of the generation that is the store's now.
    var attachments: AttachmentStore { generations.generation.attachments }

    /// The database file of that generation.
    var databaseFile: DatabaseFile { generations.databaseFile }

    var generation: OpenGeneration { generations.generation }

    /// The database file of `files`, which are those of that generation, for reading its bytes.
    func databaseFile(of files: Generation) throws(CofferError) -> File {
        try generation.databaseFile { () throws(CofferError) in
            try settings.fileSystem.openFile(Generation.databaseName, in: files.directory)
        }
    }

    /// Puts `successor` in the place of the generation that was the store's so far, for whoever begins to read or write
    /// from here on. For ``exclusively(_:)``.
    func exchange(with successor: consuming sending Successor, _ manifest: UnlockedManifest, _ database: DatabaseFile) {
        let old = generations.exchange(
            for: Generations.Current(manifest: manifest, generation: successor.generation, databaseFile: database))
        // What was encrypted for it so far is not kept beside it.
        for companion in companions.all { companion.giveUpUnfinished() }
        writer.replace(with: successor.writer)
        old.generation.retire()
        old.databaseFile.setSharedCache(byteCount: 0)
        database.setSharedCache(byteCount: settings.cache.sharedByteCount)
    }

    /// The staged content in the generation that is the store's now.
    func current(_ staged: StagedAttachment) throws(CofferError) -> StagedAttachment {
        try inCurrentGeneration { (attachments) throws(CofferError) in try staged.moved(to: attachments) }
    }

    /// Begins to write content into the store's `incoming/`, beside any transaction.
    func beginStaging() throws(CofferError) -> AttachmentWriter {
        try checkUsable()
        guard !isReadOnly else { throw CofferError(.readOnly, of: subject) }
        return try inCurrentGeneration { (attachments) throws(CofferError) in try attachments.beginStaging() }
    }

    /// Runs `body`, once more if the key was changed just then: a generation that was retired takes nothing any more.
    func inCurrentGeneration<Value>(
        _ body: (AttachmentStore) throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        while true {
            let attachments = attachments
            do throws(CofferError) {
                return try body(attachments)
            } catch  where error.code == .busy && attachments !== self.attachments {}
        }
    }

    /// What reads and writes another generation of the store, opened beside the current one.
    struct Successor: ~Copyable {
        let generation: OpenGeneration
        let writer: Writer
    }

    /// Opens the generation that `manifest` describes, which is not the store's yet.
    func openSuccessor(
        _ manifest: UnlockedManifest, _ database: DatabaseFile, continuing counts: WriterCounts
    ) throws(CofferError) -> sending Successor {
        let records = try database.openChange(settings.cache)
        try records.snapshot.binding().check(against: manifest.manifest, subject: subject)
        let generation = try OpenGeneration(store, manifest, database, .throughLog, clock, settings)
        let next = try generation.writer(records, counts, settings)
        return Successor(generation: generation, writer: next)
    }

    /// Puts a new connection in the place of the writer's, which has met damage and is in no transaction: it may call good
    /// pages bad. For ``exclusively(_:)``.
    func renewWriter() throws(CofferError) {
        // Where this fails, whoever writes next tries again.
        writer.hasMetDamage = true
        let records = try databaseFile.openChange(settings.cache)
        let counts = try lent { (writer) throws(CofferError) in writer.state.counts }
        let successor = try generation.writer(records, counts, settings)
        successor.state.changes.isRecording = areChangesNeeded
        writer.replace(with: successor)
        writer.hasMetDamage = false
    }
}
