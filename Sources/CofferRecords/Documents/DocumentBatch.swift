package import CofferModel
package import CofferSealing
internal import CofferSQLite

/// Documents of a listing with their winning revisions, read in one go: a list of numbers, and all their bytes one after
/// another. Nothing is allocated for a single document.
package struct DocumentBatch: Sendable {
    /// Where the bytes of a document are, and what else its rows say.
    package struct Element: Sendable {
        package var sequence: SequenceNumber
        package var document: DocumentNumber
        /// The parent's sequence; nil at the root.
        package var parent: SequenceNumber?
        package var isDeletion: Bool
        package var flags: DocumentFlags
        package var revisionID: RevisionID
        /// Of the document's id, in UTF-8.
        package var id: Range<Int>
        /// Of the body; nil where compaction dropped it, or it was not asked for.
        package var body: Range<Int>?
        /// The sequence of the document's winning revision: only in a listing of revisions it may be another's.
        package var winner: SequenceNumber

        package var isWinner: Bool { winner == sequence }

        /// The revision without its body.
        package var revision: RevisionRow {
            RevisionRow(
                sequence: sequence, document: document, parent: parent, isDeletion: isDeletion, id: revisionID)
        }
    }

    package private(set) var elements: [Element] = []
    /// The ids and bodies.
    package private(set) var bytes: [UInt8] = []

    /// - Parameter byteCount: how many bytes of ids and bodies there is room for before the first is added.
    package init(reserving byteCount: Int = 0) { if byteCount > 0 { bytes.reserveCapacity(byteCount) } }

    package var isEmpty: Bool { elements.isEmpty }

    /// The id of the document that was added last.
    package var lastID: String { elements.last.map { id(of: $0) } ?? "" }

    /// Whether the document that was added last has this id.
    package func isLast(_ id: [UInt8]) -> Bool {
        elements[elements.count - 1].id.count == id.count && doesLastStart(with: id)
    }

    /// Whether the id of the document that was added last begins so.
    package func doesLastStart(with prefix: [UInt8]) -> Bool {
        let place = elements[elements.count - 1].id
        guard place.count >= prefix.count else { return false }
        for offset in 0..<prefix.count where bytes[place.lowerBound + offset] != prefix[offset] { return false }
        return true
    }

    /// Forgets the documents, and keeps the memory for others: 2 MiB of their bytes at most.
    package mutating func removeAll() {
        elements.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: bytes.capacity <= 1 << 21)
    }

    /// What a listing of revisions asks of the one that was added last. Nothing in it is counted.
    package struct Place {
        package let sequence: SequenceNumber
        package let document: DocumentNumber
        package let winner: SequenceNumber
        package let flags: DocumentFlags
        /// How many bytes were added before it.
        package let byteCount: Int
        fileprivate let id: Range<Int>

        package var isWinner: Bool { winner == sequence }
    }

    /// Where the revision that was added last stands. There must be one.
    package var last: Place {
        let index = elements.count - 1
        return Place(
            sequence: elements[index].sequence, document: elements[index].document, winner: elements[index].winner,
            flags: elements[index].flags, byteCount: elements[index].id.lowerBound, id: elements[index].id)
    }

    /// Takes the last document out again.
    package mutating func removeLast() {
        guard let last = elements.popLast() else { return }
        bytes.removeLast(bytes.count - last.id.lowerBound)
    }

    /// Only those of another batch whose winners have these sequences.
    package init(_ batch: DocumentBatch, only sequences: Set<SequenceNumber>) {
        elements = batch.elements.filter { sequences.contains($0.sequence) }
        bytes = batch.bytes
    }

    /// The document's id.
    package func id(of element: borrowing Element) -> String { String(decoding: bytes[element.id], as: UTF8.self) }

    /// The id of the document, which was checked as it was added.
    package func documentID(of place: Place) throws(CofferError) -> DocumentID {
        try DocumentID(String(decoding: bytes[place.id], as: UTF8.self))
    }

    /// The revision, with a copy of its body.
    package func revision(_ element: borrowing Element) -> RevisionRow {
        var revision = element.revision
        revision.body = element.body.map { Array(bytes[$0]) }
        return revision
    }

    /// Gives each document's id and revision to `body`.
    package func forEach(
        _ body: (DocumentID, consuming RevisionRow) throws(CofferError) -> Void
    ) throws(CofferError) {
        for index in elements.indices { try body(DocumentID(id(of: elements[index])), revision(elements[index])) }
    }

    /// What `transform` makes of each document's id and revision.
    package func map<Value>(_ transform: (_ id: String, consuming RevisionRow) -> Value) -> [Value] {
        var values: [Value] = []
        values.reserveCapacity(elements.count)
        for index in elements.indices { values.append(transform(id(of: elements[index]), revision(elements[index]))) }
        return values
    }

    /// Adds a document that was found otherwise than by listing.
    package mutating func append(_ id: DocumentID, _ row: DocumentRow, _ winner: RevisionRow) {
        let start = bytes.count
        bytes.append(contentsOf: id.text.utf8)
        let end = bytes.count
        if let body = winner.body { bytes.append(contentsOf: body) }
        elements.append(
            Element(
                sequence: winner.sequence, document: winner.document, parent: winner.parent,
                isDeletion: winner.isDeletion, flags: row.flags, revisionID: winner.id, id: start..<end,
                body: winner.body == nil ? nil : end..<bytes.count, winner: row.winner))
    }

    /// Adds the document in the statement's row: sequence, document, parent, flags, generation, suffix, digest, body, the
    /// document's flags, its id; and where revisions are listed, its winner's sequence.
    fileprivate mutating func append(
        _ statement: Statement, listsRevisions: Bool, subject: String
    ) throws(CofferError) {
        let start = bytes.count
        statement.append(9, to: &bytes)
        try checkID(start..<bytes.count, subject)
        try append(statement, idStart: start, winner: statement.number(listsRevisions ? 10 : 0), subject)
    }

    /// Adds the document of this id, whose winning revision and flags are in the statement's row: as when it is listed.
    fileprivate mutating func append(_ statement: Statement, id: DocumentID, subject: String) throws(CofferError) {
        let start = bytes.count
        bytes.append(contentsOf: id.text.utf8)
        try append(statement, idStart: start, winner: statement.number(0), subject)
    }

    /// Adds what is in the statement's row to the id, whose bytes were added last.
    private mutating func append(
        _ statement: Statement, idStart start: Int, winner: SequenceNumber, _ subject: String
    ) throws(CofferError) {
        let end = bytes.count
        let hasBody = statement.append(7, to: &bytes)
        let sequence: SequenceNumber = statement.number(0)
        if hasBody {
            let body = unsafe bytes.span.bytes.extracting(droppingFirst: end)
            guard try BodyDigest.matches(statement, 6, of: body) else {
                throw CofferError(
                    .damaged, of: subject, "the body of revision \(sequence.value) is not what was written")
            }
        }
        elements.append(
            Element(
                sequence: sequence, document: statement.number(1),
                parent: statement.isNull(2) ? nil : statement.number(2),
                isDeletion: RevisionFlags(rawValue: statement.integer(3)).contains(.isDeletion),
                flags: DocumentFlags(rawValue: statement.integer(8)),
                revisionID: try statement.revisionID(4, sequence: sequence, subject: subject), id: start..<end,
                body: hasBody ? end..<bytes.count : nil, winner: winner))
    }

    /// Most ids begin with a letter or digit and are valid for that; others are looked at more closely.
    private func checkID(_ range: Range<Int>, _ subject: String) throws(CofferError) {
        if (1...DocumentID.byteLimit).contains(range.count), bytes[range.lowerBound] != UInt8(ascii: "_") { return }
        do throws(CofferError) {
            _ = try DocumentID(String(decoding: bytes[range], as: UTF8.self))
        } catch {
            throw CofferError(.damaged, of: subject, "a document has no id", cause: error)
        }
    }
}

/// Says of the document that was added last whether there is room for another one. Takes it out again where it is not meant.
package typealias SelectDocument = (inout DocumentBatch) throws(CofferError) -> Bool

extension Snapshot {
    /// Adds documents from `first` to `last`, both included, in the order of their ids' bytes; nil is no bound.
    package func appendDocuments(
        from first: String?, to last: String?, descending: Bool, includesDeleted: Bool, loadsBodies: Bool,
        to batch: inout DocumentBatch, select: SelectDocument
    ) throws(CofferError) {
        let statement = descending ? lists.byIDDescending : lists.byID
        defer { statement.reset() }
        try statement.bind(1, first ?? "")
        // A blob comes after every text.
        if let last { try statement.bind(2, last) } else { try statement.bind(2, [UInt8]()) }
        try statement.bind(3, loadsBodies ? 1 : 0)
        try statement.bind(4, includesDeleted ? 1 : 0)
        try append(statement, listsRevisions: false, to: &batch, select)
    }

    /// Adds the documents of revisions in the order of their sequences, both bounds included; a body only where it is the
    /// winner's.
    package func appendRevisions(
        from first: SequenceNumber, to last: SequenceNumber, descending: Bool, loadsBodies: Bool,
        to batch: inout DocumentBatch, select: SelectDocument
    ) throws(CofferError) {
        let statement = try lists.bindRevisions(from: first, to: last, descending: descending, loadsBodies: loadsBodies)
        defer { statement.reset() }
        try append(statement, listsRevisions: true, to: &batch, select)
    }

    /// Adds the document's revision of that id, be it the winner or another one.
    ///
    /// - Returns: whether there is such a revision.
    package func appendRevision(
        _ id: RevisionID, of document: DocumentID, to batch: inout DocumentBatch
    ) throws(CofferError) -> Bool {
        var isThere = false
        try findWinner.bind(1, document.text)
        let row: DocumentRow? = try findWinner.first { (statement) throws(CofferError) in
            guard !statement.isNull(0) else { throw missing("the current revision of document \(document.text)") }
            let winner: SequenceNumber = statement.number(0)
            if try statement.revisionID(4, sequence: winner, subject: subject) == id {
                try batch.append(statement, id: document, subject: subject)
                isThere = true
            }
            return DocumentRow(
                number: statement.number(1), winner: winner, flags: DocumentFlags(rawValue: statement.integer(8)))
        }
        guard let row, !isThere else { return isThere }
        guard let sequence = try trees.sequence(of: id, inDocument: row.number) else { return false }
        batch.append(document, row, try revision(sequence: sequence, of: document))
        return true
    }

    private func append(
        _ statement: Statement, listsRevisions: Bool, to batch: inout DocumentBatch, _ select: SelectDocument
    ) throws(CofferError) {
        let subject = subject
        var count = 0
        defer { noteListed(count) }
        while try statement.step() {
            count += 1
            guard !statement.isNull(listsRevisions ? 9 : 0) else {
                throw missing(
                    listsRevisions
                        ? "the document of revision \(statement.integer(0))"
                        : "the current revision of document \(statement.text(9))")
            }
            try batch.append(statement, listsRevisions: listsRevisions, subject: subject)
            guard try select(&batch) else { return }
        }
    }
}
