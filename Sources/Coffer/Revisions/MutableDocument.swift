internal import CofferModel
internal import CofferRecords
public import CofferSealing

/// A document to be changed and saved as a whole, in the style of Couchbase Lite 2.
///
/// ```swift
/// let task = MutableDocument(id: "task-1", ["type": "task"])
/// task["title"] = "Water the plants"
/// try database.saveDocument(task)
/// ```
///
/// A save brings it up to date, so that it can be changed and saved again. For one thread, or task, at a time: it is not
/// `Sendable`, since two that change one document would overwrite each other.
public final class MutableDocument: EditableProperties {
    /// The document's id.
    public let id: String

    /// The properties, to be changed at will: see ``EditableProperties/properties``.
    public var properties: JSONObject

    /// The revision that was last saved or read; nil for a document that is new.
    public private(set) var revisionID: RevisionID?

    /// Where it was saved or read. Another database is refused: its revisions are not this one's.
    private weak var database: Database?

    /// A new document.
    ///
    /// - Parameters:
    ///   - id: its id. Default: nil, one that nobody else has.
    ///   - properties: what it holds at first. Default: nothing.
    public init(id: String? = nil, _ properties: JSONObject = [:]) {
        self.id = id ?? DocumentID.random().text
        self.properties = properties
    }

    /// A new document that holds the members of a dictionary.
    ///
    /// - Parameters:
    ///   - id: its id. Default: nil, one that nobody else has.
    ///   - properties: what it holds at first.
    @_disfavoredOverload
    public convenience init(id: String? = nil, _ properties: [String: JSONValue]) {
        self.init(id: id, JSONObject(uniqueKeysWithValues: properties.map { ($0.key, $0.value) }))
    }

    init(_ revision: SavedRevision) throws(CofferError) {
        id = revision.documentID
        properties = try revision.properties
        revisionID = revision.revisionID
        database = revision.database
    }

    /// - Throws: `invalidArgument` (400) when it belongs to another database.
    func checkBelongs(to database: Database) throws(CofferError) {
        if let own = self.database, own !== database {
            throw CofferError(.invalidArgument, of: "document \(id)", "it belongs to another database")
        }
    }

    func noteSaved(_ revision: SavedRevision) -> SavedRevision {
        let stated = properties["_rev"]
        revision.database.storage.whenRolledBack { [weak self, weak own = database, revisionID] in
            self?.revisionID = revisionID
            self?.database = own
            if stated != nil { self?.properties["_rev"] = stated }
        }
        revisionID = revision.isDeletion ? nil : revision.revisionID
        if stated != nil { properties["_rev"] = revisionID.map { .string($0.description) } }
        database = revision.database
        return revision
    }
}

/// How to proceed when somebody else has saved the document in the meantime.
public enum ConcurrencyControl: Sendable {
    /// The save is refused with `conflict` (409).
    case failOnConflict
    /// The save replaces what is there.
    case lastWriteWins
}

extension Document {
    /// The current revision as a document to be changed; a new one with this id when there isn't one.
    public func toMutable() throws(CofferError) -> MutableDocument {
        guard let revision = try currentRevision else { return MutableDocument(id: documentID) }
        return try MutableDocument(revision)
    }
}
