internal import CofferModel
package import CofferSealing
internal import CofferSQLite

/// Names what the old database had and the new one has not, from all that still says so.
package struct LossReport {
    package let tables: SalvageTables

    package init(tables: SalvageTables) {
        self.tables = tables
    }

    package func findings() throws(CofferError) -> [Damage] {
        try documents() + currentRevisions() + laterRevisions() + refusedRevisions() + localDocuments()
    }

    /// Documents of which nothing is left.
    private func documents() throws(CofferError) -> [Damage] {
        try rows(
            """
            SELECT DISTINCT id FROM salvage_documents AS s
            WHERE NOT EXISTS (SELECT 1 FROM documents AS d WHERE d.id = s.id)
            """
        ) { .lost($0.text(0), "none of its revisions can be read") }
    }

    /// Documents whose current revision was another one.
    private func currentRevisions() throws(CofferError) -> [Damage] {
        try rows(
            """
            SELECT s.id, s.flags & 1, l.generation, l.suffix
            FROM salvage_documents AS s JOIN documents AS d ON d.id = s.id AND d.number = s.number
            LEFT JOIN salvage_later AS l ON l.sequence = s.winner AND l.document = s.number
            WHERE s.winner <> d.winner
            """
        ) { (row) throws(CofferError) in
            let name = row.isNull(2) ? "" : " \(try row.revisionID(2, sequence: 0, subject: "the index"))"
            let kind = row.integer(1) == 0 ? "current revision" : "deletion"
            return .lost(row.text(0), "its \(kind)\(name) is lost, and an earlier revision in its place")
        }
    }

    /// Other revisions that the index names. One that follows no more from another is among them, if it had no content.
    private func laterRevisions() throws(CofferError) -> [Damage] {
        try rows(
            """
            SELECT g.id, l.generation, l.suffix, l.sequence FROM salvage_later AS l
            LEFT JOIN salvage_groups AS g ON g.number = l.document
            WHERE NOT EXISTS (SELECT 1 FROM revisions AS r WHERE r.sequence = l.sequence)
                AND NOT EXISTS (SELECT 1 FROM salvage_documents AS s WHERE s.winner = l.sequence)
                AND (g.id IS NULL OR EXISTS (SELECT 1 FROM documents AS d WHERE d.id = g.id))
            """
        ) { (row) throws(CofferError) in
            let revision = "revision \(try row.revisionID(1, sequence: row.number(3), subject: "the index"))"
            return row.isNull(0)
                ? Damage(
                    .structure, revision, "it can't be read, and nothing says which document it belongs to")
                : .lost(row.text(0), "\(revision) can't be read")
        }
    }

    /// Revisions that are there, and not what was written.
    private func refusedRevisions() throws(CofferError) -> [Damage] {
        try rows(
            """
            SELECT f.id, f.detail, f.sequence FROM salvage_refused AS f
            WHERE NOT EXISTS (SELECT 1 FROM revisions AS r WHERE r.sequence = f.sequence AND r.body IS NOT NULL)
            """
        ) { row in
            row.isNull(0)
                ? Damage(.structure, "the revision with number \(row.integer(2))", row.text(1))
                : .lost(row.text(0), "a revision was skipped: \(row.text(1))")
        }
    }

    private func localDocuments() throws(CofferError) -> [Damage] {
        try rows(
            """
            SELECT id FROM salvage_locals AS s
            WHERE NOT EXISTS (SELECT 1 FROM local_documents AS l WHERE l.id = s.id)
            """
        ) { .lost($0.text(0), "it can't be read") }
    }

    private func rows(
        _ sql: StaticString, _ finding: (Statement) throws(CofferError) -> Damage
    ) throws(CofferError) -> [Damage] {
        let statement = Statement(tables.connection, sql)
        defer { statement.finalize() }
        return try statement.all(finding)
    }
}

extension Damage {
    fileprivate static func lost(_ id: String, _ detail: String) -> Damage {
        Damage(.document, "document \(id)", detail, documentID: id)
    }
}

/// Tells of damaged pages whether anything is lost with them. Much in a database is there twice: indexes, the tables that
/// follow from that of revisions, and pages that only lead to others.
package struct PageRoles {
    private let source: PageSource
    private let roots: [UInt32: String]
    /// Pages that others are below.
    private var parents: Set<UInt32> = []

    /// What follows from the rows of other tables; and of attachments, from their files.
    private static let derived: Set<String> = [
        "documents", "leaves", "attachments", "attachment_uses", "later_revisions", "uses_of_attachment",
        "sqlite_schema", "index_entries", "entries_by_key", "entries_of_document", "index_debts", "text_documents",
        "text_of_document", "text_lengths", "text_postings",
    ]
    /// Each holds all that the other does.
    private static let twins: Set<String> = ["expirations", "expirations_by_time"]

    /// - Parameter damaged: the pages that are asked about.
    package init(_ source: PageSource, roots: [UInt32: String], damaged: [UInt32]) throws(CofferError) {
        self.source = source
        self.roots = roots
        guard !damaged.isEmpty else { return }
        let asked = Set(damaged)
        for number in 2..<UInt32(clamping: max(2, source.pageCount + 1)) {
            if case .tree(let parent) = try source.use(of: number), asked.contains(parent) { parents.insert(parent) }
        }
    }

    /// Those of `pages` with which rows may be lost, or which nothing says that of.
    package func withLosses(_ pages: [UInt32]) throws(CofferError) -> [UInt32] {
        let names = try pages.map { (page) throws(CofferError) in try name(of: page) }
        let mayLoseTwins = Self.twins.isSubset(of: names.compactMap(\.self))
        var lost: [UInt32] = []
        for (page, name) in zip(pages, names) {
            let use = try source.use(of: page)
            if use == .free || use == .map || parents.contains(page) { continue }
            if let name {
                if Self.derived.contains(name) || name.hasPrefix("sqlite_autoindex_") { continue }
                if Self.twins.contains(name) && !mayLoseTwins { continue }
            }
            lost.append(page)
        }
        return lost
    }

    /// The table or index that the page is a part of; nil if nothing says it any more.
    private func name(of page: UInt32) throws(CofferError) -> String? {
        var page = page
        // A row may have as many pages as its length needs, and a tree is a few levels high.
        for _ in 0..<1 << 15 {
            switch try source.use(of: page) {
            case .root: return roots[page]
            case .tree(let parent), .overflow(let parent): page = parent
            case .free, .map, .unknown: return nil
            }
        }
        return nil
    }
}
