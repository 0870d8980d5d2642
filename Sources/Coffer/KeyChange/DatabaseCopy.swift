internal import CofferModel
internal import CofferSealing
internal import CofferSQLite
internal import CofferVault
internal import Dispatch
internal import Synchronization

/// Copies the database of one generation into the file of the next, which has another key. For who keeps others from
/// writing.
struct DatabaseCopy {
    private let source: DatabaseFile
    private let target: DatabaseFile
    private let manifest: Manifest
    private let monitor: KeyChangeMonitor

    /// What came of it.
    struct Outcome {
        let oldAttachments: AttachmentStore
        let contents: ContentSum
        let documentCount: Int
        let databaseByteCount: Int
    }

    private static let batchSize = 256

    /// - Parameter manifest: of the generation that `target` belongs to.
    init(from source: DatabaseFile, to target: DatabaseFile, _ manifest: Manifest, _ monitor: KeyChangeMonitor) {
        self.source = source
        self.target = target
        self.manifest = manifest
        self.monitor = monitor
    }

    /// Copies everything as it is.
    func export(cacheByteCount: Int) throws(CofferError) {
        let connection = try source.connect(.exporting, cacheByteCount: cacheByteCount)
        defer { try? connection.close() }
        let tables = DocumentTables(connection)
        let (monitor, target) = (monitor, target)
        var reported = 0
        var questions = 0
        try connection.export(to: target.path, key: target.key, cacheByteCount: cacheByteCount) {
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

    /// Makes the copy the next generation's: its binding, and the headers of its own content files. Closes it complete, with
    /// nothing beside it.
    ///
    /// - Parameter header: what a content's row shall hold of its file.
    /// - Returns: how many contents there are.
    func finish(header: (AttachmentRow) throws(CofferError) -> [UInt8]) throws(CofferError) -> ContentSum {
        let connection = try target.connect(.create, cacheByteCount: 8 << 20)
        defer { try? connection.close() }
        try connection.execute("PRAGMA journal_mode = MEMORY; BEGIN")
        let contents = try updateHeaders(in: connection, header)
        try Binding(manifest).update(in: connection)
        try connection.execute(Schema.versionStatement)
        try connection.execute("COMMIT")
        try connection.switchToWriteAheadLog()
        try connection.close()
        return contents
    }

    private func updateHeaders(
        in connection: Connection, _ header: (AttachmentRow) throws(CofferError) -> [UInt8]
    ) throws(CofferError) -> ContentSum {
        let tables = AttachmentTables(connection)
        let update = Statement(connection, "UPDATE attachments SET header = ?2 WHERE number = ?1")
        var sum = ContentSum()
        var last: Int64 = 0
        while true {
            let rows = try tables.contents(after: last, limit: Self.batchSize)
            guard let end = rows.last?.number else { break }
            for row in rows {
                try update.bind(1, row.number)
                try update.bind(2, try header(row))
                try update.run()
                sum.count += 1
                sum.byteCount += row.byteCount
            }
            try monitor.checkCancelled()
            last = end
        }
        return sum
    }

    /// Opens the copy as anybody will who has only its key, and reads all of it.
    ///
    /// - Returns: how many documents there are, not counting deleted ones.
    /// - Throws: `damaged` (500), naming a document whose body is not what its digest says.
    func verify() throws(CofferError) -> Int {
        let outcomes = Mutex<[Result<Int, CofferError>]>([])
        // Two connections read the same pages, but each check keeps a core busy.
        let checks: [@Sendable () -> Result<Int, CofferError>] = [
            { Result { () throws(CofferError) in try checkStructure() } },
            { Result { () throws(CofferError) in try checkContent() } },
        ]
        DispatchQueue.concurrentPerform(iterations: checks.count) { index in
            let outcome = checks[index]()
            outcomes.withLock { $0.append(outcome) }
        }
        var count = 0
        for outcome in outcomes.withLock(\.self) { count += try outcome.get() }
        return count
    }

    private func checkStructure() throws(CofferError) -> Int {
        let connection = try target.connect(.immutable, cacheByteCount: 8 << 20)
        defer { try? connection.close() }
        connection.ask { [monitor] in monitor.goesOn }
        let check = Statement(connection, "PRAGMA integrity_check(1)")
        guard try check.step(), check.text(0) == "ok" else {
            throw CofferError(.damaged, of: target.subject, "a copy of the database is not well formed")
        }
        check.finalize()
        return 0
    }

    private func checkContent() throws(CofferError) -> Int {
        let copy = try target.connect(.immutable, cacheByteCount: 8 << 20)
        defer { try? copy.close() }
        let original = try source.connect(.readOnly, cacheByteCount: 8 << 20)
        defer { try? original.close() }
        try original.execute("BEGIN")
        guard try Binding.read(from: copy) == Binding(manifest) else {
            throw CofferError(.damaged, of: target.subject, "a copy of the database says another store's name")
        }
        for count in Schema.rowCounts {
            let counts = (
                try Statement(original, count).first { $0.integer(0) },
                try Statement(copy, count).first { $0.integer(0) }
            )
            guard counts.0 == counts.1 else {
                throw CofferError(.damaged, of: target.subject, "a copy of the database has other rows")
            }
            try monitor.checkCancelled()
        }
        for bodies in Schema.longBodies { try checkBodies(bodies, in: copy) }
        let tables = DocumentTables(copy)
        let count = try tables.documentCount()
        try tables.confirmReads()
        try DocumentTables(original).confirmReads()
        return count
    }

    private func checkBodies(_ bodies: StaticString, in connection: Connection) throws(CofferError) {
        let bodies = Statement(connection, bodies)
        defer { bodies.finalize() }
        while try bodies.step() {
            try monitor.checkCancelled()
            guard BodyDigest.matches(bodies.isNull(0) ? nil : bodies.bytes(0), of: bodies.bytes(1)) else {
                throw CofferError(
                    .damaged, of: "document \(bodies.text(2)) of \(target.subject)", "its body is not what was written")
            }
        }
    }
}
