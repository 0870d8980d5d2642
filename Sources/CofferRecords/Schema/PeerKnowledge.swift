internal import CofferModel
internal import CofferSealing
internal import CofferSQLite

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
