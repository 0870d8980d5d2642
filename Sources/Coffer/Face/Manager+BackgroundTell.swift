internal import CofferSealing
internal import Dispatch

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
