internal import CofferModel
internal import CofferSealing

/// How often a save that met a conflict is tried in all: more often only a caller in whose way others always are would need it.
private let saveAttemptLimit = 10

extension Database {
    // MARK: Changing what others change too

    /// Changes a document: `change` is given a draft of its next revision, which is saved then.
    ///
    /// ```swift
    /// try database.update("Robin") { draft in draft["age"] = 32 }
    /// ```
    ///
    /// Nothing is locked while `change` runs. Where somebody else saved the document meanwhile, it is called again, with a draft
    /// of what follows their revision: so it is best left to change nothing but the draft.
    ///
    /// - Parameters:
    ///   - id: the document's id.
    ///   - change: changes the draft, which has the properties and attachments of the current revision. Setting
    ///     ``UnsavedRevision/isDeletion`` deletes the document.
    /// - Returns: the revision that it became.
    /// - Throws: what `change` throws; `documentNotFound` (404) when there isn't one; `conflict` (409) when somebody
    ///   was faster ten times; and as `save()`. Nothing is saved then.
    @discardableResult
    public func update(_ id: String, _ change: (UnsavedRevision) throws -> Void) throws -> SavedRevision {
        let document = document(withID: id)
        for attempt in 1... {
            guard let current = try document.currentRevision else {
                throw CofferError(.documentNotFound, of: document.subject)
            }
            let draft = try current.createRevision()
            try change(draft)
            do {
                return try draft.save()
            } catch {
                // One that contradicts itself would do so again.
                let isOvertaken = error.code == .conflict && attempt < saveAttemptLimit && document.isOvertaken(current)
                guard isOvertaken else { throw error }
            }
        }
        throw CofferError(.conflict, of: document.subject)
    }

    /// Changes a document: see the form without `async`. `change` runs on a thread of the database's own.
    @discardableResult
    public func update(
        _ id: String, _ change: @escaping @Sendable (UnsavedRevision) throws -> Void
    ) async throws -> SavedRevision {
        try await storage.inBackground { [self] in try update(id, change) }
    }

    /// Reads a document as your own type, lets `change` change it, and saves it, all in one transaction: nobody can
    /// save it in between.
    ///
    /// - Returns: the revision that it became.
    /// - Throws: `documentNotFound` (404), `DecodingError` when it does not fit, what `change` throws, and as
    ///   `saveDocument(_:concurrencyControl:)`. Nothing is saved then.
    @discardableResult
    public func update<Value: Codable>(
        _ id: String, as type: Value.Type = Value.self, _ change: (inout Value) throws -> Void
    ) throws -> SavedRevision {
        try inTransaction {
            let document = document(withID: id)
            guard let current = try document.currentRevision else {
                throw CofferError(.documentNotFound, of: document.subject)
            }
            var value = try current.decode(type)
            try change(&value)
            return try save(value, withID: id, replacing: current.revisionID)
        }
    }

    /// Saves a document, and asks what is to become of it where somebody else saved it since.
    ///
    /// ```swift
    /// try database.saveDocument(task) { mine, theirs in
    ///     mine["tags"] = merged(mine["tags"], try theirs?["tags"])
    ///     return true
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - document: the document. A new one may turn out to have the id of another.
    ///   - conflictHandler: called where the document can't follow what it was made from, with the current revision;
    ///     nil if that deletes the document. It makes `mine` what is to be saved, and returns true: unchanged, to keep
    ///     that; with `theirs.properties`, to keep those; or with what comes of both. Attachments are those of
    ///     `theirs`. With false theirs stays, and the save is a 409. It is called again where somebody saves the
    ///     document meanwhile, at most ten times; nothing is locked while it runs.
    /// - Returns: the revision that it became.
    /// - Throws: what `conflictHandler` throws, and as `saveDocument(_:concurrencyControl:)`. Nothing is saved then.
    @discardableResult
    public func saveDocument(
        _ document: MutableDocument, conflictHandler: (_ mine: MutableDocument, _ theirs: SavedRevision?) throws -> Bool
    ) throws -> SavedRevision {
        var parent = try self.parent(of: document)
        for attempt in 1... {
            do {
                return document.noteSaved(try draft(of: document, following: parent).save())
            } catch {
                guard error.code == .conflict, attempt <= saveAttemptLimit else { throw error }
                let theirs = try self.document(withID: document.id).currentRevision
                guard try conflictHandler(document, theirs) else { throw error }
                parent = theirs.map { .revision($0.revisionID) } ?? .none
            }
        }
        throw CofferError(.conflict, of: "document \(document.id)")
    }

    /// Saves a document, and asks what is to become of a conflict: see the form without `async`. `conflictHandler` is called
    /// here, on no other thread.
    @discardableResult
    public func saveDocument(
        _ document: MutableDocument, conflictHandler: (_ mine: MutableDocument, _ theirs: SavedRevision?) throws -> Bool
    ) async throws -> SavedRevision {
        var parent = try self.parent(of: document)
        for attempt in 1... {
            let draft = try draft(of: document, following: parent)
            do {
                return document.noteSaved(try await storage.inBackground { try draft.save() })
            } catch let error as CofferError where error.code == .conflict && attempt <= saveAttemptLimit {
                let theirs = try self.document(withID: document.id).currentRevision
                guard try conflictHandler(document, theirs) else { throw error }
                parent = theirs.map { .revision($0.revisionID) } ?? .none
            }
        }
        throw CofferError(.conflict, of: "document \(document.id)")
    }
}

extension Document {
    /// Whether the revision isn't the current one any more.
    fileprivate func isOvertaken(_ revision: SavedRevision) -> Bool {
        (try? currentRevision) != revision
    }
}
