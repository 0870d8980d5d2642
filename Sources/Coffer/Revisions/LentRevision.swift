package import CofferModel
internal import CofferRecords
internal import CofferSealing

/// A revision with its history, as another database receives it, with its bytes where they were read: see
/// ``Database/lendRevisions(_:_:)``.
package struct LentRevision: ~Escapable {
    /// The document's id.
    package let documentID: String

    /// The body in canonical JSON.
    package let json: Span<UInt8>

    private let element: DocumentBatch.Element
    private let ancestors: ArraySlice<RevisionID>

    @_lifetime(copy json)
    init(
        of documentID: String, _ element: DocumentBatch.Element, _ json: Span<UInt8>,
        ancestors: ArraySlice<RevisionID>
    ) {
        self.documentID = documentID
        self.element = element
        self.json = json
        self.ancestors = ancestors
    }

    /// The revision's id.
    package var revisionID: RevisionID { element.revisionID }

    /// Whether the revision deletes the document.
    package var isDeletion: Bool { element.isDeletion }

    /// Whether nothing follows the revision, and the document has no other branch.
    package var isOnlyLeaf: Bool { element.isWinner && !element.flags.contains(.isBranched) }

    /// The ids of the revision and those it was made from, the newest first, as far back as they are kept.
    package var history: [RevisionID] { [revisionID] + ancestors }
}

extension Database {
    /// Lends revisions to `transform`, with their histories and their bytes where they were read: all of one moment, and without
    /// an object for each. Nothing is kept open or locked meanwhile.
    ///
    /// - Parameter wanted: which, at least one: as many of the first ones are read as one batch may have.
    /// - Returns: what `transform` makes of each of those, at least one; nil where there is no such revision, or its properties are
    ///   not there.
    /// - Throws: what `transform` throws; of the first one alone `invalidDocumentID` (400) and `damaged` (500); `closed` (500).
    package func lendRevisions<Value>(
        _ wanted: some Collection<(id: String, revision: RevisionID)>,
        _ transform: (borrowing LentRevision) throws -> Value
    ) throws -> [Value?] {
        let limit = BatchLimit()
        var batch = RevisionBatch()
        do throws(CofferError) {
            try batch.read(wanted.prefix(limit.rowCount), upTo: limit.byteCount, from: storage)
        } catch {
            // Which one it is about shows where each is read alone.
            guard wanted.count > 1, error.code != .closed else { throw error }
            try batch.read(wanted.prefix(1), upTo: limit.byteCount, from: storage)
        }
        return try batch.map(wanted, transform)
    }
}

/// Revisions that were read in one snapshot.
private struct RevisionBatch {
    private var documents = DocumentBatch()
    private var ancestors: [RevisionID] = []
    private var entries: [Entry] = []

    /// What was found of one that was wanted.
    private struct Entry {
        /// Where the revision is among the documents; nil if it isn't there.
        var place: Int?
        /// Where its ancestors end.
        var ancestorEnd: Int
    }

    private var byteCount: Int { documents.bytes.count + ancestors.count * MemoryLayout<RevisionID>.stride }

    /// Reads the first of these, until they have so many bytes.
    mutating func read(
        _ wanted: some Collection<(id: String, revision: RevisionID)>, upTo byteCount: Int, from storage: Storage
    ) throws(CofferError) {
        var batch = self
        try storage.read { (tables) throws(CofferError) in
            // A snapshot may be given up, and read again.
            batch = RevisionBatch()
            for (id, revision) in wanted {
                guard batch.byteCount < byteCount else { break }
                try batch.append(revision, of: DocumentID(id), from: tables)
            }
        }
        self = batch
    }

    private mutating func append(
        _ revision: RevisionID, of document: DocumentID, from tables: borrowing Snapshot
    ) throws(CofferError) {
        var place: Int?
        if try tables.appendRevision(revision, of: document, to: &documents) {
            let last = documents.elements.count - 1
            place = last
            try tables.trees.appendAncestors(of: documents.elements[last].revision, to: &ancestors)
        }
        entries.append(Entry(place: place, ancestorEnd: ancestors.count))
    }

    func map<Value>(
        _ wanted: some Collection<(id: String, revision: RevisionID)>,
        _ transform: (borrowing LentRevision) throws -> Value
    ) throws -> [Value?] {
        var values: [Value?] = []
        values.reserveCapacity(entries.count)
        var ancestorStart = 0
        for (entry, (id, _)) in zip(entries, wanted) {
            defer { ancestorStart = entry.ancestorEnd }
            guard let element = entry.place.map({ documents.elements[$0] }), let body = element.body else {
                values.append(nil)
                continue
            }
            values.append(
                try transform(
                    LentRevision(
                        of: id, element, documents.bytes.span.extracting(body),
                        ancestors: ancestors[ancestorStart..<entry.ancestorEnd])))
        }
        return values
    }
}
