internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// A row of a view.
public struct ViewRow: Sendable {
    /// The key that the view's function emitted.
    public let key: JSONValue

    /// The value that it emitted.
    public let value: JSONValue

    /// The id of the document that it was emitted for.
    public let documentID: String

    /// The sequence of the revision that it was emitted for.
    public let sequence: Int

    /// That document's current revision as it was when the row was read, where ``ViewOptions/loadsDocuments`` asks for it.
    public let revision: SavedRevision?

    private let json: [UInt8]?
    private let view: DatabaseView

    /// The document that it was emitted for. Touches no disk.
    public var document: Document { view.database.document(withID: documentID) }

    init(
        _ entry: IndexEntry, of documentID: String, in view: DatabaseView, revision: SavedRevision? = nil
    ) throws(CofferError) {
        do throws(CofferError) {
            key = try CollationKey.value(entry.key)
            value = try entry.value.map { (json) throws(CofferError) in try JSONValue(canonicalJSON: json) } ?? .null
        } catch {
            throw error.about(view.database.storage.subject)
        }
        json = entry.value
        self.documentID = documentID
        self.view = view
        sequence = entry.sequence.value
        self.revision = revision
    }

    /// The value as your own type.
    ///
    /// - Throws: `DecodingError` when it does not fit.
    public func decodeValue<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try Value(canonical: json ?? Array("null".utf8))
    }
}

/// A row that a view's reduction made of other rows.
public struct ReducedRow: Sendable {
    /// The common part of the rows' keys: the key, or as much of a list as ``ViewOptions/groupLevel`` says. Null where
    /// all rows are reduced to one.
    public let key: JSONValue

    /// The reduced value.
    public let value: JSONValue
}
