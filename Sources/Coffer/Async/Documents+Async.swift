internal import CofferSealing

// The same calls for tasks: see Database+Async.swift.

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
