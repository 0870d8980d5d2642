internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import Synchronization

/// A view or a declared index, as somebody wants it to be.
struct IndexDefinition: Sendable {
    let kind: IndexKind
    let name: String
    /// A view's version, or as JSON a declared index's paths, or what a text index is over. Entries that were made for another
    /// definition are rebuilt.
    let definition: String
    let content: IndexContent

    init(
        kind: IndexKind, name: String, definition: String,
        map: @escaping @Sendable (SavedRevision) throws -> [MappedEntry]
    ) {
        (self.kind, self.name, self.definition, content) = (kind, name, definition, .entries(map))
    }

    /// A text index.
    init(named name: String, _ definition: TextDefinition, _ analyzer: TextAnalyzer) {
        (kind, self.name, self.definition) = (.text, name, definition.json)
        content = .text(definition, analyzer)
    }

    /// - Throws: `invalidArgument` (400).
    func check() throws(CofferError) {
        guard (1...IndexSchema.nameByteLimit).contains(name.utf8.count) else {
            throw CofferError(
                .invalidArgument, "the name of a view or an index must have 1 to \(IndexSchema.nameByteLimit) bytes")
        }
        guard definition.utf8.count <= IndexSchema.definitionByteLimit else {
            throw CofferError(
                .invalidArgument, of: "index \(name)",
                "its version or its properties' paths have more than \(IndexSchema.definitionByteLimit) bytes")
        }
    }
}

/// What an index has of a document.
enum IndexContent: Sendable {
    /// The entries that a function makes. What it throws leaves the document without.
    case entries(@Sendable (SavedRevision) throws -> [MappedEntry])
    /// The terms of its texts.
    case text(TextDefinition, TextAnalyzer)
}

/// An entry that a document is to have in an index.
struct MappedEntry: Sendable {
    /// A ``CollationKey``'s bytes.
    var key: [UInt8]
    /// JSON in canonical form; nil for null.
    var value: [UInt8]?
}

/// The entries of views and of indexes over properties, in `index_entries`.
struct IndexedEntries: IndexedForm {
    static let limit = BatchLimit()

    private let map: @Sendable (SavedRevision) throws -> [MappedEntry]
    private let row: IndexRow
    private let database: Database
    private let notesPlaces: Bool

    private(set) var entryDelta = 0
    private(set) var hasRests = false
    private(set) var touched: [EntryPosition]?
    private var touchedByteCount = 0
    /// Documents that may have entries although they came after ``IndexRow/sequence``.
    private var visited: Set<DocumentNumber> = []

    /// - Parameter notesPlaces: whether to say which entries came and went.
    init(
        _ map: @escaping @Sendable (SavedRevision) throws -> [MappedEntry], of row: IndexRow, in database: Database,
        notesPlaces: Bool
    ) {
        self.map = map
        self.row = row
        self.database = database
        self.notesPlaces = notesPlaces
        touched = notesPlaces ? [] : nil
    }

    mutating func remake(_ document: DocumentToIndex, _ writer: borrowing Writer) throws(CofferError) {
        var mapped: [MappedEntry] = []
        var hasFailed = false
        if document.isIndexed {
            do {
                mapped = try writer.state.asFunction {
                    try map(SavedRevision(document: database.document(withID: document.id.text), document.winner))
                }
            } catch {
                hasFailed = true
            }
        }
        try writer.change { () throws(CofferError) in
            try removeEntries(writer, of: document)
            let id = SplitBytes(Array(document.id.text.utf8))
            if hasFailed {
                try writer.records.indexes.insert(
                    writer.nextNumber(in: .indexEntries), of: row.number, document: document.number,
                    sequence: document.winner.sequence, key: nil, id: id, value: nil)
            }
            for entry in mapped {
                let key = SplitBytes(entry.key)
                if key.rest != nil || id.rest != nil { hasRests = true }
                try writer.records.indexes.insert(
                    writer.nextNumber(in: .indexEntries), of: row.number, document: document.number,
                    sequence: document.winner.sequence, key: key, id: id, value: entry.value)
                note(EntryPosition(key: entry.key, id: Array(document.id.text.utf8)))
            }
            entryDelta += mapped.count
        }
    }

    func finish(_ writer: borrowing Writer) {}

    private mutating func removeEntries(
        _ writer: borrowing Writer, of document: DocumentToIndex
    ) throws(CofferError) {
        // A document that is new to the index has none.
        let isNew = document.number.firstSequence > row.sequence && visited.insert(document.number).inserted
        guard !isNew else { return }
        let places = try writer.records.indexes.places(of: document.number, in: row.number)
        guard !places.isEmpty else { return }
        for place in places {
            guard let place else { continue }
            entryDelta -= 1
            note(place)
        }
        try writer.records.indexes.removeEntries(of: document.number, from: row.number)
    }

    private mutating func note(_ place: EntryPosition) {
        guard notesPlaces, let count = touched?.count else { return }
        touchedByteCount += place.key.count + place.id.count
        let isTooMuch = count >= OpenIndex.placeLimit || touchedByteCount > OpenIndex.placeByteLimit
        if isTooMuch { touched = nil } else { touched?.append(place) }
    }
}
