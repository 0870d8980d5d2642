package import CofferSealing
internal import CofferSQLite
package import CofferVault
internal import Foundation

/// The database file of a generation, and the files that SQLite keeps beside it.
///
/// Whoever has it, or a copy, or a connection that it made, keeps the opened pages of a sealed file in memory.
package struct DatabaseFile: Sendable {
    package let path: String
    package let subject: String
    package let protection: DatabaseProtection
    /// What all connections to a sealed file share.
    private let pages: SealedPages?

    /// A file that isn't encrypted, or of which nobody but the length is asked.
    package init(path: String, subject: String) {
        self.path = path
        self.subject = subject
        protection = .none
        pages = nil
    }

    /// - Parameter sharedByteCount: how many bytes of opened pages all connections may keep together, where pages are sealed;
    ///   what each keeps is beside that.
    /// - Throws: `encryptionUnavailable` (501).
    package init(
        path: String, subject: String, protection: DatabaseProtection, sharedByteCount: Int = 8 << 20
    ) throws(CofferError) {
        self.path = path
        self.subject = subject
        self.protection = protection
        switch protection {
        case .none, .sqlCipher: pages = nil
        case .sealed(let key, let binding):
            pages = try SealedPages(
                path: path, subject: subject, key: key, binding: binding, cacheByteCount: sharedByteCount)
        }
    }

    /// As ``DatabaseProtection``, for a connection.
    var pageProtection: PageProtection {
        if let pages { return .sealed(pages) }
        switch protection {
        case .sqlCipher(let key): return .sqlCipher(key, .portable)
        case .none, .sealed: return .none
        }
    }

    /// - Throws: `damaged` (500) for a file without bytes, which SQLite would take for a new database, and remove the log
    ///   beside it.
    func connect(_ access: Connection.Access, cacheByteCount: Int) throws(CofferError) -> sending Connection {
        if access != .create, byteCount(of: path) == 0 {
            throw CofferError(.damaged, of: subject, "its database file is empty")
        }
        return try Connection(
            path: path, subject: subject, access: access, protection: pageProtection, cacheByteCount: cacheByteCount)
    }

    /// Makes an empty file one that a connection for ``Connection/Access/create``, or a copy, can fill.
    func begin() throws(CofferError) { try pages?.writeEmptyDatabase() }

    /// Whether connections share a cache.
    package var hasSharedCache: Bool { pages != nil }

    /// Limits the cache that connections share, if they do.
    package func setSharedCache(byteCount: Int) { pages?.setCache(byteCount: byteCount) }

    /// The bytes of the cache that connections share, now.
    package var sharedCacheUse: Int { pages?.cachedByteCount ?? 0 }

    /// Whether SQLite keeps an index of the log in a file beside it. That of sealed pages is in the memory of the process.
    private var keepsLogIndex: Bool { pages == nil }

    /// The length of the file, 0 when there isn't one.
    package var byteCount: Int { byteCount(of: path) ?? 0 }

    /// The length of the write-ahead log, 0 when there isn't one, or an emptied one.
    package var logByteCount: Int {
        guard let byteCount = byteCount(of: path + "-wal"), byteCount > 0 else { return 0 }
        return isLogEmptied ? 0 : byteCount
    }

    /// Whether a checkpoint emptied the log and kept its length.
    private var isLogEmptied: Bool {
        guard let log = FileHandle(forReadingAtPath: path + "-wal") else { return false }
        defer { try? log.close() }
        let header = try? log.read(upToCount: Connection.emptiedLogHeader.count)
        return header?.elementsEqual(Connection.emptiedLogHeader) == true
    }

    /// Whether the log's index is there. SQLite makes one for every connection that reads through a log.
    package var hasLogIndex: Bool { keepsLogIndex && byteCount(of: path + "-shm") != nil }

    /// Whether whoever reads the log makes an index of it, which isn't there yet.
    package var makesLogIndex: Bool { keepsLogIndex && logByteCount > 0 && !hasLogIndex }

    /// Removes a log index that this process made. It holds positions in the log and nothing else.
    package func removeLogIndex() {
        // One that stays is overwritten by whoever opens the store next.
        try? FileManager.default.removeItem(atPath: path + "-shm")
    }

    /// What the file says before anyone may write to it.
    package struct Inspection {
        package var binding: Binding
        package var lastSequence: SequenceNumber
        /// When the first document expires, in milliseconds since 1970; nil when none does.
        package var nextExpiration: Int64?
        /// About how many bytes a compaction would give back.
        package var reclaimable: Int
        /// What a writer begins with.
        package var counts: WriterCounts {
            WriterCounts(
                lastSequence: lastSequence, reclaimableByteCount: reclaimable, notedReclaimableByteCount: reclaimable)
        }
        /// The keys that have a label.
        package var labeledKeys: Set<KeySlot.ID>
    }

    /// Looks into the file through a connection that can't write: see ``inspect(through:)``.
    ///
    /// A connection that can write would copy the log into the file as it closes, even into a damaged one. Leaves every
    /// file as it was; with a log in place, all but its index.
    ///
    /// - Throws: as ``inspect(through:)``; `busy` (503) when the log can't be read for want of an index that can't be made.
    package func inspect() throws(CofferError) -> Inspection {
        let hasLog = logByteCount > 0
        let makesLogIndex = makesLogIndex
        try checkLogReadable()
        defer { if makesLogIndex { removeLogIndex() } }
        return try inspect(
            through: openSnapshot(hasLog ? .throughLog : .immutable, cacheByteCount: 1 << 20))
    }

    /// Looks into the file: whose it is, and whether it is whole where the writer begins.
    ///
    /// - Throws: `damaged` (500), `unsupportedFormat` (501) for a later schema.
    package func inspect(through tables: borrowing Snapshot) throws(CofferError) -> Inspection {
        // In one transaction, since each that begins takes locks and looks whether the file was changed.
        try tables.read { (tables) throws(CofferError) in try inspection(through: tables) }
    }

    private func inspection(through tables: borrowing Snapshot) throws(CofferError) -> Inspection {
        try checkSchema(through: tables.connection)
        let binding = try Binding.read(from: tables.connection)
        let version = try Statement(tables.connection, "PRAGMA user_version").first { $0.integer(0) } ?? 0
        guard version == Schema.version else {
            throw CofferError(
                version > Schema.version ? .unsupportedFormat : .damaged, of: subject,
                "the database has schema version \(version)")
        }
        let lastSequence = try tables.lastSequence()
        let nextExpiration = try tables.expirations.next()
        let reclaimable = try tables.compaction.reclaimable()
        let labeledKeys = try Set(KeyLabels.read(from: tables.connection).keys)
        return Inspection(
            binding: binding, lastSequence: lastSequence, nextExpiration: nextExpiration, reclaimable: reclaimable,
            labeledKeys: labeledKeys)
    }

    /// Looks, before any other statement runs, whether there are only tables and their indexes. Views, triggers and virtual
    /// tables would run what their maker wrote, and where nothing is encrypted, anybody can have made them.
    ///
    /// - Throws: `damaged` (500).
    func checkSchema(through connection: borrowing Connection) throws(CofferError) {
        guard !protection.isEncrypted else { return }
        // As SQLite writes it, whoever made the table.
        let others = Statement(
            connection,
            """
            SELECT 1 FROM sqlite_master WHERE type NOT IN ('table', 'index') OR NOT coalesce(sql GLOB 'CREATE TABLE *'
                OR sql GLOB 'CREATE INDEX *' OR sql GLOB 'CREATE UNIQUE INDEX *', 1) LIMIT 1
            """)
        defer { others.finalize() }
        guard try others.first({ _ in true }) == nil else {
            throw CofferError(
                .damaged, of: subject, "the database has triggers or views of SQLite's, which no store has")
        }
    }

    /// - Throws: `busy` (503) when there is a log, and it can't be read for want of an index that can't be made.
    package func checkLogReadable() throws(CofferError) {
        guard keepsLogIndex, logByteCount > 0 else { return }
        guard FileStatus.isWritable(path: hasLogIndex ? path + "-shm" : directory) else {
            throw CofferError(
                .busy, of: subject, "its write-ahead log must be read first, and the directory can't be written")
        }
    }

    /// - Throws: `readOnly` (403) where the file or its directory can't be written. SQLite would open it for reading then.
    package func checkWritable() throws(CofferError) {
        guard isWritable else {
            throw CofferError(.readOnly, of: subject, "its file or directory can't be written")
        }
    }

    private var isWritable: Bool { FileStatus.isWritable(path: path) && FileStatus.isWritable(path: directory) }

    /// Whether a connection that can write may be the first that looks into the file: with no log beside it, there is
    /// nothing that it could copy into a damaged one as it closes.
    package var canBeInspectedByWriter: Bool { logByteCount == 0 && isWritable }

    private var directory: String { String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) }

    private func byteCount(of path: String) -> Int? { FileStatus(path: path)?.byteCount }
}

/// What the pages of a database file are written under, as its store's MANIFEST says.
package enum DatabaseProtection: Sendable {
    /// Nothing: everybody can read and change them.
    case none
    /// SQLCipher's encryption, in the portable profile.
    case sqlCipher(SymmetricKey)
    /// AES-256-GCM a page and frame, bound to its store and generation.
    case sealed(SymmetricKey, SealedPageBinding)

    package init(of manifest: UnlockedManifest) throws(CofferError) {
        guard let key = try manifest.databaseKey() else {
            self = .none
            return
        }
        let said = manifest.manifest
        switch said.databaseProfile {
        case .sqlite, .portableSQLCipher: self = .sqlCipher(key)
        case .sealedPages:
            self = .sealed(
                key,
                SealedPageBinding(
                    storeUUID: said.storeUUID.bytes, generation: said.generation, generationTag: said.generationTag))
        }
    }

    package var isEncrypted: Bool {
        switch self {
        case .none: false
        case .sqlCipher, .sealed: true
        }
    }
}

/// What a writer begins with.
package struct WriterCounts: Sendable {
    /// The highest sequence that is in use.
    package var lastSequence: SequenceNumber
    /// About how many bytes a compaction would give back, and what the database has noted of it.
    package var reclaimableByteCount: Int
    package var notedReclaimableByteCount: Int
    /// How many of these bytes there must be before a compaction is tried again.
    package var nextCompactionByteCount = 0

    package init(
        lastSequence: SequenceNumber, reclaimableByteCount: Int, notedReclaimableByteCount: Int,
        nextCompactionByteCount: Int = 0
    ) {
        self.lastSequence = lastSequence
        self.reclaimableByteCount = reclaimableByteCount
        self.notedReclaimableByteCount = notedReclaimableByteCount
        self.nextCompactionByteCount = nextCompactionByteCount
    }
}
