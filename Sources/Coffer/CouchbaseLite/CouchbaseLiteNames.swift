public import CofferSealing

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
}

extension SavedRevision {
    /// ``history``.
    @available(*, deprecated, renamed: "history")
    public func getHistory() throws(CofferError) -> [SavedRevision] { try history }
}
