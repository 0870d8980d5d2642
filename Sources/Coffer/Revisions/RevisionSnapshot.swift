internal import CofferModel
internal import CofferSealing

/// A revision that was read: a plain value, none of whose properties throws, so that they can be key paths.
///
/// ```swift
/// let notes = try database.allDocuments().map { try $0.snapshot }
/// let sorted = notes.sorted { ($0["title"] ?? .null) < ($1["title"] ?? .null) }
/// ForEach(notes) { note in Text(note["title"]?.stringValue ?? "") }     // in SwiftUI
/// ```
public struct RevisionSnapshot: Sendable, Hashable, Identifiable {
    /// The document's id.
    public let documentID: String

    /// The revision's id.
    public let revisionID: RevisionID

    /// The revision's number in the order in which the database got them.
    public let sequence: Int

    /// Whether the revision deletes the document.
    public let isDeletion: Bool

    /// The properties.
    public let properties: JSONObject

    /// The document's id.
    public var id: String { documentID }

    /// The property of that name, or nil if it does not exist.
    public subscript(key: String) -> JSONValue? { properties[key] }
}

extension SavedRevision {
    /// The revision with its properties as a plain value.
    ///
    /// - Throws: `revisionNotFound` (404) when compaction dropped its properties, `damaged` (500), `closed` (500).
    public var snapshot: RevisionSnapshot {
        get throws(CofferError) {
            RevisionSnapshot(
                documentID: documentID, revisionID: revisionID, sequence: sequence, isDeletion: isDeletion,
                properties: try properties)
        }
    }
}
