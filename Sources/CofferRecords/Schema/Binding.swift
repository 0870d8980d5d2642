package import CofferSealing
internal import CofferSQLite
package import CofferVault
internal import CofferModel

/// What ties a database file to the manifest beside it: rows of `info`.
///
/// SQLCipher opens a file of length zero as an empty database under any key. Only a row that must be there tells a store
/// from nothing, and this one also tells a file of another store, of another generation or of another time.
package struct Binding: Equatable, Sendable {
    package var storeUUID: StoreUUID
    package var generation: UInt64
    package var sequence: UInt64

    /// The binding of the database that `manifest` has beside it.
    package init(_ manifest: Manifest) {
        self.init(storeUUID: manifest.storeUUID, generation: manifest.generation, sequence: manifest.sequence)
    }

    package init(storeUUID: StoreUUID, generation: UInt64, sequence: UInt64) {
        self.storeUUID = storeUUID
        self.generation = generation
        self.sequence = sequence
    }

    func insert(into connection: borrowing Connection) throws(CofferError) {
        let insertion = Statement(connection, "INSERT INTO info (key, value) VALUES (?1, ?2)")
        try insertion.bind(1, "store")
        try insertion.bind(2, storeUUID.bytes)
        try insertion.run()
        for (key, value) in [("generation", generation), ("sequence", sequence)] {
            try insertion.bind(1, key)
            try insertion.bind(2, Int64(bitPattern: value))
            try insertion.run()
        }
    }

    /// - Throws: `damaged` (500) when rows are missing, as in a file that is not a store's database.
    static func read(from connection: borrowing Connection) throws(CofferError) -> Binding {
        let selection = Statement(connection, "SELECT value FROM info WHERE key = ?1")
        func value<Value>(
            _ key: String, _ read: (Statement) throws(CofferError) -> Value
        ) throws(CofferError) -> Value {
            try selection.bind(1, key)
            guard let value = try selection.first(read) else {
                throw CofferError(
                    .damaged, of: connection.subject, "the database does not say which store it belongs to")
            }
            return value
        }
        let uuid = try value("store") { $0.bytes(0) }
        guard uuid.count == StoreUUID.byteCount else {
            throw CofferError(.damaged, of: connection.subject, "the database has a store UUID of \(uuid.count) bytes")
        }
        return Binding(
            storeUUID: StoreUUID(bytes: uuid),
            generation: try value("generation") { UInt64(bitPattern: $0.integer(0)) },
            sequence: try value("sequence") { UInt64(bitPattern: $0.integer(0)) })
    }

    /// Notes that the manifest has a new sequence.
    static func update(sequence: UInt64, in connection: borrowing Connection) throws(CofferError) {
        let update = Statement(connection, "UPDATE info SET value = ?1 WHERE key = 'sequence'")
        try update.bind(1, Int64(bitPattern: sequence))
        try update.run()
    }

    /// Binds a copy of a database to another generation, or another store.
    func update(in connection: borrowing Connection) throws(CofferError) {
        let store = Statement(connection, "UPDATE info SET value = ?1 WHERE key = 'store'")
        try store.bind(1, storeUUID.bytes)
        try store.run()
        let update = Statement(connection, "UPDATE info SET value = ?1 WHERE key = 'generation'")
        try update.bind(1, Int64(bitPattern: generation))
        try update.run()
        try Self.update(sequence: sequence, in: connection)
    }

    /// - Throws: `damaged` (500) unless this is the binding of the manifest's store and generation, at no later sequence.
    ///
    /// An earlier sequence is not damage: a change of the manifest was cut short before it reached the database.
    package func check(against manifest: Manifest, subject: String) throws(CofferError) {
        guard storeUUID == manifest.storeUUID else {
            throw CofferError(.damaged, of: subject, "the database file belongs to another store")
        }
        guard generation == manifest.generation else {
            throw CofferError(.damaged, of: subject, "the database file belongs to another generation of the store")
        }
        guard sequence <= manifest.sequence else {
            throw CofferError(.damaged, of: subject, "the manifest is older than the database file")
        }
    }
}

/// The identifier that replication uses for a database: a row of `info`, 16 random bytes.
///
/// Unlike the store's UUID it is not the same in a copy: a backup has none, and gets one when it is first opened for
/// writing.
package enum DatabaseIdentity {
    package static let byteCount = 16

    /// - Returns: nil in a backup that was not opened for writing yet.
    static func read(from connection: borrowing Connection) throws(CofferError) -> [UInt8]? {
        let selection = Statement(connection, "SELECT value FROM info WHERE key = 'identity'")
        defer { selection.finalize() }
        let found = try selection.first { $0.bytes(0) }
        guard found == nil || found?.count == byteCount else {
            throw CofferError(.damaged, of: connection.subject, "the database's own UUID is invalid")
        }
        return found
    }

    /// Gives the database an identity that no other has.
    static func renew(in connection: borrowing Connection) throws(CofferError) {
        let insertion = Statement(connection, "INSERT OR REPLACE INTO info (key, value) VALUES ('identity', ?1)")
        defer { insertion.finalize() }
        try insertion.bind(1, try randomBytes(count: byteCount))
        try insertion.run()
    }

    static func remove(from connection: borrowing Connection) throws(CofferError) {
        try connection.execute("DELETE FROM info WHERE key = 'identity'")
    }
}

/// What the databases that this one exchanges revisions with are known to have of it.
///
/// Two databases see by the histories whose revision follows whose. So the revision of a line that a peer had last stays, and
/// so do the ids that lead to it, however many came since: where they went as the depth says, what was just a newer revision
/// would be a conflict there. `info` has a row for each peer that revisions were sent to, and one that says that some came.
package struct PeerKnowledge: Sendable {
    /// Whether this database has ever exchanged revisions with another.
    package var isThere = false
    /// The sequences up to which peers that revisions were sent to have what was saved, from the lowest on.
    package var sequences: [SequenceNumber] = []

    /// No line is kept longer than that, for a peer that never comes back. CouchDB keeps as many.
    package static let generationLimit = 1000

    /// The rows of `info` are called that, and the peer's name, which none has where revisions only came.
    package static let key = "peer "

    /// What the rows say.
    static func read(_ connection: borrowing Connection) throws(CofferError) -> PeerKnowledge {
        let list = Statement(
            connection,
            """
            SELECT key <> 'peer ', value, typeof(value) <> 'integer' OR value < 0
            FROM info WHERE key >= 'peer ' AND key < 'peer!'
            """)
        defer { list.finalize() }
        var peers = PeerKnowledge()
        while try list.step() {
            guard list.integer(2) == 0 else {
                throw CofferError(.damaged, of: connection.subject, "the sequence that a peer has of it is invalid")
            }
            peers.isThere = true
            if list.integer(0) != 0 { peers.sequences.append(list.number(1)) }
        }
        peers.sequences.sort()
        return peers
    }
}
