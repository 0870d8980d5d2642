internal import CofferSealing
public import Foundation

// The same calls for tasks: see Database+Async.swift.

extension Database {
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
}

extension Document {
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
}
