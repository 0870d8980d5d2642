internal import CofferModel
package import CofferSealing
internal import CofferSQLite
package import CofferVault
internal import Dispatch
internal import Synchronization

/// Copies a database into a file that has another key, or is kept in another way: into that of the store's next generation, by who keeps others from
/// writing, or into that of another store.
package struct DatabaseCopy: Sendable {
    private let source: DatabaseFile
    private let target: DatabaseFile
    private let manifest: Manifest
    private let monitor: WorkMonitor

    /// - Parameter manifest: of the generation that `target` belongs to.
    package init(from source: DatabaseFile, to target: DatabaseFile, _ manifest: Manifest, _ monitor: WorkMonitor) {
        self.source = source
        self.target = target
        self.manifest = manifest
        self.monitor = monitor
    }

    /// Copies everything as it is, while nobody writes.
    ///
    /// - Returns: how many rows each table of the original has.
    package func export(cacheByteCount: Int) throws(CofferError) -> [Int] {
        let counts = Lock<[Int]>([])
        try inParallel { () throws(CofferError) in
            try copyTables(cacheByteCount: cacheByteCount)
        } and: { () throws(CofferError) in
            let found = try countRows()
            counts.withLock { $0 = found }
        }
        return counts.withLock(\.self)
    }

    /// Copies the newest snapshot as it is, whoever writes meanwhile.
    package func exportSnapshot(cacheByteCount: Int) throws(CofferError) {
        try copyTables(cacheByteCount: cacheByteCount)
    }

    private func copyTables(cacheByteCount: Int) throws(CofferError) {
        let tables = Snapshot(try source.connect(.exporting, cacheByteCount: cacheByteCount))
        let (monitor, target) = (monitor, target)
        var reported = 0
        var questions = 0
        try target.begin()
        try tables.connection.export(
            to: target.path, protection: target.pageProtection, cacheByteCount: cacheByteCount
        ) {
            questions += 1
            if questions % 16 == 0 {
                let byteCount = target.byteCount
                monitor.advance(byteCount: byteCount - reported)
                reported = byteCount
            }
            return monitor.goesOn
        } check: { () throws(CofferError) in
            try tables.confirmReads()
        }
    }

    /// Drops from the copy what a compaction of the original would drop, and who the original is to others.
    package func makeBackup() throws(CofferError) {
        let connection = try target.connect(.create, cacheByteCount: 8 << 20)
        defer { try? connection.close() }
        connection.ask { [monitor] in monitor.goesOn }
        try connection.execute(
            """
            PRAGMA journal_mode = OFF;
            BEGIN;
            UPDATE revisions SET body = NULL, digest = NULL
                WHERE body IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM documents AS d WHERE d.id = revisions.id AND d.winner = revisions.sequence)
                AND NOT EXISTS (
                    SELECT 1 FROM leaves AS l
                    WHERE l.document = revisions.document AND l.sequence = revisions.sequence);
            DELETE FROM attachment_uses
                WHERE EXISTS (
                    SELECT 1 FROM revisions AS r WHERE r.sequence = attachment_uses.revision AND r.body IS NULL);
            DELETE FROM attachments
                WHERE NOT EXISTS (SELECT 1 FROM attachment_uses AS u WHERE u.attachment = attachments.number);
            DELETE FROM info WHERE key = 'compacted' OR key = 'reclaimable';
            """)
        try DatabaseIdentity.remove(from: connection)
        try connection.execute("COMMIT; PRAGMA incremental_vacuum")
        try connection.close()
    }

    /// The copy, for reading while it is being made.
    package func open() throws(CofferError) -> Snapshot {
        try target.openSnapshot(.immutable, cacheByteCount: 1 << 20)
    }

    /// Makes the copy the next generation's: its binding, and the headers of its own content files. Closes it complete, with
    /// nothing beside it.
    ///
    /// - Parameters:
    ///   - labels: what the next generation's keys are called; nil where its keys and its master key are those of the one
    ///     before.
    ///   - header: what a content's row should hold of its file.
    /// - Returns: how many contents there are.
    package func finish(
        _ labels: [(slot: KeySlot.ID, label: String)]?, header: (AttachmentRow) throws(CofferError) -> [UInt8]
    ) throws(CofferError) -> ContentSum {
        let connection = try target.connect(.create, cacheByteCount: 8 << 20)
        defer { try? connection.close() }
        try connection.execute("PRAGMA journal_mode = OFF; BEGIN")
        let contents = try updateHeaders(in: connection, header)
        try Binding(manifest).update(in: connection)
        if let labels {
            try KeyLabels.replaceAll(in: connection, with: labels)
            try FirstKeys.note(manifest, in: connection)
        }
        try connection.execute(Schema.versionStatement)
        try connection.execute(IndexSchema.forgettingAbandonment)
        try connection.execute("COMMIT")
        try connection.switchToWriteAheadLog()
        try connection.close()
        return contents
    }

    private func updateHeaders(
        in connection: borrowing Connection, _ header: (AttachmentRow) throws(CofferError) -> [UInt8]
    ) throws(CofferError) -> ContentSum {
        let update = Statement(connection, "UPDATE attachments SET header = ?2 WHERE number = ?1")
        var sum = ContentSum()
        try AttachmentTables(connection).forEachContent { (row) throws(CofferError) in
            try update.bind(1, row.number)
            try update.bind(2, try header(row))
            try update.run()
            sum.count += 1
            sum.byteCount += row.byteCount
            try monitor.checkCancelled()
        }
        return sum
    }

    private func countRows() throws(CofferError) -> [Int] {
        let tables = Snapshot(try source.connect(.readOnly, cacheByteCount: 8 << 20))
        tables.connection.ask { [monitor] in monitor.goesOn }
        try tables.connection.execute("BEGIN")
        let counts = try CopyCheck.rowCounts(in: tables.connection)
        try tables.confirmReads()
        return counts
    }

    /// Opens the copy as anybody will who has only its key, and reads all of it.
    ///
    /// - Parameter rowCounts: of the original's tables; nil if the copy has others.
    /// - Returns: how many documents there are, not counting deleted ones.
    /// - Throws: `damaged` (500), naming a document whose body is not what its digest says.
    package func verify(rowCounts: [Int]?, binding: Binding? = nil) throws(CofferError) -> Int {
        let check = CopyCheck(target, monitor)
        let documentCount = Lock(0)
        try inParallel { () throws(CofferError) in
            try check.checkTrees()
        } and: { () throws(CofferError) in
            let count = try check.checkRows(rowCounts, binding ?? Binding(manifest))
            documentCount.withLock { $0 = count }
        }
        return documentCount.withLock(\.self)
    }

    /// Runs both at once, each with connections of its own.
    private func inParallel(
        _ first: @Sendable () throws(CofferError) -> Void, and second: @Sendable () throws(CofferError) -> Void
    ) throws(CofferError) {
        let failure = Lock<CofferError?>(nil)
        DispatchQueue.concurrentPerform(iterations: 2) { index in
            do throws(CofferError) {
                if index == 0 { try first() } else { try second() }
            } catch {
                failure.withLock { $0 = $0 ?? error }
            }
        }
        if let failure = failure.withLock(\.self) { throw failure }
    }
}
