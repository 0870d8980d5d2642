internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import CofferVault

/// A body, and what it says of contents that are kept in files.
struct RevisionBody: Sendable {
    let body: CanonicalBody
    /// What its `_attachments` hold.
    let attachments: [(name: String, stub: AttachmentStub)]
    /// The contents that it names, attachments and blobs alike.
    let references: [Reference]

    struct Reference: Sendable {
        let digest: String
        let key: AttachmentKey
        let byteCount: Int

        fileprivate init(digest: String, byteCount: Int) {
            self.digest = digest
            key = AttachmentKey(digest)
            self.byteCount = byteCount
        }
    }

    /// - Parameters:
    ///   - known: what its `_attachments` hold, from the code that wrote them; otherwise they are read out of it.
    ///   - knownBlobs: the blobs that it names, likewise.
    /// - Throws: `invalidJSON` (400) where `_attachments` holds what is not an attachment.
    init(
        _ body: CanonicalBody, attachments known: [(name: String, stub: AttachmentStub)]? = nil,
        blobs knownBlobs: [BlobReference]? = nil, subject: @autoclosure () -> String
    ) throws(CofferError) {
        self.body = body
        let mayHoldBlobs = knownBlobs == nil && CanonicalBody.mayHoldBlobs(body.bytes)
        var blobs = (knownBlobs ?? []).map { Reference(digest: $0.digest, byteCount: $0.length) }
        if let known, !mayHoldBlobs {
            attachments = known
        } else if mayHoldBlobs || CanonicalBody.mayHoldAttachments(body.bytes) {
            let object = try JSONObject(body)
            do throws(CofferError) {
                attachments = try object.attachmentStubs()
            } catch {
                throw error.about(subject())
            }
            blobs = object.blobReferences.map { Reference(digest: $0.digest, byteCount: $0.length) }
        } else {
            attachments = []
        }
        references = attachments.map { Reference(digest: $0.stub.digest, byteCount: $0.stub.byteCount) } + blobs
    }

    /// The last generation in which an attachment was changed, as the body has it; 0 without any.
    var latestChange: Int { attachments.map(\.stub.changedInGeneration).max() ?? 0 }
}

/// What is done with a content that is neither saved nor brought.
enum MissingContent {
    case refused
    /// It gets a row that says where it is known from, and may come later.
    case awaited
}

// The contents of a revision that is being saved: their names, whether they are there, and their rows.
extension RevisionBody {
    /// The same body with the SHA-1s of those contents that it calls by a digest that they had before they came.
    ///
    /// Called before the revision gets its id.
    func withPresentNames(
        _ names: @autoclosure () -> RenamedContents, in tables: borrowing Snapshot, _ subject: @autoclosure () -> String
    ) throws(CofferError) -> RevisionBody {
        guard !attachments.isEmpty else { return self }
        let names = names()
        guard !names.isEmpty else { return self }
        let renamed = try body.renamingContents { (stub) throws(CofferError) in
            guard let sha1 = names.sha1(of: stub.digest),
                try tables.attachments.attachment(.foreign(stub.digest)) == nil,
                let row = try tables.attachments.attachment(.sha1(sha1)), row.byteCount == stub.byteCount
            else { return nil }
            return SHA1Digest.text(of: sha1)
        }
        guard let renamed else { return self }
        return try RevisionBody(renamed, subject: subject())
    }

    /// Notes which files a revision brings, and makes sure that every content its body names is among them or is saved, or
    /// may come later.
    ///
    /// - Throws: `attachmentNotFound` (404) for a content that is refused; `digestCollision` (409) where another one with
    ///   the same SHA-1 is saved; `invalidAttachment` (400) for a length that is not the content's. Nothing was changed.
    func checkContents(
        bringing staged: [StagedContent], generation: Int, missing: MissingContent, in writer: borrowing Writer,
        _ subject: @autoclosure () -> String
    ) throws(CofferError) {
        for staged in staged { try writer.files.stage(staged.file) }
        guard latestChange <= generation else {
            throw CofferError(.invalidJSON, of: subject(), "_attachments has a revpos beyond the revision's generation")
        }
        for reference in references {
            let row = try writer.tables.attachments.attachment(reference.key)
            let file = writer.files.staged(reference.key)
            guard let byteCount = file?.digest.byteCount ?? row?.byteCount else {
                if missing == .awaited { continue }
                throw CofferError(
                    .attachmentNotFound, of: subject(), "it names a content that this database doesn't have")
            }
            guard byteCount == reference.byteCount else {
                throw CofferError(.invalidAttachment, of: subject(), "it states a wrong length for a content")
            }
            if let file, let known = row?.content, known != file.digest {
                writer.files.forget(file)
                throw CofferError(
                    .digestCollision, of: subject(), "another content with the same SHA-1 is in this database")
            }
        }
    }

    /// Notes that the revision uses the contents that its body names. Those that are new are installed with the commit.
    func useContents(by revision: SequenceNumber, in writer: borrowing Writer) throws(CofferError) {
        guard !references.isEmpty else { return }
        try writer.change { () throws(CofferError) in
            for reference in references {
                let row = try writer.tables.attachments.attachment(reference.key)
                let number: ContentNumber
                if let file = writer.files.staged(reference.key) {
                    number = try file.install(over: row, in: writer)
                } else if let row {
                    number = row.number
                } else {
                    // Not here yet.
                    number = try AttachmentRow.insert(reference.key, byteCount: reference.byteCount, nil, in: writer)
                }
                try writer.records.attachments.insertUse(of: number, by: revision)
            }
        }
    }
}

extension StagedAttachment {
    /// Makes the file the content of a row, and has the transaction install it unless its content is there.
    ///
    /// - Parameter row: the row of its SHA-1; nil if there isn't one, and one is made.
    /// - Returns: the number of the row that has the content from here on.
    func install(over row: AttachmentRow?, in writer: borrowing Writer) throws(CofferError) -> ContentNumber {
        let proof = AttachmentRow.Proof(sha256: digest.sha256, header: header)
        guard let row else {
            let number = try AttachmentRow.insert(.sha1(digest.sha1), byteCount: digest.byteCount, proof, in: writer)
            try writer.files.installation.add(self)
            return number
        }
        // The same content is there, unless its file was lost or damaged: then this is its chance to come back.
        if let known = row.proof,
            try writer.files.has(digest, header: known.header, subject: writer.records.subject)
        {
            writer.files.forget(self)
            return row.number
        }
        try writer.records.attachments.update(row.number, byteCount: digest.byteCount, proof)
        try writer.files.installation.add(self)
        return row.number
    }
}

extension AttachmentRow {
    /// Adds a content's row, and returns its number.
    fileprivate static func insert(
        _ key: AttachmentKey, byteCount: Int, _ proof: Proof?, in writer: borrowing Writer
    ) throws(CofferError) -> ContentNumber {
        let number = ContentNumber(try writer.nextNumber(in: .attachments))
        try writer.records.attachments.insert(key, number: number, byteCount: byteCount, proof)
        return number
    }
}

/// What a revision's JSON says of one attachment: everything but its content.
struct AttachmentStub: Sendable, Equatable {
    var contentType: String?
    var digest: String
    var byteCount: Int
    /// The generation in which it was last changed.
    var changedInGeneration: Int

    /// - Throws: `invalidJSON` (400) for what no attachment is, `invalidAttachment` (400) for a length of 2^52 bytes or more.
    init(_ value: JSONValue) throws(CofferError) {
        let length: Int? = value["length"]
        let generation: Int? = value["revpos"]
        let type = value["content_type"]
        guard let object = value.objectValue, case .string(let digest)? = object["digest"], let length, length >= 0,
            let generation, generation > 0, object["stub"] == true, type == nil || type?.stringValue != nil,
            // Content in the JSON itself, and what else there may be, is not kept: so it is not taken.
            object.count == (type == nil ? 4 : 5)
        else { throw CofferError(.invalidJSON, "_attachments holds a value that is not an attachment") }
        // Its row would be taken for damage.
        guard BlobReference.lengths.contains(length) else {
            throw CofferError(.invalidAttachment, "_attachments holds an attachment beyond the limit of length")
        }
        self.init(contentType: type?.stringValue, digest: digest, byteCount: length, changedInGeneration: generation)
    }

    init(contentType: String?, digest: String, byteCount: Int, changedInGeneration: Int) {
        self.contentType = contentType
        self.digest = digest
        self.byteCount = byteCount
        self.changedInGeneration = changedInGeneration
    }

    var json: JSONValue {
        var object: JSONObject = [:]
        object["content_type"] = contentType.map { .string($0) }
        object["digest"] = .string(digest)
        object["length"] = .number(JSONNumber(Int64(byteCount)))
        object["revpos"] = .number(JSONNumber(Int64(changedInGeneration)))
        object["stub"] = true
        return .object(object)
    }
}

extension JSONObject {
    /// The `_attachments` that say all of these.
    init(_ stubs: [(name: String, stub: AttachmentStub)]) {
        self.init()
        for (name, stub) in stubs { self[name] = stub.json }
    }

    /// The attachments that `_attachments` says, in order.
    func attachmentStubs() throws(CofferError) -> [(name: String, stub: AttachmentStub)] {
        guard let value = self["_attachments"] else { return [] }
        guard let object = value.objectValue else {
            throw CofferError(.invalidJSON, "_attachments is not an object")
        }
        var stubs: [(name: String, stub: AttachmentStub)] = []
        for (name, value) in object {
            stubs.append((name, try AttachmentStub(value)))
        }
        return stubs
    }
}

/// Content that a draft names and that the store has not saved: what its save installs.
struct StagedContent: Sendable {
    let file: StagedAttachment

    /// Nil where the store has the content saved.
    init?(_ content: Content, in storage: Storage) throws(CofferError) {
        guard let file = try content.stage(in: storage) else { return nil }
        self.file = file
    }

    /// Makes sure that `storage` has the contents of all `blobs`, so that their digests are known.
    static func stage(_ blobs: [Blob], in storage: Storage) throws(CofferError) -> [StagedContent] {
        var staged: [StagedContent] = []
        for blob in blobs {
            // A blob that came from nowhere but a document's text has a digest and no content.
            guard let content = blob.stored else { continue }
            if let content = try StagedContent(content, in: storage) { staged.append(content) }
        }
        return staged
    }
}
