package import CofferModel
public import CofferSealing
public import Foundation
internal import CofferRecords

extension Database {
    // MARK: Revisions of other databases

    /// Saves a revision of another database as it is there: with its id and its history.
    ///
    /// It joins the document's revisions at its nearest ancestor that is here; ancestors in between are added with their ids
    /// alone. Where that ancestor has been replaced here, or none is here, the document gets a branch: nothing is refused for
    /// being late. Whatever the order in which databases exchange their revisions, all of them choose the same current one. A
    /// revision that is here already changes nothing, and gets no new sequence. This is what a replicator calls; apps that
    /// bring content of their own use `saveDocument(_:concurrencyControl:)`.
    ///
    /// - Parameters:
    ///   - properties: the revision's content. `_attachments` may be among it, as CouchDB writes it: stubs, `data` in base64,
    ///     or `follows` with the content in `attachments`. A digest that starts with `sha1-` or `md5-` must be the content's;
    ///     with an `encoding` an MD5 is that of the packed bytes, and is not compared. (CouchDB packs texts, and says so when it
    ///     is asked with `att_encoding_info=true`.) `data` must not be packed. `_id`, `_rev`, `_revisions` and `_deleted` must
    ///     agree with the other parameters.
    ///   - id: the document's id.
    ///   - history: the revision's id and those of its ancestors, the newest first, as many as are known; generations go down
    ///     by one. Default: nil, what `_revisions` or `_rev` says. At most 100,000.
    ///   - isDeletion: whether the revision deletes the document. Default: false, unless `_deleted` is true.
    ///   - attachments: contents by the names of the attachments. One that is neither there nor in this database is nil when
    ///     it is read, until it is brought; its digest stays as the other database has it. Default: none.
    /// - Returns: what it became here.
    /// - Throws: `invalidDocumentID`; `invalidArgument` for no id or a history in which a generation is left out or comes
    ///   twice; `invalidJSON`; `invalidAttachment` for what is not an attachment, or a content that is not what the revision
    ///   says (400); `readOnly` and `rejected` (403), `digestCollision` (409), `closed` (500), `busy` (503), `noSpace` (507). Nothing is
    ///   changed then.
    @discardableResult
    public func putExistingRevision(
        _ properties: JSONObject, withID id: String, history: [RevisionID]? = nil, isDeletion: Bool = false,
        attachments: [String: Blob] = [:]
    ) throws(CofferError) -> ExistingRevisionResult {
        try existingRevision(properties, id, history, isDeletion, attachments).put()
    }

    /// Saves a revision of another database, given as JSON: see the form with properties.
    ///
    /// - Parameters:
    ///   - json: one object in UTF-8, as CouchDB gives it out with `?revs=true`. `_id` and `_rev` say what it is, `_revisions`
    ///     its history and `_deleted` whether it deletes the document, unless the other parameters do.
    ///   - id: the document's id. Default: nil, what `_id` says.
    ///   - history: the ids of the revision and its ancestors, the newest first. Default: nil, what `_revisions` says.
    ///   - attachments: contents that the JSON names, by the attachments' names.
    @discardableResult
    public func putExistingRevision(
        json: Data, withID id: String? = nil, history: [RevisionID]? = nil, attachments: [String: Blob] = [:]
    ) throws(CofferError) -> ExistingRevisionResult {
        try existingRevision(ofJSON: json, id, history, attachments).put()
    }
}

extension Database {
    func existingRevision(
        _ properties: JSONObject, _ id: String, _ history: [RevisionID]?, _ isDeletion: Bool,
        _ attachments: [String: Blob]
    ) throws(CofferError) -> ExistingRevision {
        do throws(CofferError) {
            let staged = try StagedContent.stage(properties.blobs, in: storage)
            return try ExistingRevision(
                try DocumentBody(properties, isForeign: true), in: self, withID: id, history: history,
                isDeletion: isDeletion, contents: byBytes(attachments), staged: staged)
        } catch {
            throw error.about(document(withID: id).subject)
        }
    }

    func existingRevision(
        ofJSON json: Data, _ id: String?, _ history: [RevisionID]?, _ attachments: [String: Blob]
    ) throws(CofferError) -> ExistingRevision {
        do throws(CofferError) {
            return try ExistingRevision(
                try DocumentBody(json: Array(json), isForeign: true), in: self, withID: id, history: history,
                contents: byBytes(attachments))
        } catch {
            throw id.map { error.about(document(withID: $0).subject) } ?? error
        }
    }

    private func byBytes(_ attachments: [String: Blob]) -> [ByteKey: Blob] {
        Dictionary(attachments.map { (ByteKey($0.key), $0.value) }, uniquingKeysWith: { first, _ in first })
    }
}

// What a replicator asks of a database beside what everybody may.
extension Database {
    /// Those of documents' revisions that are not here, all looked up at one moment.
    ///
    /// - Parameter findsLeaves: whether the documents' leaves are read, too, where any is missing.
    /// - Returns: for each of the documents in turn, what is missing, or why no document can have the id: `invalidDocumentID` (400).
    /// - Throws: `damaged` and `closed` (500).
    package func missingRevisions(
        of documents: some Collection<(id: String, revisions: [RevisionID])>, findsLeaves: Bool = false
    ) throws(CofferError) -> [Result<MissingRevisions, CofferError>] {
        try storage.read { (tables) throws(CofferError) in
            var all: [Result<MissingRevisions, CofferError>] = []
            all.reserveCapacity(documents.count)
            for (id, revisions) in documents {
                let document: DocumentID
                do throws(CofferError) {
                    document = try self.document(withID: id).checkedID
                } catch {
                    all.append(.failure(error))
                    continue
                }
                all.append(.success(try tables.missing(revisions, of: document, findsLeaves: findsLeaves)))
            }
            return all
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

/// Those of a document's revisions that are not here.
package struct MissingRevisions: Sendable {
    /// In the order in which they were asked for.
    package var revisions: [RevisionID]

    /// The ends of the document's branches here, deletions included, if they were asked for and anything is missing.
    package var leaves: [RevisionID] = []

    package init(revisions: [RevisionID]) { self.revisions = revisions }
}

extension Snapshot {
    fileprivate func missing(
        _ revisions: [RevisionID], of document: DocumentID, findsLeaves: Bool
    ) throws(CofferError) -> MissingRevisions {
        guard let row = try self.document(document) else { return MissingRevisions(revisions: revisions) }
        var missing = MissingRevisions(revisions: [])
        for revision in revisions where try trees.sequence(of: revision, inDocument: row.number) == nil {
            missing.revisions.append(revision)
        }
        if findsLeaves, !missing.revisions.isEmpty { missing.leaves = try leafRevisions(of: row).map(\.id) }
        return missing
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
