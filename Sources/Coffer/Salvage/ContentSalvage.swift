internal import CofferModel
internal import CofferSealing
internal import CofferRecords
internal import CofferVault

/// Copies the contents of attachments and blobs that are still what was written.
///
/// A file proves itself: its chunks open, and its SHA-1 makes its name. So its row may be lost; where it isn't, it must agree.
struct ContentSalvage {
    let tables: SalvageTables
    /// Nil where nothing is left of them.
    let attachments: AttachmentStore?
    let protection: PageSource.Protection
    let builder: GenerationBuilder
    let monitor: CopyMonitor

    private static let subject = "a content"
    /// How many contents without a document are given to one.
    private static let foundlingsPerDocument = 1000

    /// Copies what revisions name.
    ///
    /// - Returns: what can't be read.
    func copyUsed() throws(CofferError) -> [VerificationFinding] {
        let sum = try tables.contentSum()
        monitor.begin(.attachments, byteCount: sum.byteCount, itemCount: sum.count)
        var lost: [VerificationFinding] = []
        try tables.forEachUsedContent { (number, byteCount, sha1) throws(CofferError) in
            let known = try tables.content(.sha1(sha1))
            // Another database's, that never came.
            if let known, known.proof == nil, attachments?.isPresent(sha1) != true { return }
            do throws(CofferError) {
                let (content, header) = try find(sha1, known)
                guard content.byteCount == byteCount else {
                    throw CofferError(.damaged, "the document states a wrong length for it")
                }
                try tables.prove(number, copy(content, header))
            } catch  where error.isDamage {
                lost += try findings(number, SHA1Digest.text(of: sha1), error.detail ?? error.description)
            }
        }
        return lost
    }

    /// That a content is lost, for each document that has it.
    private func findings(
        _ number: ContentNumber, _ digest: String, _ detail: String
    ) throws(CofferError) -> [VerificationFinding] {
        try tables.documents(using: number).map { id in
            VerificationFinding(
                .attachment, "attachment \(digest) of document \(id)", detail, documentID: id, digest: digest)
        }
    }

    /// What the file of a content is, once that is proven.
    private func find(
        _ sha1: [UInt8], _ known: AttachmentRow?
    ) throws(CofferError) -> (content: ContentDigest, header: [UInt8]) {
        guard let attachments else { throw CofferError(.damaged, "its file is missing") }
        // Rows on pages without proof prove nothing.
        let row = protection == .unproven ? nil : known
        if let content = row?.content, let proof = row?.proof {
            do throws(CofferError) {
                try attachments.open(content, header: proof.header, subject: Self.subject).check()
                return (content, proof.header)
            } catch  where error.isDamage {
                // An older file of the same content is as good.
                guard
                    let found = try? attachments.identify(
                        named: attachments.naming.name(of: sha1), subject: Self.subject),
                    found.0 == content
                else { throw error }
                return found
            }
        }
        return try attachments.identify(named: attachments.naming.name(of: sha1), subject: Self.subject)
    }

    /// - Returns: what the content's row should hold.
    private func copy(_ content: ContentDigest, _ header: [UInt8]) throws(CofferError) -> AttachmentRow.Proof {
        guard let attachments else { throw CofferError(.damaged, "its file is missing") }
        try builder.encrypt(attachments.open(content, header: header, subject: Self.subject)) {
            (byteCount) throws(CofferError) in
            try monitor.checkCancelled()
            monitor.advance(byteCount: byteCount)
        }
        guard let newHeader = try builder.header(of: content) else {
            throw CofferError(.ioFailed, "a file that was just written is gone")
        }
        monitor.advance(itemCount: 1)
        return AttachmentRow.Proof(sha256: content.sha256, header: newHeader)
    }

    // MARK: Contents without a document

    /// Gives the contents that no revision names to documents of their own, so that they can be read and no compaction removes
    /// them: where revisions are lost, they may have been theirs.
    ///
    /// - Returns: what can't be read, and the ids of the documents.
    func adoptFoundlings() throws(CofferError) -> (lost: [VerificationFinding], documents: [String]) {
        guard let attachments else { return ([], []) }
        let used = try tables.documents.attachments.names(by: attachments.naming)
        let named = try tables.namesOfMissingContents(by: attachments.naming)
        var lost: [VerificationFinding] = []
        var (found, documents) = ([ContentDigest](), [String]())
        for name in try attachments.allNames().sorted() where !used.contains(name) {
            try monitor.checkCancelled()
            do throws(CofferError) {
                let (content, header) = try attachments.identify(named: name, subject: Self.subject)
                // One that a document gives another length is not here for it.
                guard !named.contains(name) else { continue }
                let proof = try copy(content, header)
                try tables.prove(tables.add(content), proof)
                found.append(content)
            } catch  where error.isDamage {
                if named.contains(name) { continue }
                lost.append(
                    VerificationFinding(
                        .attachment, "the file \(name), which no recovered document names",
                        error.detail ?? error.description))
            }
            if found.count == Self.foundlingsPerDocument {
                documents.append(try save(found))
                found = []
            }
        }
        if !found.isEmpty { documents.append(try save(found)) }
        return (lost, documents)
    }

    /// Makes a document that has these contents as attachments, named by their digests.
    private func save(_ contents: [ContentDigest]) throws(CofferError) -> String {
        var attachments: JSONObject = [:]
        for content in contents {
            let digest = SHA1Digest.text(of: content.sha1)
            attachments[digest] =
                AttachmentStub(
                    contentType: nil, digest: digest, byteCount: content.byteCount, changedInGeneration: 1
                ).json
        }
        let object: JSONObject = ["_attachments": .object(attachments)]
        let body = try DocumentBody(object, valueLimit: JSONLimits.storedValueCount).body
        let sequence = try max(tables.documents.lastSequence(), tables.lastNotedSequence()).next
        var (id, count) = ("salvaged-attachments", 1)
        while try tables.documents.document(DocumentID(id)) != nil {
            count += 1
            id = "salvaged-attachments-\(count)"
        }
        let revision = FoundRevision(
            sequence: sequence, document: DocumentNumber(first: sequence), parent: nil, flags: .hasAttachments,
            id: try RevisionID.make(parent: nil, isDeletion: false, body: body), documentID: id, body: body.bytes,
            hasDigest: false)
        guard try tables.insert(revision) else {
            throw CofferError(.damaged, of: tables.documents.subject, "a new revision has no place")
        }
        try tables.insertDocument(id, DocumentRow(number: DocumentNumber(first: sequence), winner: sequence, flags: []))
        for content in contents {
            try tables.use(SHA1Digest.text(of: content.sha1), byteCount: content.byteCount, by: sequence)
        }
        return id
    }
}
