internal import CofferModel
internal import CofferSealing
internal import CofferSQLite
internal import CofferVault

/// What a compaction removed.
public struct CompactionResult: Sendable, Equatable {
    /// Revisions whose properties were dropped.
    public var revisionCount = 0
    /// Contents of attachments and blobs that no revision uses any more.
    public var attachmentCount = 0
    /// The bytes of these contents.
    public var attachmentByteCount = 0
}

extension Database {
    /// Drops what replaced and deleted revisions keep: their properties, and the contents that no other revision uses.
    ///
    /// Revisions that count, and those in an unresolved conflict with them, keep everything, and so does what a draft has
    /// written and not saved yet; history keeps the ids of all. Content that is being read stays readable to its end. Other
    /// writes wait meanwhile; reads do not.
    ///
    /// - Returns: what was removed.
    /// - Throws: `invalidArgument` (400) inside a transaction; `readOnly` (403), `damaged` and `closed` (500), `busy` (503).
    @discardableResult
    public func compact() throws(CofferError) -> CompactionResult { try storage.compact() }

    /// Drops what replaced and deleted revisions keep: see the form without `async`.
    @discardableResult
    public func compact() async throws -> CompactionResult {
        try await storage.inBackground { [storage] () throws(CofferError) in try storage.compact() }
    }
}

extension Storage {
    func compact() throws(CofferError) -> CompactionResult {
        try maintain { () throws(CofferError) in try compactAlone() }
    }

    private func compactAlone() throws(CofferError) -> CompactionResult {
        try alone { (writer) throws(CofferError) in
            // The commit has to be on the disk before a file goes, whatever other commits promise.
            try writer.connection.execute("PRAGMA synchronous = FULL")
            let (result, kept) = try write(in: writer) { (writer) throws(CofferError) in
                (try Compactor(writer).run(), try writer.tables.attachments.names(by: attachments.naming))
            }
            if settings.durability == .relaxed { try writer.connection.execute("PRAGMA synchronous = NORMAL") }
            // The rows are gone, and nobody can add one before this is done. Also goes what a process left that was killed
            // right here, or whose last commits a power cut took back.
            try attachments.remove(named: attachments.allNames().filter { !kept.contains($0) })
            try writer.connection.execute("PRAGMA incremental_vacuum")
            return result
        }
    }
}

/// The statements of a compaction.
private struct Compactor {
    let writer: Writer

    init(_ writer: Writer) { self.writer = writer }

    func run() throws(CofferError) -> CompactionResult {
        var result = CompactionResult()
        let connection = writer.connection
        try writer.change { () throws(CofferError) in try writer.pruneBranchedDocuments() }
        // All revisions of documents with more than one, but for the leaves. Where a document has one leaf, it is the
        // revision of the latest generation; where it has more, that is one of them. No row has to be read for it.
        try connection.execute(
            """
            CREATE TEMP TABLE IF NOT EXISTS replaced (sequence INTEGER PRIMARY KEY);
            DELETE FROM temp.replaced;
            INSERT OR IGNORE INTO temp.replaced
                SELECT document FROM main.revisions INDEXED BY later_revisions WHERE document <> sequence;
            INSERT OR IGNORE INTO temp.replaced
                SELECT sequence FROM main.revisions INDEXED BY later_revisions WHERE document <> sequence;
            DELETE FROM temp.replaced WHERE sequence IN (SELECT sequence FROM main.leaves);
            DELETE FROM temp.replaced WHERE sequence IN (
                SELECT sequence FROM (
                    SELECT sequence, max(generation) FROM main.revisions INDEXED BY later_revisions
                    WHERE document <> sequence GROUP BY document));
            """)
        try connection.execute(
            "DELETE FROM attachment_uses WHERE revision IN (SELECT sequence FROM temp.replaced)")
        let drop = Statement(
            connection,
            """
            UPDATE revisions SET body = NULL, digest = NULL
            WHERE sequence IN (SELECT sequence FROM temp.replaced) AND body IS NOT NULL
            """)
        defer { drop.finalize() }
        try drop.run()
        result.revisionCount = connection.changedRowCount

        let delete = Statement(connection, "DELETE FROM attachments WHERE number = ?1")
        defer { delete.finalize() }
        for (number, byteCount) in try writer.tables.attachments.unusedAttachments() {
            try delete.bind(1, number)
            try delete.run()
            result.attachmentCount += 1
            result.attachmentByteCount += byteCount
        }
        try connection.execute("DELETE FROM temp.replaced")
        return result
    }
}
