internal import CofferModel
package import CofferSealing
package import CofferVault

/// Goes through all pages of a ``PageSource``, one after another, and hands the rows on them to ``SalvageTables``.
///
/// No page is needed to find another: which rows a page holds shows in the rows. So it makes no difference which pages are
/// damaged, the first or those that lead to others among them, but to the rows that are on these.
package struct PageScan {
    package let source: PageSource
    package let tables: SalvageTables
    package let storeUUID: StoreUUID
    package let monitor: WorkMonitor
    private var reader: RowReader

    /// What is not a row of the new database.
    package struct Result {
        /// Pages that are not what was written.
        package var damaged: [UInt32] = []
        /// Where tables and indexes begin.
        package var roots: [UInt32: String] = [1: "sqlite_schema"]
        /// The rows of `info`, by their keys.
        package var info: [String: FoundRow.InfoValue] = [:]
        /// What views and indexes there are.
        package var indexes: Set<FoundIndex> = []
        /// Whether the database says that it is another store's.
        package var isAnotherStores = false
    }

    package private(set) var result = Result()

    package init(_ source: PageSource, _ tables: SalvageTables, _ storeUUID: StoreUUID, _ monitor: WorkMonitor) {
        self.source = source
        self.tables = tables
        self.storeUUID = storeUUID
        self.monitor = monitor
        reader = RowReader(source)
    }

    package mutating func run() throws(CofferError) {
        let free = try pagesOnFreeLists()
        for number in 1..<UInt32(clamping: source.pageCount + 1) {
            try monitor.checkCancelled()
            if try !scan(number, free, isNewest: true) { result.damaged.append(number) }
            monitor.advance(byteCount: PageSource.pageByteCount)
        }
        // What commits left behind a damaged frame of the log; and where the log's version of a page is damaged, the one
        // before it. Of both only what was not found in its place by now.
        var older: [UInt32: PageSource.Place] = [:]
        for number in result.damaged where source.place(of: number)?.isInLog == true {
            older[number] = source.placeInFile(number)
        }
        for substitutes in [source.late, older] {
            source.substitutes = substitutes
            for number in substitutes.keys.sorted() { _ = try scan(number, free, isNewest: false) }
            source.substitutes = [:]
        }
    }

    /// - Returns: whether the page is what was written, as far as that shows.
    private mutating func scan(_ number: UInt32, _ free: Set<UInt32>, isNewest: Bool) throws(CofferError) -> Bool {
        guard number != PageSource.lockPage else { return true }
        guard let page = try source.page(number) else { return false }
        switch try source.use(of: number) {
        case .map, .free: return true
        case .overflow where source.protection == .codes: return true
        case .root, .tree: break
        // A part of a row begins with a number of a page, which no page of a table does.
        case .overflow, .unknown:
            if free.contains(number) || TreePage(page, number: number) == nil { return true }
        }
        guard let tree = TreePage(page, number: number) else { return false }
        var entries: [FoundRow] = []
        for cell in tree.cells {
            switch try reader.row(cell, in: page) {
            case .whole(let record):
                guard let row = try FoundRow(record, rowID: tree.kind.isTable ? cell.rowID : nil) else { continue }
                if try !add(row, isNewest) { entries.append(row) }
            case .torn(let record):
                guard isNewest, tree.kind == .tableLeaf else { continue }
                try tables.refuse(
                    SequenceNumber(cell.rowID), record?.documentIDOfRevision, "a part of it can't be read")
            }
        }
        try addPairs(entries, isNewest)
        return !tree.hasBrokenCells
    }

    /// - Returns: false for a row of which others on its page say what it is.
    private mutating func add(_ row: FoundRow, _ isNewest: Bool) throws(CofferError) -> Bool {
        switch row {
        case .revision(let revision): try tables.add(revision, isNewest: isNewest)
        case .document(let id, let document): try tables.add(id, document)
        case .laterRevision(let sequence, let document, let id):
            try tables.addLater(sequence, ofDocument: document, id)
        case .attachment(let attachment): try tables.add(attachment)
        case .localDocument(let document):
            try tables.addLocalID(document.id)
            // Nothing but its digest vouches for a body where no page's code does.
            if document.isIntact && (source.protection != .unproven || document.hasDigest) { try tables.add(document) }
        case .localDocumentID(let id): try tables.addLocalID(id)
        case .index(let index):
            if isNewest { result.indexes.insert(index) }
        case .root(let page, let name):
            if let page = UInt32(exactly: page) { result.roots[page] = result.roots[page] ?? name }
        case .info, .expiration: return false
        }
        return true
    }

    /// Takes the rows of a page that are pairs. All of `info` is on one page, and one row of it is like no other table's.
    private mutating func addPairs(_ pairs: [FoundRow], _ isNewest: Bool) throws(CofferError) {
        let owner = pairs.lazy.compactMap { row -> [UInt8]? in
            guard case .info("store", .blob(let bytes)) = row else { return nil }
            return bytes
        }.first
        for pair in pairs {
            switch pair {
            case .info(let key, let value):
                if owner == storeUUID.bytes, result.info[key] == nil { result.info[key] = value }
            case .expiration(let id, let time, let isIndex):
                if owner == nil {
                    try tables.addExpiration(of: id, time, isIndex: isIndex, isNewest: isNewest)
                }
            default: break
            }
        }
        if let owner, owner.count == StoreUUID.byteCount, owner != storeUUID.bytes { result.isAnotherStores = true }
    }

    // MARK: Pages that nobody uses

    /// The pages that lists of free ones name, where a map of pages is lost: elsewhere that says which are free. What was on
    /// them was deleted.
    private func pagesOnFreeLists() throws(CofferError) -> Set<UInt32> {
        var free: Set<UInt32> = []
        var isMapLost = false
        let step = source.usableByteCount / 5 + 1
        for number in stride(from: 3, through: max(3, source.pageCount), by: step) {
            if try source.use(of: UInt32(clamping: number)) == .unknown { isMapLost = true }
        }
        guard isMapLost else { return free }
        for number in 3..<UInt32(clamping: max(3, source.pageCount + 1)) {
            try monitor.checkCancelled()
            let use = try source.use(of: number)
            guard use == .free || use == .unknown, let page = try source.page(number) else { continue }
            free.formUnion(freePages(listedOn: page))
        }
        return free
    }

    /// The pages that a page lists if it is a part of the list of free pages: section 1.5. A page of a table or index begins
    /// otherwise, and one of a long row goes on with its text.
    private func freePages(listedOn page: [UInt8]) -> [UInt32] {
        let count = page.bigEndian(4, at: 4)
        guard page.bigEndian(4, at: 0) <= source.pageCount, (1...page.count / 4 - 2).contains(count) else { return [] }
        let listed = (0..<count).map { page.bigEndian(4, at: 8 + 4 * $0) }
        guard listed.allSatisfy({ (3...source.pageCount).contains($0) }), Set(listed).count == count else { return [] }
        return listed.map { UInt32(clamping: $0) }
    }
}

extension Record {
    /// The id of the document, of a row of `revisions` of which at least that is there.
    fileprivate var documentIDOfRevision: String? { values.count >= 8 ? text(7) : nil }
}

/// Puts rows together from the pages of a ``PageSource``, one at a time.
package struct RowReader {
    package let source: PageSource

    /// How many parts of long rows are still read. Each belongs to one row, so that an honest file needs no more than it has
    /// pages; one that was made to waste time gets no further.
    private var remainingParts: Int

    /// A body, and what else is in its row.
    private static let longestRow = JSONLimits.byteCount + 8192

    package init(_ source: PageSource) {
        self.source = source
        remainingParts = 8 * source.pageCount + 1024
    }

    /// A row as far as it could be read.
    package enum Row {
        case whole(Record)
        /// A part of it is lost; what is there of its first columns.
        case torn(Record?)
    }

    /// The row of `cell`, which is in `page`.
    package mutating func row(_ cell: TreePage.Cell, in page: [UInt8]) throws(CofferError) -> Row {
        var bytes = Array(page[cell.local])
        let start = bytes
        guard let overflow = cell.overflow else {
            return Record(bytes).map { .whole($0) } ?? .torn(Record(start, isWhole: false))
        }
        guard cell.byteCount <= Self.longestRow else { return .torn(Record(start, isWhole: false)) }
        var next = overflow
        var seen: Set<UInt32> = []
        while bytes.count < cell.byteCount {
            guard next != 0, remainingParts > 0, seen.insert(next).inserted, let part = try source.page(next) else {
                return .torn(Record(start, isWhole: false))
            }
            remainingParts -= 1
            next = UInt32(truncatingIfNeeded: part.bigEndian(4, at: 0))
            bytes += part[4..<min(part.count, 4 + cell.byteCount - bytes.count)]
        }
        guard next == 0, let record = Record(bytes) else { return .torn(Record(start, isWhole: false)) }
        return .whole(record)
    }
}
