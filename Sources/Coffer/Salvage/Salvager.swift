internal import CofferModel
internal import CofferSealing
internal import CofferSQLite
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
        let source = try PageSource(fileSystem, generation, key: manifest.key(for: .database))
        try source.readLog(monitor)
        monitor.begin(.database, byteCount: source.byteCount, itemCount: 1)
        let target = DatabaseFile(path: new.databasePath, subject: "the new store", key: new.databaseKey)
        let connection = try target.connect(.create, cacheByteCount: 16 << 20)
        try Schema.build(in: connection, new.manifest)
        try connection.execute("PRAGMA journal_mode = OFF; BEGIN")
        let tables = try SalvageTables(connection)
        defer { try? tables.connection.close() }
        let found = try takeRows(from: source, into: tables)
        try RevisionCheck(tables: tables, protection: source.protection, monitor: monitor).run()
        result.losses += try LossReport(tables: tables).findings()
        try takeContents(source, tables, new.builder)
        try takeExpirations(source, tables)
        // Where no code can be checked, nothing vouches for them.
        if source.protection != .unproven {
            try takeSettings(found.info, tables, new)
            try takeIndexes(found.indexes, tables.connection)
        }
        try noteLastSequence(found.info, tables)
        try count(tables.connection)
        try tables.removeNotes()
        try tables.connection.execute("COMMIT; PRAGMA incremental_vacuum")
        try tables.connection.switchToWriteAheadLog()
        try tables.connection.close()
        try new.builder.synchronizeContents()
        try monitor.checkCancelled()
        // What was made is looked at as by anybody who has only its key.
        result.documentCount = try DatabaseCopy(from: target, to: target, new.manifest, monitor).verify(rowCounts: nil)
        return result
    }

    // MARK: Rows

    private mutating func takeRows(
        from source: PageSource, into tables: SalvageTables
    ) throws(CofferError) -> PageScan.Result {
        var scan = PageScan(source, tables, manifest.manifest.storeUUID, monitor)
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
        let insert = Statement(
            tables.connection,
            """
            INSERT OR IGNORE INTO expirations (id, time)
            SELECT s.id, s.time FROM salvage_expirations AS s JOIN documents AS d ON d.id = s.id
            WHERE ?1 OR EXISTS (
                SELECT 1 FROM salvage_expirations AS t WHERE t.id = s.id AND t.time = s.time AND t.origin <> s.origin)
            ORDER BY s.origin
            """)
        let lost = Statement(
            tables.connection,
            """
            SELECT DISTINCT s.id FROM salvage_expirations AS s JOIN documents AS d ON d.id = s.id
            WHERE NOT EXISTS (SELECT 1 FROM expirations AS e WHERE e.id = s.id)
            """)
        defer {
            insert.finalize()
            lost.finalize()
        }
        try insert.bind(1, source.protection == .codes ? 1 : 0)
        try insert.run()
        while try lost.step() {
            let id = lost.text(0)
            result.losses.append(
                VerificationFinding(
                    .document, "document \(id)", "nothing confirms the time of its expiration", documentID: id)
            )
        }
    }

    /// What `info` had, but for what the new store has another of. Its key has the label of the one that opened the old store.
    private func takeSettings(
        _ info: [String: FoundRow.InfoValue], _ tables: SalvageTables, _ new: NewStore
    ) throws(CofferError) {
        if case .integer(let depth)? = info["depth"], depth > 0 {
            try TreeChanges(tables.connection).note(depth: Int(depth))
        }
        if keepsKey, let old = manifest.openedSlot, let slot = new.manifest.slots.first?.id,
            case .text(let label)? = info[KeyLabels.key(of: old)], (try? KeyLabels.checked(label)) != nil
        {
            try KeyLabels.insert(label, of: slot, in: tables.connection)
        }
    }

    /// Views and declared indexes, without entries, as after an opening that finds those damaged.
    private func takeIndexes(_ indexes: Set<FoundIndex>, _ connection: borrowing Connection) throws(CofferError) {
        guard !indexes.isEmpty else { return }
        try connection.execute(IndexSchema.creation)
        let changes = IndexChanges(connection)
        var names: Set<[UInt8]> = []
        for index in indexes.sorted(by: { ($0.kind.rawValue, $0.name) < ($1.kind.rawValue, $1.name) })
        where names.insert([UInt8(index.kind.rawValue)] + Array(index.name.utf8)).inserted {
            try changes.insert(index.kind, index.name, definition: index.definition)
        }
    }

    /// Sees that no revision gets a number that another one had.
    private func noteLastSequence(
        _ info: [String: FoundRow.InfoValue], _ tables: SalvageTables
    ) throws(CofferError) {
        var last = try tables.lastNotedSequence()
        if case .integer(let sequence)? = info["last_sequence"], Schema.counts.contains(sequence) {
            last = max(last, sequence)
        }
        let insert = Statement(
            tables.connection, "INSERT OR REPLACE INTO info (key, value) VALUES ('last_sequence', ?1)")
        defer { insert.finalize() }
        try insert.bind(1, last)
        try insert.run()
    }

    private mutating func count(_ connection: borrowing Connection) throws(CofferError) {
        let count = Statement(
            connection,
            """
            SELECT (SELECT count(*) FROM revisions), (SELECT count(*) FROM local_documents),
                (SELECT count(*) FROM attachments WHERE sha256 IS NOT NULL),
                (SELECT sum(length) FROM attachments WHERE sha256 IS NOT NULL)
            """)
        defer { count.finalize() }
        guard try count.step() else { return }
        result.revisionCount = Int(count.integer(0))
        result.localDocumentCount = Int(count.integer(1))
        result.attachmentCount = Int(count.integer(2))
        result.attachmentByteCount = Int(count.integer(3))
    }
}
