internal import CofferModel
package import CofferSealing
internal import CofferSQLite
package import CofferVault

/// Checks that tables and indexes are well formed, that every body is what was written, and that the tables agree. What is
/// damaged gets the name of its document, as far as anything still says it.
package struct DocumentVerification {
    package let snapshots: SnapshotSource
    package let manifest: Manifest
    package let monitor: WorkMonitor

    package init(snapshots: SnapshotSource, manifest: Manifest, monitor: WorkMonitor) {
        self.snapshots = snapshots
        self.manifest = manifest
        self.monitor = monitor
    }

    package struct Result {
        package var documentCount = 0
        package var revisionCount = 0
        package var findings: [Damage] = []
    }

    package func run() throws(CofferError) -> Result {
        var result = Result()
        do throws(CofferError) {
            let tables = try snapshots.open()
            try snapshots.database.checkSchema(through: tables.connection)
            try Binding.read(from: tables.connection).check(against: manifest, subject: snapshots.database.subject)
            try tables.confirmReads()
        } catch  where error.isDamage {
            // Without its first pages, or of another store, there are no tables to look at.
            result.findings.append(
                Damage(
                    .structure, "the database", "it can't be opened: \(error.detail ?? "its first pages are damaged")"))
            return result
        }
        try checkStructure(&result)
        try checkRevisions(&result)
        try checkEntries(&result)
        try checkLocalDocuments(&result)
        try checkContradictions(&result)
        try checkIndexes(&result)
        return result
    }

    /// Runs `body` in a snapshot of its own.
    ///
    /// - Returns: nil when it met damage.
    private func inSnapshot<Value>(
        _ body: (borrowing Snapshot) throws(CofferError) -> Value
    ) throws(CofferError) -> Value? {
        try withoutDamage { () throws(CofferError) in
            let tables = try snapshots.open()
            let value = try body(tables)
            try tables.confirmReads()
            return value
        }
    }

    private func checkStructure(_ result: inout Result) throws(CofferError) {
        var complaints: [String] = []
        let isComplete: Void? = try inSnapshot { (tables) throws(CofferError) in
            let check = Statement(tables.connection, "PRAGMA integrity_check(1000)")
            defer { check.finalize() }
            // Pages of entries that were damaged and rebuilt elsewhere.
            let hasUnusedPages = try tables.indexes.haveAbandonedPages()
            while try check.step() {
                // Of pages and trees SQLite says all in one row, a line each below a title.
                let lines = check.text(0).split(separator: "\n").map(String.init)
                complaints += lines.filter { line in
                    line != "ok" && !(lines.count > 1 && line.hasPrefix("*** in database"))
                        && !(hasUnusedPages && Self.isAboutUnusedPage(line))
                }
            }
        }
        try monitor.checkCancelled()
        result.findings += complaints.map { Damage(.structure, "the database", $0) }
        if isComplete == nil {
            result.findings.append(
                Damage(.structure, "the database", "a table or index can't be read to its end"))
        }
    }

    /// Entries of views and declared indexes can be rebuilt: that they can't be read says no more.
    private func checkIndexes(_ result: inout Result) throws(CofferError) {
        let isWhole: Void? = try inSnapshot { (tables) throws(CofferError) in
            if try tables.indexes.areUsable() { try tables.indexes.readEverything() }
        }
        try monitor.checkCancelled()
        guard isWhole == nil else { return }
        result.findings.append(
            Damage(
                .structure, "the entries of views and indexes",
                "some can't be read; the next use rebuilds them"))
    }

    /// Whether the line says of a page that nothing leads to it, in the words of any version of SQLite.
    private static func isAboutUnusedPage(_ line: String) -> Bool {
        guard line.hasPrefix("Page ") else { return false }
        let rest = line.dropFirst(5).drop(while: \.isNumber)
        return rest == " is never used" || rest == ": never used"
    }

    // MARK: Revisions

    /// A revision that could be read, and what is wrong with its body.
    private struct Row {
        var id: String
        var isIntact: Bool
        var byteCount: Int
    }

    private static let revisions = RowScan(
        rows: """
            SELECT id, digest, body FROM revisions WHERE sequence BETWEEN ?1 AND ?2 ORDER BY sequence
            """,
        next: "SELECT min(sequence) FROM revisions WHERE sequence >= ?1", last: "SELECT max(sequence) FROM revisions")

    private func checkRevisions(_ result: inout Result) throws(CofferError) {
        var lastDamaged: String?
        let unreadable = try Self.revisions.run(monitor, in: snapshots) { (row) throws(CofferError) in
            try Self.row(row)
        } take: { (row) throws(CofferError) in
            result.revisionCount += 1
            monitor.advance(byteCount: row.byteCount)
            if !row.isIntact && lastDamaged != row.id {
                lastDamaged = row.id
                result.findings.append(
                    Damage(
                        .document, "document \(row.id)", "the body of a revision is not what was written",
                        documentID: row.id))
            }
        }
        guard let unreadable else {
            result.findings.append(Damage(.structure, "the table of revisions", "its end can't be read"))
            return
        }
        if !unreadable.isEmpty { try name(unreadable, &result) }
    }

    private static func row(_ row: Statement) throws(CofferError) -> Row {
        let body = row.isNull(2) ? nil : row.bytes(2)
        let digest = row.isNull(1) ? nil : row.bytes(1)
        let isIntact =
            if let body {
                try BodyDigest.matches(digest, of: body) && CanonicalBody.isStored(body)
            } else {
                digest == nil
            }
        return Row(id: row.text(0), isIntact: isIntact, byteCount: body?.count ?? 0)
    }

    /// Says which documents have a revision among those that can't be read, from what else names them: the table of
    /// documents, and the index of later revisions.
    private func name(_ unreadable: [ClosedRange<Int64>], _ result: inout Result) throws(CofferError) {
        let holds = { (sequence: Int64) in unreadable.contains { $0.contains(sequence) } }
        var findings: [Damage] = []
        let isComplete: Void? = try inSnapshot { (tables) throws(CofferError) in
            let documents = Statement(tables.connection, "SELECT id, number, winner FROM documents")
            defer { documents.finalize() }
            let later = Statement(
                tables.connection,
                "SELECT sequence FROM revisions WHERE document = ?1 AND document <> sequence")
            defer { later.finalize() }
            while try documents.step() {
                let id = documents.text(0)
                if holds(documents.integer(2)) {
                    findings.append(
                        Damage(
                            .document, "document \(id)", "its current revision can't be read", documentID: id))
                    continue
                }
                try later.bind(1, documents.integer(1))
                var isDamaged = false
                while try later.step() { isDamaged = isDamaged || holds(later.integer(0)) }
                later.reset()
                if isDamaged {
                    findings.append(
                        Damage(
                            .document, "document \(id)", "an older revision can't be read", documentID: id))
                }
            }
        }
        result.findings += findings
        if isComplete == nil {
            let places = unreadable.map {
                $0.lowerBound == $0.upperBound ? "\($0.lowerBound)" : "\($0.lowerBound) to \($0.upperBound)"
            }
            result.findings.append(
                Damage(
                    .structure, "the table of revisions",
                    "what was saved as number \(places.joined(separator: ", ")) can't be read, and not all of it can be named"
                )
            )
        }
    }

    // MARK: Documents

    private static let ids = RowScan(
        rows: "SELECT id FROM revisions WHERE sequence BETWEEN ?1 AND ?2 ORDER BY sequence",
        next: "SELECT min(sequence) FROM revisions WHERE sequence >= ?1", last: "SELECT max(sequence) FROM revisions")

    /// Where the table of documents can't be read to its end, says which documents it doesn't find any more.
    private func checkEntries(_ result: inout Result) throws(CofferError) {
        let isWhole: Void? = try inSnapshot { (tables) throws(CofferError) in
            let all = Statement(tables.connection, "SELECT id, number, winner, flags FROM documents")
            defer { all.finalize() }
            while try all.step() {}
        }
        if isWhole != nil { return }
        var ids: Set<String> = []
        _ = try Self.ids.run(monitor, in: snapshots) {
            $0.text(0)
        } take: { (id) throws(CofferError) in
            ids.insert(id)
        }
        var tables = try snapshots.open()
        for id in ids.sorted() {
            try monitor.checkCancelled()
            let found: Void? = try withoutDamage { () throws(CofferError) in
                guard let known = try? DocumentID(id), try tables.document(known) != nil else {
                    throw CofferError(.damaged)
                }
                try tables.confirmReads()
            }
            if found != nil { continue }
            tables = try snapshots.open()
            result.findings.append(
                Damage(
                    .document, "document \(id)", "its entry in the table of documents can't be read", documentID: id))
        }
    }

    // MARK: The rest

    private static let localDocuments = RowScan(
        rows: """
            SELECT id, digest, body FROM local_documents WHERE number BETWEEN ?1 AND ?2 ORDER BY number
            """,
        next: "SELECT min(number) FROM local_documents WHERE number >= ?1",
        last: "SELECT max(number) FROM local_documents")

    private func checkLocalDocuments(_ result: inout Result) throws(CofferError) {
        let unreadable = try Self.localDocuments.run(monitor, in: snapshots) { (row) throws(CofferError) in
            try Self.row(row)
        } take: { (row) throws(CofferError) in
            if !row.isIntact {
                result.findings.append(
                    Damage(
                        .document, "document \(row.id)", "its body is not what was written", documentID: row.id))
            }
        }
        if unreadable?.isEmpty != true {
            result.findings.append(
                Damage(.structure, "the table of local documents", "some can't be read"))
        }
    }

    private func checkContradictions(_ result: inout Result) throws(CofferError) {
        let found = try inSnapshot { (tables) throws(CofferError) in
            (try TableMismatch.findings(in: tables.connection), try tables.documentCount())
        }
        try monitor.checkCancelled()
        if let found {
            result.findings += found.0
            result.documentCount = found.1
        } else if result.findings.isEmpty {
            result.findings.append(
                Damage(.structure, "the database", "its tables can't be compared"))
        }
        if !result.findings.isEmpty { result.documentCount = try readableDocumentCount() }
    }

    private static let states = RowScan(
        rows: """
            SELECT id, digest, body, document, flags FROM revisions WHERE sequence BETWEEN ?1 AND ?2 ORDER BY sequence
            """,
        next: "SELECT min(sequence) FROM revisions WHERE sequence >= ?1", last: "SELECT max(sequence) FROM revisions")

    /// How many documents have a revision that is what was written, the last of which is not a deletion: without the tables that
    /// say which revision is the current one.
    private func readableDocumentCount() throws(CofferError) -> Int {
        var isDeletion: [DocumentNumber: Bool] = [:]
        _ = try Self.states.run(monitor, in: snapshots) { (row) throws(CofferError) in
            (
                isIntact: try Self.row(row).isIntact, document: row.number(3) as DocumentNumber,
                isDeletion: row.integer(4) & 1 != 0
            )
        } take: { (row) throws(CofferError) in
            if row.isIntact { isDeletion[row.document] = row.isDeletion }
        }
        return isDeletion.values.count { !$0 }
    }
}
