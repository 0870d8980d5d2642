import Testing

@testable import Coffer
@testable import CofferRecords

/// On which pages of a database's file each of its rows is, as read from the file before it is damaged.
struct RowPlaces {
    /// By the document's id: its revisions, with all pages that long ones go on to.
    var revisions: [String: Set<Int>] = [:]
    /// By the revision's sequence number.
    var bySequence: [Int64: Set<Int>] = [:]
    /// By the document's id: its row in the table of documents.
    var documents: [String: Set<Int>] = [:]
    /// By the local document's id.
    var localDocuments: [String: Set<Int>] = [:]
    /// By the local document's id: its entry in the index.
    var localEntries: [String: Set<Int>] = [:]
    /// By the document's id: where the table of expirations has it, and where its index.
    var expirations: [String: (table: Set<Int>, index: Set<Int>)] = [:]
    /// Where it is said which views and indexes there are.
    var indexes: Set<Int> = []
    /// Pages that lead to others.
    var interior: Set<Int> = []
    /// All pages of tables and indexes.
    var trees: Set<Int> = []

    init(_ source: PageSource) throws {
        var reader = RowReader(source)
        for number in 1...UInt32(source.pageCount) {
            guard case let use = try source.use(of: number), use != .map, use != .free,
                let page = try source.page(number), let tree = TreePage(page, number: number)
            else { continue }
            if case .overflow = use { continue }
            trees.insert(Int(number))
            if !tree.kind.isLeaf { interior.insert(Int(number)) }
            for cell in tree.cells {
                guard case .whole(let record) = try reader.row(cell, in: page),
                    let row = try FoundRow(record, rowID: tree.kind.isTable ? cell.rowID : nil)
                else { continue }
                let own = try pages(of: cell, on: number, source)
                switch row {
                case .revision(let revision):
                    revisions[revision.documentID, default: []].formUnion(own)
                    bySequence[cell.rowID] = own
                case .document(let id, _): documents[id, default: []].formUnion(own)
                case .localDocument(let document): localDocuments[document.id] = own
                case .localDocumentID(let id): localEntries[id] = own
                case .expiration(let id, _, let isIndex):
                    var places = expirations[id] ?? ([], [])
                    if isIndex { places.index = own } else { places.table = own }
                    expirations[id] = places
                case .index: indexes.formUnion(own)
                default: break
                }
            }
        }
    }

    private func pages(of cell: TreePage.Cell, on number: UInt32, _ source: PageSource) throws -> Set<Int> {
        var pages: Set = [Int(number)]
        var next = cell.overflow ?? 0
        while next != 0 {
            pages.insert(Int(next))
            next = UInt32(try #require(try source.page(next)).bigEndian(4, at: 0))
        }
        return pages
    }
}
