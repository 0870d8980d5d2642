package import CofferModel
package import CofferSealing

/// A row of one of the store's tables, told from others by its shape: what holds for every row that Coffer writes, and for no
/// other table's (see ``Schema``). So it needs nobody to say which table a page belongs to.
package enum FoundRow {
    case revision(FoundRevision)
    case document(id: String, DocumentRow)
    /// An entry of the index of later revisions.
    case laterRevision(sequence: SequenceNumber, document: DocumentNumber, RevisionID)
    case attachment(AttachmentRow)
    case localDocument(FoundLocalDocument)
    /// An entry of the index of local documents.
    case localDocumentID(String)
    /// A row of the table of expirations, or of its index.
    case expiration(id: String, time: Int64, isIndex: Bool)
    /// What a view or a declared index is; its entries are rebuilt.
    case index(FoundIndex)
    case info(key: String, InfoValue)
    /// Where a table or index begins.
    case root(page: Int64, name: String)

    package enum InfoValue: Equatable {
        case integer(Int64)
        case text(String)
        case blob([UInt8])
    }

    /// Times before that, in 1972, can't occur; and no table has so many rows that it would take one of their numbers
    /// for a time.
    private static let earliestTime: Int64 = 1 << 36
    private static let localPrefix = "_local/"

    /// - Parameter rowID: of a table's row; nil for an entry of an index or of a table without rowid.
    /// - Returns: nil for what none of them holds.
    package init?(_ record: Record, rowID: Int64?) throws(CofferError) {
        let found = if let rowID { try Self.tableRow(record, rowID) } else { Self.entry(record) }
        guard let found else { return nil }
        self = found
    }

    private static func tableRow(_ record: Record, _ rowID: Int64) throws(CofferError) -> FoundRow? {
        switch record.values.count {
        case 9:
            return try FoundRevision(record, sequence: SequenceNumber(rowID)).map { .revision($0) }
        case 8:
            return FoundIndex(record).map { .index($0) }
        case 5:
            if record.isNull(0) {
                return try FoundLocalDocument(record, number: rowID).map { .localDocument($0) }
                    ?? AttachmentRow(record, number: ContentNumber(rowID)).map { .attachment($0) }
            }
            guard let page = record.integer(3), let name = record.text(1) else { return nil }
            return .root(page: page, name: name)
        default:
            return nil
        }
    }

    private static func entry(_ record: Record) -> FoundRow? {
        switch record.values.count {
        case 4:
            if let id = record.text(0), let number: DocumentNumber = record.number(1),
                let winner: SequenceNumber = record.number(2),
                let flags = record.integer(3), Self.isDocumentID(id), Schema.counts.contains(winner)
            {
                let row = DocumentRow(number: number, winner: winner, flags: DocumentFlags(rawValue: flags))
                return .document(id: id, row)
            }
            guard let document: DocumentNumber = record.number(0), let id = record.revisionID(1),
                let sequence: SequenceNumber = record.number(3),
                Schema.counts.contains(sequence)
            else { return nil }
            return .laterRevision(sequence: sequence, document: document, id)
        case 2:
            return pair(record)
        default:
            return nil
        }
    }

    private static func pair(_ record: Record) -> FoundRow? {
        if let time = record.integer(0), let id = record.text(1), Self.isDocumentID(id) {
            return .expiration(id: id, time: time, isIndex: true)
        }
        guard let key = record.text(0) else { return nil }
        if let text = record.text(1) { return .info(key: key, .text(text)) }
        if let blob = record.blob(1) { return .info(key: key, .blob(blob)) }
        guard let number = record.integer(1) else { return nil }
        if key.utf8.starts(with: localPrefix.utf8) { return .localDocumentID(key) }
        if number >= earliestTime, Self.isDocumentID(key) { return .expiration(id: key, time: number, isIndex: false) }
        return .info(key: key, .integer(number))
    }

    private static func isDocumentID(_ text: String) -> Bool { (try? DocumentID(text)).map { !$0.isLocal } ?? false }
}

/// A row of `revisions`.
package struct FoundRevision {
    package var sequence: SequenceNumber
    /// The document's number.
    package var document: DocumentNumber
    package var parent: SequenceNumber?
    package var flags: RevisionFlags
    package var id: RevisionID
    package var documentID: String
    /// Nil where there isn't one, and where it is not what was written.
    package var body: [UInt8]?
    /// Whether the row carries its body's digest.
    package var hasDigest: Bool
    /// Whether the body, if there is one, is what its digest says, and one that Coffer writes.
    package var isIntact: Bool

    package init?(_ record: Record, sequence: SequenceNumber) throws(CofferError) {
        guard record.isNull(0), sequence > 0, Schema.counts.contains(sequence),
            let document: DocumentNumber = record.number(1), (1...sequence).contains(document.firstSequence),
            let flags = record.integer(3), (0...7).contains(flags), let id = record.revisionID(4),
            let name = record.text(7), let documentID = try? DocumentID(name), !documentID.isLocal
        else { return nil }
        parent = record.number(2)
        guard record.isNull(2) || parent.map({ (1..<sequence).contains($0) }) == true else { return nil }
        self.sequence = sequence
        self.document = document
        self.flags = RevisionFlags(rawValue: flags)
        self.id = id
        self.documentID = name
        let digest = record.blob(6)
        hasDigest = digest != nil
        body = record.blob(8)
        isIntact =
            if let body {
                try BodyDigest.matches(digest, of: body) && CanonicalBody.isStored(body)
            } else {
                record.isNull(8) && record.isNull(6)
            }
    }
}

extension FoundRevision {
    /// One of the new database's.
    package init(
        sequence: SequenceNumber, document: DocumentNumber, parent: SequenceNumber?, flags: RevisionFlags,
        id: RevisionID, documentID: String,
        body: [UInt8]?, hasDigest: Bool
    ) {
        self.sequence = sequence
        self.document = document
        self.parent = parent
        self.flags = flags
        self.id = id
        self.documentID = documentID
        self.body = body
        self.hasDigest = hasDigest
        isIntact = true
    }
}

/// A row of `local_documents`.
package struct FoundLocalDocument {
    package var number: Int64
    package var id: String
    package var generation: Int64
    package var body: [UInt8]
    /// Whether the row carries its body's digest.
    package var hasDigest: Bool
    package var isIntact: Bool

    package init?(_ record: Record, number: Int64) throws(CofferError) {
        guard let generation = record.integer(1), generation > 0, Schema.counts.contains(generation),
            let name = record.text(3),
            let id = try? DocumentID(name), id.isLocal, let body = record.blob(4)
        else { return nil }
        self.number = number
        self.id = name
        self.generation = generation
        self.body = body
        let digest = record.blob(2)
        hasDigest = digest != nil
        let parsed = try? DocumentBody(json: body, valueLimit: JSONLimits.storedValueCount)
        isIntact = try BodyDigest.matches(digest, of: body) && parsed?.body.bytes == body && parsed?.attachments == nil
    }
}

/// A row of `indexes`, as far as it isn't rebuilt.
package struct FoundIndex: Hashable {
    package var kind: IndexKind
    package var name: String
    package var definition: String

    package init?(_ record: Record) {
        guard record.isNull(0), let kind = record.integer(1).flatMap({ IndexKind(rawValue: $0) }),
            let name = record.text(2), (1...IndexSchema.nameByteLimit).contains(name.utf8.count),
            let definition = record.text(3), definition.utf8.count <= IndexSchema.definitionByteLimit
        else { return nil }
        self.kind = kind
        self.name = name
        self.definition = definition
    }
}

extension AttachmentRow {
    fileprivate init?(_ record: Record, number: ContentNumber) {
        guard let length = record.integer(2), number > 0 else { return nil }
        let proof: Proof?
        switch (record.blob(3), record.blob(4)) {
        case (let sha256?, let header?): proof = Proof(sha256: sha256, header: header)
        case (nil, nil) where record.isNull(3) && record.isNull(4): proof = nil
        default: return nil
        }
        let sha1 = record.blob(1).map { AttachmentKey.sha1($0) }
        guard let key = sha1 ?? record.text(1).map({ .foreign($0) }) else { return nil }
        self.init(number: number, key: key, byteCount: Int(length), proof: proof)
        guard isWellFormed else { return nil }
    }
}

extension Record {
    fileprivate func number<Number: RowNumber>(_ column: Int) -> Number? { integer(column).map { Number($0) } }

    /// The revision id in this column and the next.
    fileprivate func revisionID(_ column: Int) -> RevisionID? {
        guard let generation = integer(column) else { return nil }
        let suffix =
            blob(column + 1).map { RevisionDigest(bytes: $0.span).map { RevisionID.Suffix.digest($0) } }
            ?? text(column + 1).map { .text($0) }
        return suffix.flatMap { try? RevisionID(generation: generation, suffix: $0) }
    }
}
