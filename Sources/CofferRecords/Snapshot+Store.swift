package import CofferSealing
internal import CofferSQLite
package import CofferVault

// What a database file says of the store that it belongs to, and the life of its connection.

extension Snapshot {
    /// What errors say that they happened to.
    package var subject: String { connection.subject }

    /// The binding row.
    ///
    /// - Throws: `damaged` (500) where it is missing.
    package func binding() throws(CofferError) -> Binding { try Binding.read(from: connection) }

    /// The UUID that replication uses for the database, 16 bytes; nil in a backup that was not opened for writing yet.
    package func identity() throws(CofferError) -> [UInt8]? { try DatabaseIdentity.read(from: connection) }

    /// What the keys are called, by the ids of their slots, whether there are such slots or not.
    package func keyLabels() throws(CofferError) -> [KeySlot.ID: String] { try KeyLabels.read(from: connection) }

    /// The keys that the generation was encrypted under as it was made; nil if nobody noted them.
    package func firstKeys() throws(CofferError) -> Set<KeySlot.ID>? { try FirstKeys.read(from: connection) }

    /// What peers are known to have.
    package func peerKnowledge() throws(CofferError) -> PeerKnowledge { try PeerKnowledge.read(connection) }

    // MARK: The connection

    /// Notes that the calling thread is inside the connection until ``vacate()``. Stops the process where another is.
    package func occupy() { connection.occupy() }

    package func vacate() { connection.vacate() }

    /// Limits the page cache to `byteCount` bytes.
    package func setCache(byteCount: Int) throws(CofferError) { try connection.setCache(byteCount: byteCount) }

    /// Holds what it reads next until it is closed: one snapshot, whoever writes meanwhile.
    package func hold() throws(CofferError) { try connection.execute("BEGIN") }

    /// Closes the connection. Does nothing the second time.
    package func close() throws(CofferError) { try connection.close() }

    /// Lets go of the file without another read or write of it, as a crash would: for use after a failed write.
    package func abandon() { connection.abandon() }
}

extension Change {
    /// Notes that the manifest has this sequence now.
    package func bind(sequence: UInt64) throws(CofferError) {
        try Binding.update(sequence: sequence, in: snapshot.connection)
    }

    /// Gives the database an identity that no other has.
    package func renewIdentity() throws(CofferError) { try DatabaseIdentity.renew(in: snapshot.connection) }

    package func insertLabel(_ label: String, of slot: KeySlot.ID) throws(CofferError) {
        try KeyLabels.insert(label, of: slot, in: snapshot.connection)
    }

    /// Removes the labels of all slots but those of `manifest`.
    package func removeOrphanLabels(of manifest: Manifest) throws(CofferError) {
        try KeyLabels.removeOrphans(of: manifest, in: snapshot.connection)
    }

    /// Makes the tables of views and declared indexes, empty, in the place of what another version made, if anything.
    package func makeIndexTables() throws(CofferError) {
        try snapshot.connection.execute(IndexSchema.dropping)
        try snapshot.connection.execute(IndexSchema.creation)
        try snapshot.connection.execute(IndexSchema.emptying)
    }
}
