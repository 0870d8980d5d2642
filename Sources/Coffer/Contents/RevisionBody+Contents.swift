internal import CofferModel
internal import CofferSealing
internal import CofferRecords
internal import CofferVault

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
