internal import CofferRecords
package import CofferSealing

extension Writer {
    private func peers() throws(CofferError) -> PeerKnowledge {
        if let peers = state.knownPeers { return peers }
        let peers = try tables.peerKnowledge()
        state.knownPeers = peers
        return peers
    }

    /// The generation of a line from which on its revisions are kept for peers; nil if none is.
    func generationOfPeers(_ number: DocumentNumber) throws(CofferError) -> Int? {
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
    func notePeer(_ name: String, has sequence: SequenceNumber) throws(CofferError) {
        if name.isEmpty, try peers().isThere { return }
        try change { () throws(CofferError) in
            try records.trees.notePeer(PeerKnowledge.key + name, has: sequence)
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
        try storage.write { (writer) throws(CofferError) in try writer.notePeer(name, has: SequenceNumber(sequence)) }
    }
}
