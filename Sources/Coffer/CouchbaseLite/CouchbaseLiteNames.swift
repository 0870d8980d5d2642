internal import CofferModel
public import CofferSealing
public import Dispatch
public import Foundation

// The names that Couchbase Lite has in Swift, for code that is being moved over. Each says what it is called here.

extension Manager {
    /// ``shared``.
    @available(*, deprecated, renamed: "shared")
    public static func sharedInstance() -> Manager { shared }

    /// `database(named:encryptionKey:)`.
    @available(*, deprecated, renamed: "database(named:)")
    public func databaseNamed(_ name: String) throws(CofferError) -> Database { try database(named: name) }

    /// `existingDatabase(named:encryptionKey:)`.
    @available(*, deprecated, renamed: "existingDatabase(named:)")
    public func existingDatabaseNamed(_ name: String) throws(CofferError) -> Database? {
        try existingDatabase(named: name)
    }

    /// `openDatabase(named:options:)`.
    @available(*, deprecated, renamed: "openDatabase(named:options:)")
    public func openDatabaseNamed(
        _ name: String, withOptions options: DatabaseOptions
    ) throws(CofferError) -> Database {
        try openDatabase(named: name, options: options)
    }

    /// ``databaseExists(named:)``.
    @available(*, deprecated, renamed: "databaseExists(named:)")
    public func databaseExistsNamed(_ name: String) -> Bool { databaseExists(named: name) }

    /// ``backgroundTell(databaseNamed:_:onFailure:)``.
    @available(*, deprecated, renamed: "backgroundTell(databaseNamed:_:)")
    public func backgroundTellDatabaseNamed(_ name: String, to body: @escaping @Sendable (Database) throws -> Void) {
        backgroundTell(databaseNamed: name, body)
    }

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
    /// ``document(withID:)``.
    @available(*, deprecated, renamed: "document(withID:)")
    public func documentWithID(_ id: String) -> Document { document(withID: id) }

    /// ``subscript(_:)``.
    @available(*, deprecated, renamed: "subscript(_:)")
    public func existingDocumentWithID(_ id: String) throws(CofferError) -> Document? { try self[id] }

    /// `delete()`.
    @available(*, deprecated, renamed: "delete()")
    public func deleteDatabase() throws(CofferError) { try delete() }

    /// ``localDocument(withID:)``.
    @available(*, deprecated, renamed: "localDocument(withID:)")
    public func existingLocalDocumentWithID(_ id: String) throws(CofferError) -> JSONObject? {
        try localDocument(withID: id)
    }

    /// `saveLocalDocument(_:withID:)`, or, for nil, `deleteLocalDocument(withID:)`.
    @available(*, deprecated, renamed: "saveLocalDocument(_:withID:)")
    public func putLocalDocument(_ properties: JSONObject?, withID id: String) throws(CofferError) {
        if let properties {
            try saveLocalDocument(properties, withID: id)
        } else {
            try deleteLocalDocument(withID: id)
        }
    }

    /// `deleteLocalDocument(withID:)`.
    @available(*, deprecated, renamed: "deleteLocalDocument(withID:)")
    public func deleteLocalDocumentWithID(_ id: String) throws(CofferError) { try deleteLocalDocument(withID: id) }

    /// ``setValidation(named:_:)``.
    @available(*, deprecated, renamed: "setValidation(named:_:)")
    public func setValidationNamed(_ name: String, asBlock body: (@Sendable (ProposedRevision) throws -> Void)?) {
        setValidation(named: name, body)
    }

    /// ``setFilter(named:_:)``.
    @available(*, deprecated, renamed: "setFilter(named:_:)")
    public func setFilterNamed(_ name: String, asBlock filter: RevisionFilter?) { setFilter(named: name, filter) }

    /// ``filter(named:)``.
    @available(*, deprecated, renamed: "filter(named:)")
    public func filterNamed(_ name: String) -> RevisionFilter? { filter(named: name) }

    /// ``removeChangeListener(_:)``.
    @available(*, deprecated, renamed: "removeChangeListener(_:)")
    public func removeChangeListener(withToken token: ChangeListenerToken) { token.remove() }

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
    /// `delete()`.
    @available(*, deprecated, renamed: "delete()")
    public func deleteDocument() throws(CofferError) -> SavedRevision { try delete() }

    /// ``revision(withID:)``.
    @available(*, deprecated, renamed: "revision(withID:)")
    public func revisionWithID(_ id: RevisionID) throws(CofferError) -> SavedRevision? { try revision(withID: id) }

    /// `purge()`.
    @available(*, deprecated, renamed: "purge()")
    public func purgeDocument() throws(CofferError) { try purge() }

    /// ``leafRevisions``.
    @available(*, deprecated, renamed: "leafRevisions")
    public func getLeafRevisions() throws(CofferError) -> [SavedRevision] { try leafRevisions }

    /// ``conflictingRevisions``.
    @available(*, deprecated, renamed: "conflictingRevisions")
    public func getConflictingRevisions() throws(CofferError) -> [SavedRevision] { try conflictingRevisions }

    /// ``revisionHistory``.
    @available(*, deprecated, renamed: "revisionHistory")
    public func getRevisionHistory() throws(CofferError) -> [SavedRevision] { try revisionHistory }

    /// `putExistingRevision(_:withID:history:isDeletion:attachments:)`.
    @available(*, deprecated, message: "use Database.putExistingRevision(_:withID:history:isDeletion:attachments:)")
    public func putExistingRevision(
        withProperties properties: JSONObject, attachments: [String: Blob]?, revisionHistory: [RevisionID]
    ) throws(CofferError) {
        try database.putExistingRevision(
            properties, withID: documentID, history: revisionHistory, attachments: attachments ?? [:])
    }

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
    /// ``history``.
    @available(*, deprecated, renamed: "history")
    public func getHistory() throws(CofferError) -> [SavedRevision] { try history }

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
