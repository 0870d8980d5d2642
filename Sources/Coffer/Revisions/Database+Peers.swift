package import CofferModel
internal import CofferRecords
package import CofferSealing

// What a replicator asks of a database beside what everybody may.
extension Database {
    /// Those of the revisions that are not here, in their order.
    ///
    /// - Throws: `invalidDocumentID` (400), `damaged` and `closed` (500).
    package func missingRevisions(
        of revisions: [RevisionID], ofDocumentWithID id: String
    ) throws(CofferError) -> [RevisionID] {
        let document = try document(withID: id).checkedID
        return try storage.read { (tables) throws(CofferError) in
            guard let row = try tables.document(document) else { return revisions }
            var missing: [RevisionID] = []
            for revision in revisions where try tables.trees.sequence(of: revision, inDocument: row.number) == nil {
                missing.append(revision)
            }
            return missing
        }
    }

    /// Takes over a revision of another database, together with contents that its body names by their digests: see
    /// ``putExistingRevision(_:withID:history:isDeletion:attachments:)``.
    ///
    /// - Parameters:
    ///   - properties: without `_id`, `_rev`, `_revisions` and `_deleted`, which the other parameters say.
    ///   - id: the document's id.
    ///   - history: the revision's id and its ancestors'.
    ///   - isDeletion: whether the revision deletes the document.
    ///   - attachments: contents by the names of attachments. They are known to have the MD5 that is said of them.
    ///   - contents: of blobs.
    ///   - source: the database that a pull brings it from; nil if a peer pushed it.
    @discardableResult
    package func putExistingRevision(
        _ properties: JSONObject, withID id: String, history: RevisionHistory, isDeletion: Bool,
        attachments: [ByteKey: Blob], contents: [Blob], from source: String?
    ) throws(CofferError) -> ExistingRevisionResult {
        do throws(CofferError) {
            let staged = try StagedContent.stage(properties.blobs + contents, in: storage)
            return try ExistingRevision(
                properties, in: self, withID: id, history: history, isDeletion: isDeletion, contents: attachments,
                staged: staged, source: source
            ).put()
        } catch {
            throw error.about(document(withID: id).subject)
        }
    }

    /// Inserts a revision that was read from another library's database: see
    /// ``putExistingRevision(_:withID:history:isDeletion:attachments:)``.
    ///
    /// - Parameters:
    ///   - body: the revision's body in the other database.
    ///   - id: the document's id.
    ///   - history: the ids of the revision and its ancestors, newest first.
    ///   - isDeletion: whether the revision deletes the document.
    ///   - attachments: contents by the names of attachments.
    @discardableResult
    package func putExistingRevision(
        _ body: DocumentBody, withID id: String, history: [RevisionID], isDeletion: Bool, attachments: [ByteKey: Blob]
    ) throws(CofferError) -> ExistingRevisionResult {
        do throws(CofferError) {
            return try ExistingRevision(
                body, in: self, withID: id, history: history, isDeletion: isDeletion, contents: attachments,
                areContentsChecked: true
            ).put()
        } catch {
            throw error.about(document(withID: id).subject)
        }
    }

    /// Notes that this database takes revisions from others.
    package func notePeer() throws(CofferError) {
        try storage.write { (writer) throws(CofferError) in try PeerKnowledge.note("", has: 0, in: writer) }
    }

    /// Notes that a peer has all revisions up to a sequence, as far as they are for it.
    ///
    /// - Parameter name: the peer's, which is the same every time.
    package func notePeer(_ name: String, has sequence: Int) throws(CofferError) {
        try storage.write { (writer) throws(CofferError) in
            try PeerKnowledge.note(name, has: SequenceNumber(sequence), in: writer)
        }
    }
}

extension PeerKnowledge {
    /// The generation of a line from which on its revisions are kept for peers; nil if none is.
    func generationToKeep(
        ofDocument number: DocumentNumber, in tables: borrowing Snapshot
    ) throws(CofferError) -> Int? {
        guard isThere else { return nil }
        // A peer that has nothing of the document knows no revision that could be in conflict with another: such as one that is
        // never pushed to again, of a document that was made since.
        for sequence in sequences {
            if let sent = try tables.trees.generation(ofDocument: number, upToSequence: sequence) { return sent }
        }
        return try tables.trees.foreignGeneration(ofDocument: number)
    }

    /// Notes that a peer has all revisions up to a sequence; without a name, that revisions came from one.
    fileprivate static func note(
        _ name: String, has sequence: SequenceNumber, in writer: borrowing Writer
    ) throws(CofferError) {
        if name.isEmpty, try writer.state.peers(in: writer.tables).isThere { return }
        try writer.change { () throws(CofferError) in
            try writer.records.trees.notePeer(key + name, has: sequence)
            writer.state.notePeersChanged()
        }
    }
}
