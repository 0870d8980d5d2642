internal import CofferModel
internal import CofferRecords
internal import CofferSealing
public import Foundation

// The same calls for tasks. The compiler picks these wherever it may suspend, so that no thread of the cooperative pool
// is blocked while another transaction runs. Each does what its namesake does, throws what that throws, and `cancelled`
// (499) when the task was cancelled before anything was done, but for `close`.

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
