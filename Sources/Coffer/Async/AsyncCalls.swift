internal import CofferModel
internal import CofferRecords
public import CofferSealing
internal import Dispatch
public import Foundation
internal import Synchronization

// The same calls for tasks. The compiler picks these wherever it may suspend, so that no thread of the cooperative pool
// is blocked while another transaction runs. Each does what its namesake does, throws what that throws, and `cancelled`
// (499) when the task was cancelled before anything was done, but for `close`.

// Opening derives a key, which takes a quarter of a second for a password, and may wait for another process.

extension Manager {
    /// Opens the database of that name, or creates it where `options.create` says so: see the form without `async`. A task that
    /// is cancelled while another process has it open waits no longer: `cancelled` (499).
    public func openDatabase(
        named name: String, options: DatabaseOptions = DatabaseOptions()
    ) async throws -> Database {
        let patience = Patience()
        return try await withTaskCancellationHandler {
            try await inBackground { [self] in
                try openDatabase(named: name, options: options) { !patience.isOver.load(ordering: .relaxed) }
            }
        } onCancel: {
            patience.isOver.store(true, ordering: .relaxed)
        }
    }

    /// Opens the database of that name, or creates it: see the form without `async`.
    public func database(named name: String, encryptionKey: SymmetricKey? = nil) async throws -> Database {
        try await inBackground { [self] in try database(named: name, encryptionKey: encryptionKey) }
    }

    /// Opens the database of that name, if there is one: see the form without `async`.
    public func existingDatabase(named name: String, encryptionKey: SymmetricKey? = nil) async throws -> Database? {
        try await inBackground { [self] in try existingDatabase(named: name, encryptionKey: encryptionKey) }
    }

    /// Deletes a database that is not open: see the form without `async`.
    public func deleteDatabase(named name: String) async throws {
        try await inBackground { [self] in try deleteDatabase(named: name) }
    }

    package func inBackground<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        if Task.isCancelled { throw CofferError(.cancelled) }
        return try await withCheckedThrowingContinuation { continuation in
            Self.opening.async { continuation.resume(with: Result { try work() }) }
        }
    }

    private static let opening = DispatchQueue(label: "coffer.opening", attributes: .concurrent)
}

/// Whether a task still waits for a database.
private final class Patience: Sendable {
    let isOver = Atomic(false)
}

extension Manager {
    // MARK: Working in the background

    /// Has `body` run with a database on a thread of the manager's own, and returns at once.
    ///
    /// ```swift
    /// database.manager.backgroundTell(databaseNamed: "people") { database in
    ///     try database.document(withID: "Robin").delete()
    /// }
    /// ```
    ///
    /// The database is opened for it if it is not open: as `database(named:encryptionKey:)` does, created and unencrypted
    /// where there isn't one. An encrypted one that is not open is `keyRequired` (401), since nobody gives a key here.
    /// One manager does these one after another. A database may be used from any thread in Coffer, so that
    /// this is no more than a way not to wait.
    ///
    /// - Parameters:
    ///   - name: the database's name.
    ///   - body: what is run.
    ///   - onFailure: given, on the same thread, why the database could not be opened, or what `body` throws. Default: nothing
    ///     is done with it.
    public func backgroundTell(
        databaseNamed name: String, _ body: @escaping @Sendable (Database) throws -> Void,
        onFailure: @escaping @Sendable (any Error) -> Void = { _ in }
    ) {
        background.async { [self] in
            do {
                try body(try database(named: name))
            } catch {
                onFailure(error)
            }
        }
    }
}

extension Database {
    /// Runs `body` as one transaction: see the form without `async`. `body` runs on a thread of the database's own.
    @discardableResult
    public func inTransaction<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await storage.inBackground { [self] in try inTransaction(body) }
    }

    /// Saves a document as its next revision, and brings it up to date: see the form without `async`.
    @discardableResult
    public func saveDocument(
        _ document: MutableDocument, concurrencyControl: ConcurrencyControl = .failOnConflict
    ) async throws -> SavedRevision {
        let draft = try draft(of: document, concurrencyControl)
        return document.noteSaved(try await storage.inBackground { try draft.save() })
    }

    /// Deletes a document: see the form without `async`.
    @discardableResult
    public func deleteDocument(
        _ document: MutableDocument, concurrencyControl: ConcurrencyControl = .failOnConflict
    ) async throws -> SavedRevision {
        let draft = try deletion(of: document, concurrencyControl)
        return document.noteSaved(try await storage.inBackground { try draft.save() })
    }

    /// Saves JSON as a document's next revision: see the form without `async`.
    @discardableResult
    public func save(
        json: Data, withID id: String? = nil, replacing revisionID: RevisionID? = nil
    ) async throws -> SavedRevision {
        let draft = try draft(ofJSON: json, id, revisionID)
        return try await storage.inBackground { try draft.save() }
    }

    /// Saves JSON as a document's next revision, together with contents: see the form without `async`. `contents` runs here.
    @discardableResult
    public func save(
        json: Data, withID id: String? = nil, replacing revisionID: RevisionID? = nil,
        contents content: (ContentReference) throws -> Blob?
    ) async throws -> SavedRevision {
        let draft = try draft(ofJSON: json, id, revisionID, contents: content)
        return try await storage.inBackground { try draft.save() }
    }

    /// Saves properties as a document's next revision: see the form without `async`.
    @discardableResult
    public func save(
        _ properties: JSONObject, withID id: String? = nil, replacing revisionID: RevisionID? = nil
    ) async throws -> SavedRevision {
        let draft = try draft(of: properties, id, revisionID)
        return try await storage.inBackground { try draft.save() }
    }

    /// Saves a value as a document's next revision: see the form without `async`. The value is encoded here, and crosses
    /// to no other thread.
    @discardableResult
    public func save(
        _ value: some Encodable, withID id: String? = nil, replacing revisionID: RevisionID? = nil
    ) async throws -> SavedRevision {
        let draft = try draft(of: value, id, revisionID)
        return try await storage.inBackground { try draft.save() }
    }

    /// Reads, changes and saves a document in one transaction: see the form without `async`. `change` runs on a thread of
    /// the database's own.
    @discardableResult
    public func update<Value: Codable & SendableMetatype>(
        _ id: String, as type: Value.Type = Value.self, _ change: @escaping @Sendable (inout Value) throws -> Void
    ) async throws -> SavedRevision {
        try await storage.inBackground { [self] in try update(id, as: type, change) }
    }

    /// Saves a revision of another database as it is there: see the form without `async`.
    @discardableResult
    public func putExistingRevision(
        _ properties: JSONObject, withID id: String, history: [RevisionID]? = nil, isDeletion: Bool = false,
        attachments: [String: Blob] = [:]
    ) async throws -> ExistingRevisionResult {
        let revision = try existingRevision(properties, id, history, isDeletion, attachments)
        return try await storage.inBackground { try revision.put() }
    }

    /// Saves a revision of another database, given as JSON: see the form without `async`.
    @discardableResult
    public func putExistingRevision(
        json: Data, withID id: String? = nil, history: [RevisionID]? = nil, attachments: [String: Blob] = [:]
    ) async throws -> ExistingRevisionResult {
        let revision = try existingRevision(ofJSON: json, id, history, attachments)
        return try await storage.inBackground { try revision.put() }
    }

    /// Sets how many revisions of one line are kept: see the form without `async`.
    public func setMaxRevTreeDepth(_ depth: Int) async throws {
        try await storage.inBackground { [self] () throws(CofferError) in try setMaxRevTreeDepth(depth) }
    }

    /// Saves a local document, over the one with that id if there is one: see the form without `async`.
    public func saveLocalDocument(_ properties: JSONObject, withID id: String) async throws {
        try await storage.inBackground { [self] () throws(CofferError) in
            try saveLocalDocument(properties, withID: id)
        }
    }

    /// Deletes a local document: see the form without `async`.
    public func deleteLocalDocument(withID id: String) async throws {
        try await storage.inBackground { [self] () throws(CofferError) in try deleteLocalDocument(withID: id) }
    }

    /// Declares an index over properties: see the form without `async`.
    @discardableResult
    public func createIndex(named name: String, on paths: PropertyPath...) async throws -> Bool {
        try await createIndex(named: name, on: paths)
    }

    /// Declares an index over properties: see the form without `async`.
    @discardableResult
    public func createIndex(named name: String, on paths: [PropertyPath]) async throws -> Bool {
        try await storage.inBackground { [self] () throws(CofferError) in try createIndex(named: name, on: paths) }
    }

    /// Drops an index: see the form without `async`.
    @discardableResult
    public func deleteIndex(named name: String) async throws -> Bool {
        try await storage.inBackground { [self] () throws(CofferError) in try deleteIndex(named: name) }
    }

    /// Brings all declared indexes up to date: see the form without `async`.
    @discardableResult
    public func updateIndexes() async throws -> Int {
        try await storage.inBackground { [self] () throws(CofferError) in try updateIndexes() }
    }

    /// Waits for reads and writes under way, then closes: see the form without `async`. A task that was cancelled closes it
    /// all the same.
    public func close() async throws {
        try await storage.inBackground(leavesWhenCancelled: false) { [storage] () throws(CofferError) in
            try storage.close()
        }
    }

    /// Closes the database and deletes it: see the form without `async`.
    public func delete() async throws {
        try await storage.inBackground { [storage] () throws(CofferError) in try storage.close(removing: true) }
    }
}

extension Document {
    /// Deletes the document: see the form without `async`.
    @discardableResult
    public func delete() async throws -> SavedRevision {
        try await database.storage.inBackground { [self] () throws(CofferError) in try delete() }
    }

    /// Makes one revision of all that are in conflict: see the form without `async`. `merge` runs on a thread of the
    /// database's own.
    @discardableResult
    public func resolveConflicts(
        _ merge: @escaping @Sendable (_ draft: UnsavedRevision, _ others: [SavedRevision]) throws -> Void
    ) async throws -> SavedRevision? {
        try await database.storage.inBackground { [self] in try resolveConflicts(merge) }
    }

    /// Removes the document with all its revisions: see the form without `async`.
    @discardableResult
    public func purge() async throws -> [RevisionID] {
        try await database.storage.inBackground { [self] () throws(CofferError) in try purge() }
    }

    /// Removes revisions that nothing follows: see the form without `async`.
    @discardableResult
    public func purge(_ revisions: [RevisionID]) async throws -> [RevisionID] {
        try await database.storage.inBackground { [self] () throws(CofferError) in try purge(revisions) }
    }

    /// Has the document purged at a time, or never: see the form without `async`.
    public func setExpirationDate(_ date: Date?) async throws {
        try await database.storage.inBackground { [self] () throws(CofferError) in try setExpirationDate(date) }
    }
}

extension SavedRevision {
    /// Saves a revision that deletes the document: see the form without `async`.
    @discardableResult
    public func deleteDocument() async throws -> SavedRevision {
        try await document.storage.inBackground { [self] () throws(CofferError) in try deleteDocument() }
    }
}

extension UnsavedRevision {
    /// Saves the draft as the document's next revision: see the form without `async`.
    @discardableResult
    public func save() async throws -> SavedRevision {
        let draft = try draft(allowsConflict: false)
        return try noteSaved(try await document.storage.inBackground { try draft.save() }, draft)
    }

    /// Saves the draft even if the revision that it was made from has been replaced: see the form without `async`.
    @discardableResult
    public func saveAllowingConflict() async throws -> SavedRevision {
        let draft = try draft(allowsConflict: true)
        return try noteSaved(try await document.storage.inBackground { try draft.save() }, draft)
    }
}

extension DatabaseView {
    /// Brings the view up to date: see the form without `async`.
    @discardableResult
    public func updateIndex() async throws -> Int {
        try await database.storage.inBackground { [self] () throws(CofferError) in try updateIndex() }
    }

    /// Drops the view's entries: see the form without `async`.
    @discardableResult
    public func deleteIndex() async throws -> Bool {
        try await database.storage.inBackground { [self] () throws(CofferError) in try deleteIndex() }
    }

    /// Deletes the view: see the form without `async`.
    public func delete() async throws {
        try await database.storage.inBackground { [self] () throws(CofferError) in try delete() }
    }
}
