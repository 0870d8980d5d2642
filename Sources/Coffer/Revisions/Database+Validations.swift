internal import CofferModel

/// Says whether a revision passes, given the parameters of whoever asks.
public typealias RevisionFilter = @Sendable (_ revision: SavedRevision, _ parameters: JSONObject) throws -> Bool

extension Database {
    // MARK: Functions

    /// Has every revision looked at before it is saved, those from peers too.
    ///
    /// ```swift
    /// database.setValidation(named: "tasks have titles") { revision in
    ///     let type: String? = try revision["type"]
    ///     if type == "task", try revision["title"] == nil { try revision.reject("a task needs a title") }
    /// }
    /// ```
    ///
    /// Validations run within the save, on its thread, one after another in the order of their names; what they read is what
    /// the transaction sees. They can't write: that is a 400. They hold while the database is open and are not stored. The
    /// same edit saved again is the same revision, which nothing looks at twice.
    ///
    /// - Parameters:
    ///   - name: whatever tells it from others.
    ///   - validation: throws to refuse the revision: with ``ProposedRevision/reject(_:)``, or any error, which becomes the
    ///     cause of a `rejected` (403). Nil removes the validation of that name.
    public func setValidation(named name: String, _ validation: (@Sendable (ProposedRevision) throws -> Void)?) {
        storage.functions.setValidation(name, validation)
    }

    /// Whether there is a validation of that name.
    public func hasValidation(named name: String) -> Bool { storage.functions.hasValidation(name) }

    /// Names a function that says which revisions pass, for ``changes(since:options:)`` and for replications.
    ///
    /// It holds while the database is open and is not stored.
    ///
    /// - Parameters:
    ///   - name: whatever tells it from others.
    ///   - filter: is given a revision, deletions too, and parameters. Nil removes the filter of that name.
    public func setFilter(named name: String, _ filter: RevisionFilter?) { storage.functions.setFilter(name, filter) }

    /// The filter of that name; nil if there isn't one.
    public func filter(named name: String) -> RevisionFilter? { storage.functions.filter(name) }
}
