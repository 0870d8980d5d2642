public import Dispatch

extension Database {
    // MARK: Watching

    /// The commits of this database from here on, one element each, in their order. What was changed before is what
    /// ``changes(since:options:)`` lists; what one commit changed is its ``DatabaseChanges/changes``.
    ///
    /// ```swift
    /// for await commit in database.changes {
    ///     switch commit {
    ///     case .committed(let changes): show(changes.map(\.documentID))
    ///     case .missed(let sequence): catchUp(since: sequence)
    ///     }
    /// }
    /// ```
    ///
    /// An element comes when its commit is on the disk, and none for what was rolled back, an inner transaction's changes
    /// included. Local documents are not told of. Up to 1,024 commits wait for a slow consumer, with 100,000 changes in all
    /// of them; one that is further behind gets one ``DatabaseChanges/missed(since:)`` instead. The sequence ends when the
    /// database is closed, and does not keep it open. A change of the database's key does not end it.
    public var changes: DatabaseChangeSequence { DatabaseChangeSequence(storage.hub, documentID: nil) }

    /// Has `listener` called with each commit from here on, in their order and one call after another.
    ///
    /// What it receives, and when, is as in ``changes``, but for a pause of about a millisecond after a call, in which
    /// commits that follow closely gather. It may read and write the database; what it reads may be newer than
    /// what it receives. It can't close or delete the database, or change its key, which waits for listeners: that is a
    /// 400. It is called until it is removed. A commit before a close is delivered even after it.
    ///
    /// - Parameters:
    ///   - queue: where it is called. Default: nil, a queue of its own.
    ///   - listener: what is called.
    /// - Returns: what to remove it by. The listener does not end with it.
    @discardableResult
    public func addChangeListener(
        on queue: DispatchQueue? = nil, _ listener: @escaping @Sendable (DatabaseChanges) -> Void
    ) -> ChangeListenerToken {
        storage.addChangeListener(on: queue, documentID: nil, listener)
    }

    /// Removes a listener: see ``ChangeListenerToken/remove()``.
    public func removeChangeListener(_ token: ChangeListenerToken) { token.remove() }
}

extension Document {
    // MARK: Watching

    /// The commits from here on that change this document, with what they change of it: see ``Database/changes``.
    public var changes: DatabaseChangeSequence { DatabaseChangeSequence(database.storage.hub, documentID: documentID) }

    /// Has `listener` called with each commit from here on that changes this document: see
    /// ``Database/addChangeListener(on:_:)``.
    @discardableResult
    public func addChangeListener(
        on queue: DispatchQueue? = nil, _ listener: @escaping @Sendable (DatabaseChanges) -> Void
    ) -> ChangeListenerToken {
        database.storage.addChangeListener(on: queue, documentID: documentID, listener)
    }
}

extension Storage {
    fileprivate func addChangeListener(
        on queue: DispatchQueue?, documentID: String?, _ body: @escaping @Sendable (DatabaseChanges) -> Void
    ) -> ChangeListenerToken {
        let queue = queue ?? DispatchQueue(label: "coffer.listener", qos: .userInitiated)
        return ChangeListenerToken(
            ChangeListener(on: queue, documentID: documentID, calls: hub.calls, body), in: hub)
    }
}
