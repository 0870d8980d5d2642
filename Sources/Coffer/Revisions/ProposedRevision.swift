internal import CofferModel
internal import CofferRecords
public import CofferSealing

/// A revision that is about to be saved, for a validation to look at: see ``Database/setValidation(named:_:)``.
public struct ProposedRevision: Sendable {
    /// The document that it is to be a revision of.
    public var document: Document { revision.document }

    /// The document's id.
    public var documentID: String { document.documentID }

    /// The id that the revision will have.
    public var revisionID: RevisionID { revision.revisionID }

    /// Whether it deletes the document.
    public var isDeletion: Bool { revision.isDeletion }

    /// Whether it comes from a peer, and not from a save in this process.
    public let isFromPeer: Bool

    /// The revision that it replaces; nil for a first one, and where that is not known.
    public let parentRevision: SavedRevision?

    private let revision: SavedRevision

    init(_ revision: SavedRevision, parentRevision: SavedRevision?, isFromPeer: Bool) {
        self.revision = revision
        self.parentRevision = parentRevision
        self.isFromPeer = isFromPeer
    }

    /// The properties that it would have.
    public var properties: JSONObject {
        get throws(CofferError) { try revision.properties }
    }

    /// One property; nil when it has none of that name.
    public subscript(key: String) -> JSONValue? {
        get throws(CofferError) { try properties[key] }
    }

    /// One property as your own type; nil if no property has that name, or if it does not fit.
    @_disfavoredOverload
    public subscript<Value: JSONConvertible>(key: String) -> Value? {
        get throws(CofferError) { try properties[key] }
    }

    /// The names of the attachments that it would have.
    public var attachmentNames: [String] {
        get throws(CofferError) { try revision.attachmentStubs.map(\.name) }
    }

    /// The names of the properties that differ from those of ``parentRevision``, added and removed ones too, in canonical
    /// order. All of them where there is no parent, or where its properties are gone.
    public var changedKeys: [String] {
        get throws(CofferError) {
            let new = try properties
            var old: JSONObject = [:]
            if let parentRevision, try parentRevision.propertiesAvailable { old = try parentRevision.properties }
            var merged = old
            for (key, value) in new { merged[key] = value }
            return merged.map(\.key).filter { new[$0] != old[$0] }
                .sorted { $0.utf16.lexicographicallyPrecedes($1.utf16) }
        }
    }

    /// Refuses the revision: saving it fails with `rejected` (403) and this message.
    ///
    /// - Parameter message: why, for whoever reads the error. Put nothing into it that must not be logged.
    public func reject(_ message: String) throws(CofferError) -> Never {
        throw CofferError(.rejected, of: document.subject, message)
    }
}
