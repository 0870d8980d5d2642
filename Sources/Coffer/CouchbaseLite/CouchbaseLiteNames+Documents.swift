internal import CofferModel
public import CofferSealing
public import Dispatch
public import Foundation

// The names that Couchbase Lite has in Swift for documents, attachments, views and the rest: see CouchbaseLiteNames.swift.

extension Manager {
    /// `replaceDatabase(named:withDatabaseAt:encryptionKey:)`.
    @available(*, deprecated, renamed: "replaceDatabase(named:withDatabaseAt:)")
    public func replaceDatabaseNamed(_ name: String, withDatabaseDir path: String) throws(CofferError) {
        try replaceDatabase(named: name, withDatabaseAt: URL(filePath: path, directoryHint: .isDirectory))
    }

    /// `replaceDatabase(named:withDatabaseAt:encryptionKey:)`. A store is one directory with its attachments in it.
    ///
    /// - Throws: also `invalidArgument` (400) where attachments are said to be somewhere else.
    @available(*, deprecated, renamed: "replaceDatabase(named:withDatabaseAt:)")
    public func replaceDatabaseNamed(
        _ name: String, withDatabaseFile path: String, withAttachments attachments: String?
    ) throws(CofferError) {
        guard attachments == nil else {
            throw CofferError(.invalidArgument, "a store keeps its attachments in its own directory")
        }
        try replaceDatabase(named: name, withDatabaseAt: URL(filePath: path, directoryHint: .isDirectory))
    }
}

extension Database {
    /// ``changeEncryptionKey(to:keeping:droppingOtherKeys:keyedNames:)``.
    @available(*, deprecated, renamed: "changeEncryptionKey(to:)")
    public func changeEncryptionKey(_ key: SymmetricKey?) throws(CofferError) { _ = try changeEncryptionKey(to: key) }

    /// `inTransaction(_:)`.
    @available(*, deprecated, renamed: "inTransaction(_:)")
    public func inBatch(using body: () throws -> Void) throws { try inTransaction(body) }

    /// ``allDocuments(_:)``.
    @available(*, deprecated, renamed: "allDocuments()")
    public func createAllDocumentsQuery() -> Rows<SavedRevision> { allDocuments() }

    /// ``view(named:)``.
    @available(*, deprecated, renamed: "view(named:)")
    public func viewNamed(_ name: String) -> DatabaseView { view(named: name) }

    /// ``existingView(named:)``.
    @available(*, deprecated, renamed: "existingView(named:)")
    public func existingViewNamed(_ name: String) throws(CofferError) -> DatabaseView? { try existingView(named: name) }

    /// ``addChangeListener(on:_:)``.
    @available(*, deprecated, renamed: "addChangeListener(on:_:)")
    @discardableResult
    public func addChangeListener(
        withQueue queue: DispatchQueue?, _ listener: @escaping @Sendable (DatabaseChanges) -> Void
    ) -> ChangeListenerToken {
        addChangeListener(on: queue, listener)
    }

    /// ``Document/addChangeListener(on:_:)``.
    @available(*, deprecated, message: "use document(withID:).addChangeListener(on:_:)")
    @discardableResult
    public func addDocumentChangeListener(
        withID id: String, queue: DispatchQueue? = nil, _ listener: @escaping @Sendable (DatabaseChanges) -> Void
    ) -> ChangeListenerToken {
        document(withID: id).addChangeListener(on: queue, listener)
    }
}

extension Document {
    /// Saves properties as the document's next revision: `_rev` among them must be the current one, `_deleted: true` deletes the
    /// document.
    ///
    /// - Throws: `conflict` (409) also where a document is there and `_rev` is not; as `save()`.
    @available(*, deprecated, message: "use newRevision() and save(), or Database.save(_:withID:replacing:)")
    @discardableResult
    public func putProperties(_ properties: JSONObject) throws(CofferError) -> SavedRevision {
        var properties = properties
        let isDeletion = properties["_deleted"]
        guard isDeletion == nil || isDeletion?.boolValue != nil else {
            throw CofferError(.invalidJSON, of: subject, "_deleted has a value of another type")
        }
        properties["_deleted"] = nil
        let staged = try StagedContent.stage(properties.blobs, in: database.storage)
        let parsed: DocumentBody
        do throws(CofferError) {
            parsed = try DocumentBody(properties)
        } catch {
            throw error.about(subject)
        }
        return try database.draft(of: parsed, documentID, nil, isDeletion: isDeletion == true, staged: staged).save()
    }
}

extension SavedRevision {
    /// ``attachment(named:)``.
    @available(*, deprecated, renamed: "attachment(named:)")
    public func attachmentNamed(_ name: String) throws(CofferError) -> Attachment? { try attachment(named: name) }
}

extension UnsavedRevision {
    /// ``attachment(named:)``.
    @available(*, deprecated, renamed: "attachment(named:)")
    public func attachmentNamed(_ name: String) -> Attachment? { attachment(named: name) }

    /// ``setAttachment(named:contentType:content:)``.
    @available(*, deprecated, renamed: "setAttachment(named:contentType:content:)")
    public func setAttachmentNamed(_ name: String, withContentType contentType: String?, content: Data) {
        setAttachment(named: name, contentType: contentType, content: content)
    }

    /// `setAttachment(named:contentType:contentsOf:)`.
    @available(*, deprecated, renamed: "setAttachment(named:contentType:contentsOf:)")
    public func setAttachmentNamed(
        _ name: String, withContentType contentType: String?, contentURL: URL
    ) throws(CofferError) {
        try setAttachment(named: name, contentType: contentType, contentsOf: contentURL)
    }

    /// ``removeAttachment(named:)``.
    @available(*, deprecated, renamed: "removeAttachment(named:)")
    public func removeAttachmentNamed(_ name: String) { removeAttachment(named: name) }
}
