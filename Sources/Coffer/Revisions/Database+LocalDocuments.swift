internal import CofferModel
internal import CofferRecords
public import CofferSealing

extension Database {
    // MARK: Local documents

    /// The properties of the local document with that id; nil if there isn't one.
    ///
    /// Local documents are for what an app or a sync wants to remember of this copy of the database, such as a checkpoint:
    /// they have no revisions, are never sent to a peer, and are in no listing and no count; nobody is notified of
    /// their changes. They are encrypted as everything else is.
    ///
    /// - Parameter id: their names are apart from documents'. `_local/name` and `name` mean the same one; with `_local/`, 900
    ///   bytes at most.
    /// - Throws: `invalidDocumentID` (400), `damaged` and `closed` (500).
    public func localDocument(withID id: String) throws(CofferError) -> JSONObject? {
        let id = try DocumentID(local: id)
        guard let body = try storedLocalDocument(id)?.body else { return nil }
        do throws(CofferError) {
            return try JSONObject(canonical: body.span)
        } catch {
            // What is there was written by a save, which lets nothing else through.
            throw CofferError(.damaged, of: "document \(id.text)", "its body is not what was written", cause: error)
        }
    }

    /// Saves a local document, over the one with that id if there is one. It is on the disk when this returns.
    ///
    /// - Parameters:
    ///   - properties: what it holds from here on: nothing of what it held before is kept. No blobs, and no names that start
    ///     with `_`.
    ///   - id: see ``localDocument(withID:)``.
    /// - Throws: `invalidDocumentID` and `invalidJSON` (400), `readOnly` (403), `closed` (500), `busy` (503), `noSpace` (507).
    public func saveLocalDocument(_ properties: JSONObject, withID id: String) throws(CofferError) {
        let id = try DocumentID(local: id)
        let body = try CanonicalBody(local: properties, id)
        _ = try storage.write { (writer) throws(CofferError) in
            try writer.change { () throws(CofferError) in
                try writer.tables.local.save(id, body) { () throws(CofferError) in
                    try writer.nextNumber(in: .localDocuments)
                }
            }
        }
    }

    /// Deletes a local document.
    ///
    /// - Throws: `documentNotFound` (404) when no local document has that id; otherwise as `saveLocalDocument(_:withID:)`.
    public func deleteLocalDocument(withID id: String) throws(CofferError) {
        let id = try DocumentID(local: id)
        try storage.write { (writer) throws(CofferError) in
            let existed = try writer.change { () throws(CofferError) in try writer.tables.local.remove(id) }
            guard existed else { throw CofferError(.documentNotFound, of: "document \(id.text)") }
        }
    }

    /// The ids of local documents with `_local/`, sorted by their bytes.
    ///
    /// - Parameters:
    ///   - id: only ids after this one. Default: nil, from the first.
    ///   - limit: how many at most.
    /// - Throws: `damaged` and `closed` (500).
    package func localDocumentIDs(after id: String? = nil, limit: Int) throws(CofferError) -> [String] {
        try storage.read { (tables) throws(CofferError) in
            try tables.localDocumentIDs(after: id ?? "", limit: limit)
        }
    }

    /// How often the local document was saved since it was made; 0 when there isn't one.
    package func localDocumentGeneration(withID id: String) throws(CofferError) -> Int {
        try storedLocalDocument(DocumentID(local: id))?.generation ?? 0
    }

    private func storedLocalDocument(_ id: DocumentID) throws(CofferError) -> (generation: Int, body: [UInt8])? {
        try storage.readBriefly { (tables) throws(CofferError) in try tables.local.document(id) }
    }
}

extension DocumentID {
    /// The id of a local document, with `_local/` or without.
    fileprivate init(local id: String) throws(CofferError) {
        guard !id.isEmpty else { throw CofferError(.invalidDocumentID, "it is empty") }
        try self.init(id.utf8.starts(with: "_local/".utf8) ? id : "_local/" + id)
    }
}

extension CanonicalBody {
    /// - Throws: `invalidJSON` (400) for what a local document can't hold.
    fileprivate init(local properties: JSONObject, _ id: DocumentID) throws(CofferError) {
        let subject = "document \(id.text)"
        // A content is kept for the revisions that use it, and a local document has none.
        guard properties.blobs.isEmpty && properties.blobReferences.isEmpty else {
            throw CofferError(.invalidJSON, of: subject, "a local document can't hold blobs")
        }
        let parsed: DocumentBody
        do throws(CofferError) {
            parsed = try DocumentBody(properties)
        } catch {
            throw error.about(subject)
        }
        guard parsed.id == nil && parsed.revision == nil && parsed.statedDeletion == nil && parsed.attachments == nil
        else {
            throw CofferError(.invalidJSON, of: subject, "properties of a local document can't start with _")
        }
        self = parsed.body
    }
}
