public import CofferSealing

// The names that Couchbase Lite 1.x has in Swift, for code that is being moved over. Each says what it is called here.

extension Manager {
    /// ``shared``.
    @available(*, deprecated, renamed: "shared")
    public static func sharedInstance() -> Manager { shared }

    /// ``database(named:encryptionKey:)``.
    @available(*, deprecated, renamed: "database(named:)")
    public func databaseNamed(_ name: String) throws(CofferError) -> Database { try database(named: name) }

    /// ``existingDatabase(named:encryptionKey:)``.
    @available(*, deprecated, renamed: "existingDatabase(named:)")
    public func existingDatabaseNamed(_ name: String) throws(CofferError) -> Database? {
        try existingDatabase(named: name)
    }

    /// ``openDatabase(named:options:)``.
    @available(*, deprecated, renamed: "openDatabase(named:options:)")
    public func openDatabaseNamed(
        _ name: String, withOptions options: DatabaseOptions
    ) throws(CofferError) -> Database {
        try openDatabase(named: name, options: options)
    }

    /// ``databaseExists(named:)``.
    @available(*, deprecated, renamed: "databaseExists(named:)")
    public func databaseExistsNamed(_ name: String) -> Bool { databaseExists(named: name) }
}

extension Database {
    /// ``document(withID:)``.
    @available(*, deprecated, renamed: "document(withID:)")
    public func documentWithID(_ id: String) -> Document { document(withID: id) }

    /// ``subscript(_:)``.
    @available(*, deprecated, renamed: "subscript(_:)")
    public func existingDocumentWithID(_ id: String) throws(CofferError) -> Document? { try self[id] }

    /// ``delete()``.
    @available(*, deprecated, renamed: "delete()")
    public func deleteDatabase() throws(CofferError) { try delete() }
}

extension Document {
    /// ``delete()``.
    @available(*, deprecated, renamed: "delete()")
    public func deleteDocument() throws(CofferError) -> SavedRevision { try delete() }

    /// ``revision(withID:)``.
    @available(*, deprecated, renamed: "revision(withID:)")
    public func revisionWithID(_ id: RevisionID) throws(CofferError) -> SavedRevision? { try revision(withID: id) }
}
