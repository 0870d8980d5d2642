package import CofferSealing

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
