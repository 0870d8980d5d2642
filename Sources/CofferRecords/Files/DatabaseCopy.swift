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
            try copyTables(cacheByteCount: cacheByteCount) { _ in }
        } and: { () throws(CofferError) in
            let found = try countRows()
            counts.withLock { $0 = found }
        }
        return counts.withLock(\.self)
    }

    /// Copies the newest snapshot as it is, whoever writes meanwhile.
    ///
    /// - Returns: how many rows each table of the snapshot has.
    package func exportSnapshot(cacheByteCount: Int) throws(CofferError) -> [Int] {
        var counts: [Int] = []
        try copyTables(cacheByteCount: cacheByteCount) { (connection) throws(CofferError) in
            counts = try rowCounts(in: connection)
        }
        return counts
    }

    /// - Parameter body: run in the snapshot that was copied.
    private func copyTables(
        cacheByteCount: Int, _ body: (borrowing Connection) throws(CofferError) -> Void
    ) throws(CofferError) {
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
            try body(tables.connection)
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
        let counts = try rowCounts(in: tables.connection)
        try tables.confirmReads()
        return counts
    }

    private func rowCounts(in connection: borrowing Connection) throws(CofferError) -> [Int] {
        var counts: [Int] = []
        for table in Schema.tables { counts.append(try rowCount(table.count, in: connection)) }
        return try counts + indexRowCounts(in: connection)
    }

    /// How many rows each table of ``IndexSchema`` has; 0 where there aren't any.
    private func indexRowCounts(in connection: borrowing Connection) throws(CofferError) -> [Int] {
        guard try IndexTables(connection).areUsable() else { return IndexSchema.counts.map { _ in 0 } }
        return try IndexSchema.counts.map { (count) throws(CofferError) in try rowCount(count, in: connection) }
    }

    private func rowCount(_ count: StaticString, in connection: borrowing Connection) throws(CofferError) -> Int {
        let count = Statement(connection, count)
        defer { count.finalize() }
        return try count.first { Int($0.integer(0)) } ?? 0
    }

    /// Opens the copy as anybody will who has only its key, and reads all of it.
    ///
    /// - Parameter rowCounts: of the original's tables; nil if the copy has others.
    /// - Returns: how many documents there are, not counting deleted ones.
    /// - Throws: `damaged` (500), naming a document whose body is not what its digest says.
    package func verify(rowCounts: [Int]?, binding: Binding? = nil) throws(CofferError) -> Int {
        // Both read every page, and each keeps a core busy.
        let documentCount = Lock(0)
        try inParallel { () throws(CofferError) in
            try checkStructure()
        } and: { () throws(CofferError) in
            let count = try checkContent(rowCounts, binding ?? Binding(manifest))
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

    private func checkStructure() throws(CofferError) {
        let connection = try target.connect(.immutable, cacheByteCount: 8 << 20)
        defer { try? connection.close() }
        connection.ask { [monitor] in monitor.goesOn }
        let check = Statement(connection, "PRAGMA integrity_check(1)")
        guard try check.step(), check.text(0) == "ok" else {
            // An interrupted check can end with a complaint, too.
            try monitor.checkCancelled()
            throw CofferError(.damaged, of: target.subject, "a copy of the database is not well formed")
        }
        check.finalize()
    }

    private func checkContent(_ rowCounts: [Int]?, _ binding: Binding) throws(CofferError) -> Int {
        let tables = Snapshot(try target.connect(.immutable, cacheByteCount: 8 << 20))
        guard try Binding.read(from: tables.connection) == binding else {
            throw CofferError(.damaged, of: target.subject, "a copy of the database names another store")
        }
        for (place, table) in Schema.tables.enumerated() {
            let count: Int
            if let bodies = table.bodies {
                count = try checkBodies(bodies, in: tables.connection)
            } else {
                count = try self.rowCount(table.count, in: tables.connection)
            }
            guard rowCounts == nil || count == rowCounts?[place] else {
                throw CofferError(.damaged, of: target.subject, "a copy of the database has other rows")
            }
            try monitor.checkCancelled()
        }
        let indexCounts = try indexRowCounts(in: tables.connection)
        guard rowCounts.map({ indexCounts[...] == $0.suffix(indexCounts.count) }) ?? true else {
            throw CofferError(.damaged, of: target.subject, "a copy of the database has other entries of indexes")
        }
        if try tables.indexes.areUsable() { try tables.indexes.readEverything() }
        let count = try tables.documentCount()
        try tables.confirmReads()
        return count
    }

    /// - Returns: how many rows there are, with or without a body.
    private func checkBodies(_ bodies: StaticString, in connection: borrowing Connection) throws(CofferError) -> Int {
        let bodies = Statement(connection, bodies)
        defer { bodies.finalize() }
        var count = 0
        while try bodies.step() {
            count += 1
            guard !bodies.isNull(1) else { continue }
            guard try BodyDigest.matches(bodies.isNull(0) ? nil : bodies.bytes(0), of: bodies.bytes(1)) else {
                throw CofferError(
                    .damaged, of: "document \(bodies.text(2)) of \(target.subject)", "its body is not what was written")
            }
            try monitor.checkCancelled()
        }
        return count
    }
}
