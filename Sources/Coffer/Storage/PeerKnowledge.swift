internal import CofferModel
package import CofferSealing
internal import CofferSQLite

/// What the databases that this one exchanges revisions with are known to have of it.
///
/// Two databases see by the histories whose revision follows whose. So the revision of a line that a peer had last stays, and
/// so do the ids that lead to it, however many came since: where they went as the depth says, what was just a newer revision
/// would be a conflict there. `info` has a row for each peer that revisions were sent to, and one that says that some came.
struct PeerKnowledge: Sendable {
    /// Whether this database has ever exchanged revisions with another.
    var isThere = false
    /// The sequences up to which peers that revisions were sent to have what was saved, from the lowest on.
    var sequences: [Int64] = []

    /// No line is kept longer than that, for a peer that never comes back. CouchDB keeps as many.
    static let generationLimit = 1000

    /// The rows of `info` are called that, and the peer's name, which none has where revisions only came.
    static let key = "peer "

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
            if list.integer(0) != 0 { peers.sequences.append(list.integer(1)) }
        }
        peers.sequences.sort()
        return peers
    }
}

extension Writer {
    private func peers() throws(CofferError) -> PeerKnowledge {
        if let peers = state.knownPeers { return peers }
        let peers = try PeerKnowledge.read(connection)
        state.knownPeers = peers
        return peers
    }

    /// The generation of a line from which on its revisions are kept for peers; nil if none is.
    func generationOfPeers(_ number: Int64) throws(CofferError) -> Int? {
        let peers = try peers()
        guard peers.isThere else { return nil }
        // A peer that has nothing of the document knows no revision that could be in conflict with another: such as one that is
        // never pushed to again, of a document that was made since.
        for sequence in peers.sequences {
            if let sent = try tables.trees.generation(ofDocument: number, upToSequence: sequence) { return sent }
        }
        return try tables.trees.foreignGeneration(ofDocument: number)
    }

    /// Notes that a peer has all revisions up to a sequence; without a name, that revisions came from one.
    func notePeer(_ name: String, has sequence: Int64) throws(CofferError) {
        if name.isEmpty, try peers().isThere { return }
        try change { () throws(CofferError) in
            try treeChanges.notePeer(PeerKnowledge.key + name, has: sequence)
            state.knownPeers = nil
            whenRolledBack { [unowned state] in state.knownPeers = nil }
        }
    }
}

extension Database {
    /// Notes that this database takes revisions from others.
    package func notePeer() throws(CofferError) {
        try storage.write { (writer) throws(CofferError) in try writer.notePeer("", has: 0) }
    }

    /// Notes that a peer has all revisions up to a sequence, as far as they are for it.
    ///
    /// - Parameter name: the peer's, which is the same every time.
    package func notePeer(_ name: String, has sequence: Int) throws(CofferError) {
        try storage.write { (writer) throws(CofferError) in try writer.notePeer(name, has: Int64(sequence)) }
    }
}
