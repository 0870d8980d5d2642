internal import CofferSealing
public import Foundation

// The same calls for tasks: see Databases+Async.swift.

extension Document {
    /// Deletes the document: see the form without `async`.
    @discardableResult
    public func delete() async throws -> SavedRevision {
        try await database.storage.inBackground { [self] () throws(CofferError) in try delete() }
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

extension Database {
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
}

extension Database {
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
}

extension Document {
    /// Has the document purged at a time, or never: see the form without `async`.
    public func setExpirationDate(_ date: Date?) async throws {
        try await database.storage.inBackground { [self] () throws(CofferError) in try setExpirationDate(date) }
    }
}

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
