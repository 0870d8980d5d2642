internal import CofferModel
internal import CofferSealing
internal import CofferRecords
internal import CofferVault

/// Takes from a damaged store what can still be read, and makes the database of a new one of it.
struct Salvager {
    private let store: LockedStore
    private let manifest: UnlockedManifest
    private let generation: Generation
    private let fileSystem: any FileSystem
    private let monitor: CopyMonitor
    /// Whether the new store opens with the key that opened the old one.
    private let keepsKey: Bool
    private var result = Salvage()

    init(
        _ store: LockedStore, _ manifest: UnlockedManifest, keepsKey: Bool, _ fileSystem: any FileSystem,
        _ monitor: CopyMonitor
    ) throws(CofferError) {
        self.store = store
        self.manifest = manifest
        self.fileSystem = fileSystem
        self.monitor = monitor
        self.keepsKey = keepsKey
        generation = try store.remains(of: manifest)
    }

    /// Fills a new store.
    ///
    /// - Throws: `damaged` (500) for another store's database; `cancelled` (499), `noSpace` (507), `ioFailed` (500).
    mutating func fill(_ new: NewStore) throws(CofferError) -> Salvage {
        let source = try PageSource(fileSystem, generation, DatabaseProtection(of: manifest))
        try source.readLog(monitor.work)
        monitor.begin(.database, byteCount: source.byteCount, itemCount: 1)
        let target = try DatabaseFile(
            path: new.databasePath, subject: "the new store", protection: DatabaseProtection(of: new.unlocked))
        let tables = try SalvageTables(in: target, new.manifest)
        defer { try? tables.close() }
        let found = try takeRows(from: source, into: tables)
        try RevisionCheck(tables: tables, protection: source.protection, monitor: monitor).run()
        result.losses += try LossReport(tables: tables).findings().map(VerificationFinding.init)
        try takeContents(source, tables, new.builder)
        try takeExpirations(source, tables)
        // Where no code can be checked, nothing vouches for them.
        if source.protection != .unproven {
            try takeSettings(found.info, tables, new)
            try tables.insertIndexes(found.indexes)
        }
        try noteLastSequence(found.info, tables)
        let counts = try tables.counts()
        result.revisionCount = counts.revisions
        result.localDocumentCount = counts.localDocuments
        result.attachmentCount = counts.contents.count
        result.attachmentByteCount = counts.contents.byteCount
        try tables.finish()
        try new.builder.synchronizeContents()
        try monitor.checkCancelled()
        // What was made is looked at as by anybody who has only its key.
        result.documentCount = try DatabaseCopy(from: target, to: target, new.manifest, monitor.work).verify(
            rowCounts: nil)
        return result
    }

    // MARK: Rows

    private mutating func takeRows(
        from source: PageSource, into tables: SalvageTables
    ) throws(CofferError) -> PageScan.Result {
        var scan = PageScan(source, tables, manifest.manifest.storeUUID, monitor.work)
        try scan.run()
        if scan.result.isAnotherStores {
            throw CofferError(.damaged, "its database belongs to another store, so nothing was salvaged from it")
        }
        try report(source, scan.result)
        return scan.result
    }

    /// Says which pages are damaged, and whether rows may be lost with them.
    private mutating func report(_ source: PageSource, _ found: PageScan.Result) throws(CofferError) {
        let name = Generation.databaseName
        if !source.hasFile {
            result.losses.append(VerificationFinding(.structure, name, "it is missing or empty"))
        } else if source.protection == .unproven {
            result.losses.append(
                VerificationFinding(
                    .page, "page 1 of \(name)",
                    "the salt in its first 16 bytes is lost, so no page's MAC can be checked: the salvage keeps only what other "
                        + "rows, or a digest, confirm", page: 1))
        } else if source.isSaltLost {
            result.harmless.append(
                VerificationFinding(
                    .page, "page 1 of \(name)", "the salt in its first 16 bytes doesn't match its pages", page: 1))
        }
        if source.missingPageCount > 0 {
            let (first, last) = (source.pageCount + 1, source.pageCount + source.missingPageCount)
            result.losses.append(
                VerificationFinding(.structure, "pages \(first) to \(last) of \(name)", "the file ends before them"))
        }
        if source.lostFrameCount > 0 {
            result.losses.append(
                VerificationFinding(
                    .structure, WriteAheadLog.name,
                    "\(source.lostFrameCount) of its pages are damaged; the ones after them were still read"))
        }
        let lost = Set(try PageRoles(source, roots: found.roots, damaged: found.damaged).withLosses(found.damaged))
        for page in found.damaged where !(page == 1 && source.protection == .unproven) {
            let isLost = lost.contains(page)
            let fault = try source.isZero(page) ? "it is all zeros" : "it can't be read"
            let finding = VerificationFinding(
                .page, "page \(page) of \(name)",
                "\(fault), and \(isLost ? "rows may be" : "nothing is") lost with it", page: Int(page))
            if isLost { result.losses.append(finding) } else { result.harmless.append(finding) }
        }
    }

    // MARK: Contents

    private mutating func takeContents(
        _ source: PageSource, _ tables: SalvageTables, _ builder: GenerationBuilder
    ) throws(CofferError) {
        let contents = ContentSalvage(
            tables: tables, attachments: try AttachmentStore.remains(in: store, manifest, generation),
            protection: source.protection, builder: builder, monitor: monitor)
        let areRowsLost = !result.losses.isEmpty
        result.losses += try contents.copyUsed()
        // Of a database from which nothing is lost, a content that nobody names is one that nobody needs.
        guard areRowsLost else { return }
        let foundlings = try contents.adoptFoundlings()
        result.losses += foundlings.lost
        result.losses += foundlings.documents.map { id in
            VerificationFinding(
                .document, "document \(id)", "it is new, and has the attachments whose documents are lost",
                documentID: id)
        }
    }

    // MARK: The rest

    /// A wrong time would purge a document: where no code vouches for it, the table and its index must say the same.
    private mutating func takeExpirations(_ source: PageSource, _ tables: SalvageTables) throws(CofferError) {
        result.losses += try tables.takeExpirations(areProven: source.protection == .codes).map { id in
            VerificationFinding(
                .document, "document \(id)", "nothing confirms the time of its expiration", documentID: id)
        }
    }

    /// What `info` had, but for what the new store has another of. Its key has the label of the one that opened the old store.
    private func takeSettings(
        _ info: [String: FoundRow.InfoValue], _ tables: SalvageTables, _ new: NewStore
    ) throws(CofferError) {
        if case .integer(let depth)? = info["depth"], depth > 0 {
            try tables.treeChanges.note(depth: Int(depth))
        }
        if keepsKey, let old = manifest.openedSlot, let slot = new.manifest.slots.first?.id,
            case .text(let label)? = info[KeyLabels.key(of: old)], (try? KeyLabels.checked(label)) != nil
        {
            try tables.insertLabel(label, of: slot)
        }
    }

    /// Sees that no revision gets a number that another one had.
    private func noteLastSequence(
        _ info: [String: FoundRow.InfoValue], _ tables: SalvageTables
    ) throws(CofferError) {
        var last = try tables.lastNotedSequence()
        if case .integer(let sequence)? = info["last_sequence"], Schema.counts.contains(sequence) {
            last = max(last, SequenceNumber(sequence))
        }
        try tables.keep(last)
    }
}
