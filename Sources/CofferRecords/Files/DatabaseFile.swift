package import CofferSealing
internal import CofferSQLite
package import CofferVault
internal import Foundation

/// The database file of a generation, and the files that SQLite keeps beside it.
package struct DatabaseFile: Sendable {
    package var path: String
    package var subject: String
    package var key: SymmetricKey?

    package init(path: String, subject: String, key: SymmetricKey? = nil) {
        self.path = path
        self.subject = subject
        self.key = key
    }

    func connect(_ access: Connection.Access, cacheByteCount: Int) throws(CofferError) -> sending Connection {
        try Connection(path: path, subject: subject, access: access, key: key, cacheByteCount: cacheByteCount)
    }

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
    package var hasLogIndex: Bool { byteCount(of: path + "-shm") != nil }

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
        let hadLogIndex = hasLogIndex
        try checkLogReadable()
        defer { if hasLog && !hadLogIndex { removeLogIndex() } }
        return try inspect(
            through: openSnapshot(hasLog ? .throughLog : .immutable, cacheByteCount: 1 << 20))
    }

    /// Looks into the file: whose it is, and whether it is whole where the writer begins.
    ///
    /// - Throws: `damaged` (500), `unsupportedFormat` (501) for a later schema.
    package func inspect(through tables: borrowing Snapshot) throws(CofferError) -> Inspection {
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
        try tables.confirmReads()
        return Inspection(
            binding: binding, lastSequence: lastSequence, nextExpiration: nextExpiration, reclaimable: reclaimable,
            labeledKeys: labeledKeys)
    }

    /// Looks, before any other statement runs, whether there are only tables and their indexes. Views, triggers and virtual
    /// tables would run what their maker wrote, and where nothing is encrypted, anybody can have made them.
    ///
    /// - Throws: `damaged` (500).
    func checkSchema(through connection: borrowing Connection) throws(CofferError) {
        guard key == nil else { return }
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
        guard logByteCount > 0 else { return }
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
