internal import CofferModel
internal import CofferRecords
package import CofferSealing

/// A document that was changed, as ``Database/changes(since:options:)`` lists it.
public struct ChangedDocument: Sendable {
    /// The document.
    public let document: Document

    /// The sequence of the last revision that came into the document, be it the current one or not.
    public let sequence: Int

    /// The winning revision, deletion or not. Where properties were not asked for, it reads them when it is.
    public let revision: SavedRevision

    /// The ids of the winning revision and, where ``FeedOptions/includesAllLeaves`` asks for them, of all others that
    /// nothing has replaced, deletions too, the best first. With a filter, of those that pass.
    public let leafRevisionIDs: [RevisionID]

    /// The document's id.
    public var documentID: String { document.documentID }

    /// Whether the document is deleted.
    public var isDeletion: Bool { revision.isDeletion }
}

/// Options that say what ``Database/changes(since:options:)`` lists.
public struct FeedOptions: Sendable {
    /// How many documents are listed at most. Default: nil, all. One below zero is `invalidArgument` (400) when rows are taken.
    public var limit: Int?

    /// Whether all leaves of documents with branches are listed, as a peer needs them. Default: false, the current one.
    public var includesAllLeaves = false

    /// Whether properties are read together with the documents. Default: false.
    public var loadsProperties = false

    /// The name of the filter that revisions must pass: see ``Database/setFilter(named:_:)``. Default: nil, all do.
    public var filter: String?

    /// The parameters for the filter. Default: empty.
    public var filterParameters: JSONObject = [:]

    /// The options that are their defaults.
    public init() {}
}

extension Database {
    /// The documents that were changed after a sequence, in the order of their last changes, each of them once. It ends with
    /// the last; ``changes``, without parentheses, are the commits from here on, and wait for the next.
    ///
    /// Deleted documents are among them, purged ones and local ones are not. Goes on to what is committed while the rows are
    /// taken: a document that is changed meanwhile moves to its new place.
    ///
    /// - Parameters:
    ///   - sequence: ``lastSequenceNumber`` or ``ChangedDocument/sequence`` of an earlier time; 0 for all.
    ///   - options: see there. A filter that is not known is `invalidArgument` (400) when rows are taken. An error that the
    ///     filter throws ends the rows: as `rejected` (403), unless it is Coffer's.
    public func changes(since sequence: Int, options: FeedOptions = FeedOptions()) -> Rows<ChangedDocument> {
        Rows { [self] () throws(CofferError) in
            var reader = try FeedReader(self, since: sequence, options)
            return { () throws(CofferError) in try reader.nextBatch() }
        }
    }
}

/// Reads the documents of a feed, a batch at a time.
package struct FeedReader {
    /// The last sequence that was looked at: what to go on from, even where no document passed the filter.
    package private(set) var position: Int

    /// Documents that the filter failed for, where those are skipped.
    package private(set) var failedFilters: [(documentID: String, error: CofferError)] = []

    private let passesOverFailedFilters: Bool
    private let database: Database
    private let options: FeedOptions
    private let filter: RevisionFilter?
    private var remainingCount: Int
    private let limit = BatchLimit()

    /// - Parameter passesOverFailedFilters: whether an error that the filter throws keeps its document out, and no other.
    /// - Throws: `invalidArgument` (400) for a filter that is not known.
    package init(
        _ database: Database, since sequence: Int, _ options: FeedOptions, passesOverFailedFilters: Bool = false
    ) throws(CofferError) {
        self.passesOverFailedFilters = passesOverFailedFilters
        self.database = database
        self.options = options
        position = max(0, sequence)
        remainingCount = try RowCount.rowCount(options.limit)
        filter = try options.filter.map { (name) throws(CofferError) in
            guard let filter = database.filter(named: name) else {
                throw CofferError(.invalidArgument, of: database.storage.subject, "no filter is called \(name)")
            }
            return filter
        }
    }

    /// The next documents; none after the last one.
    package mutating func nextBatch() throws(CofferError) -> [ChangedDocument] {
        while remainingCount > 0 {
            let (found, last) = try database.storage.read { (tables) throws(CofferError) in try read(tables) }
            guard let last else { return [] }
            guard last.value > position else {
                throw CofferError(.damaged, of: database.storage.subject, "its revisions are not in order")
            }
            var batch: [ChangedDocument] = []
            for entry in found {
                guard let document = try passed(entry) else { continue }
                batch.append(document)
                remainingCount -= 1
            }
            // No more was read than may be handed out.
            position = last.value
            if !batch.isEmpty { return batch }
        }
        return []
    }

    private struct Entry {
        var document: Document
        var sequence: SequenceNumber
        var winner: SavedRevision
        /// Of a document with branches, where more than the winner is asked for: all leaves.
        var leaves: [SavedRevision]?
    }

    /// What is known of a document with branches, so that its leaves are not read again for each of them.
    private struct Branches {
        var leaves: [RevisionRow]
        var lastSequence: SequenceNumber
    }

    /// - Returns: what comes after `position`, and the last sequence that was looked at; nil if nothing comes.
    private func read(_ tables: borrowing Snapshot) throws(CofferError) -> ([Entry], last: SequenceNumber?) {
        guard position < .max else { return ([], nil) }
        var (batch, branched) = (DocumentBatch(), [Int: (winner: RevisionRow, leaves: [RevisionRow])]())
        var known: [DocumentNumber: Branches] = [:]
        var last: SequenceNumber?
        var (byteCount, visitCount) = (0, 0)
        let loadsBodies = options.loadsProperties || filter != nil
        try tables.appendRevisions(
            from: SequenceNumber(position).next, to: .max, descending: false, loadsBodies: loadsBodies, to: &batch
        ) { (batch) throws(CofferError) in
            let revision = batch.last
            last = revision.sequence
            visitCount += 1
            var isMeant = revision.isWinner
            if revision.flags.contains(.isBranched) {
                let branches: Branches
                if let found = known[revision.document] {
                    branches = found
                } else {
                    let leaves = try tables.leaves(ofDocument: revision.document)
                    branches = Branches(leaves: leaves, lastSequence: leaves.map(\.sequence).max() ?? 0)
                    known[revision.document] = branches
                    visitCount += leaves.count
                }
                isMeant = branches.lastSequence == revision.sequence
                if isMeant {
                    let id = try batch.documentID(of: revision)
                    let winner = try tables.revision(sequence: revision.winner, of: id)
                    var leaves = options.includesAllLeaves ? branches.leaves : [winner]
                    if filter != nil {
                        leaves = try leaves.map { (leaf) throws(CofferError) in
                            try tables.revision(sequence: leaf.sequence, of: id)
                        }
                    }
                    branched[batch.elements.count - 1] = (winner, leaves)
                    byteCount += winner.body?.count ?? 0
                }
            }
            if !isMeant { batch.removeLast() }
            return batch.elements.count < min(limit.rowCount, remainingCount)
                && batch.bytes.count + byteCount < limit.byteCount && visitCount < 20 * limit.rowCount
        }
        var entries: [Entry] = []
        entries.reserveCapacity(batch.elements.count)
        try batch.forEach { (id, revision) throws(CofferError) in
            let document = database.document(withID: id.text)
            let branches = branched[entries.count]
            let sequence = revision.sequence
            entries.append(
                Entry(
                    document: document, sequence: sequence,
                    winner: SavedRevision(document: document, branches?.winner ?? revision),
                    leaves: branches?.leaves.map { SavedRevision(document: document, $0) }))
        }
        return (entries, last)
    }

    /// The entry as far as its revisions pass the filter; nil when none does.
    private mutating func passed(_ entry: Entry) throws(CofferError) -> ChangedDocument? {
        var leaves = [entry.winner] + (entry.leaves?.dropFirst() ?? [])
        if let filter {
            do throws(CofferError) {
                leaves = try leaves.passing({ try filter($0, options.filterParameters) }, of: entry.document.subject)
            } catch  where passesOverFailedFilters && error.status < 500 {
                failedFilters.append((entry.document.documentID, error))
                return nil
            }
        }
        guard !leaves.isEmpty else { return nil }
        return ChangedDocument(
            document: entry.document, sequence: entry.sequence.value, revision: entry.winner,
            leafRevisionIDs: leaves.map(\.revisionID))
    }
}
