internal import CofferModel
internal import Foundation

// What is printed, logged, dumped or shown by a debugger often ends in a file that nobody encrypts. So whatever leads to content
// or keys says what it is and not what it holds; content is printed only by who asks for it: `properties`, `json`, `content`.

extension Manager: CustomStringConvertible, CustomReflectable {
    /// Where the databases are.
    public var description: String { "databases in \(directory.path(percentEncoded: false))" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Database: CustomStringConvertible, CustomReflectable {
    /// The database's name.
    public var description: String { "database \(name)" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Document: CustomStringConvertible, CustomReflectable {
    /// The document's id and database.
    public var description: String { "document \(documentID) in \(database)" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension SavedRevision: CustomStringConvertible, CustomReflectable {
    /// The revision's id and document.
    public var description: String { "\(isDeletion ? "deletion" : "revision") \(revisionID) of \(document)" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension UnsavedRevision: CustomStringConvertible, CustomReflectable {
    /// The draft's document.
    public var description: String { "unsaved revision of \(document)" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension MutableDocument: CustomStringConvertible, CustomReflectable {
    /// The document's id.
    public var description: String { "mutable document \(id)" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension ProposedRevision: CustomStringConvertible, CustomReflectable {
    /// The id that the revision will have, and its document.
    public var description: String { "proposed revision \(revisionID) of \(document)" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Attachment: CustomStringConvertible, CustomReflectable {
    /// The attachment's name, length and document.
    public var description: String { "attachment \(name) (\(length) bytes) of \(document)" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension AttachmentChunks: CustomStringConvertible, CustomReflectable {
    /// That these are pieces.
    public var description: String { "pieces of a content" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Rows: CustomStringConvertible, CustomReflectable {
    /// What the rows are.
    public var description: String { "rows of \(Element.self)" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension DatabaseChangeSequence: CustomStringConvertible, CustomReflectable {
    /// That these are commits.
    public var description: String { "commits of a database" }
    /// A mirror that shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
