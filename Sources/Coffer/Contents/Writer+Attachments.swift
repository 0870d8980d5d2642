internal import CofferModel
internal import CofferSealing
internal import CofferRecords
internal import CofferVault

extension Writer {
    /// What is done with a content that is neither saved nor brought.
    enum MissingContent {
        case refused
        /// It gets a row that says where it is known from, and may come later.
        case awaited
    }

    /// Notes which files a revision brings, and makes sure that every content its body names is among them or is saved, or
    /// may come later.
    ///
    /// - Throws: `attachmentNotFound` (404) for a content that is refused; `digestCollision` (409) where another one with
    ///   the same SHA-1 is saved; `invalidAttachment` (400) for a length that is not the content's. Nothing was changed.
    func checkContents(
        _ content: RevisionBody, staged: [StagedContent], generation: Int, missing: MissingContent,
        _ subject: @autoclosure () -> String
    ) throws(CofferError) {
        for staged in staged { try stage(staged.file) }
        guard content.latestChange <= generation else {
            throw CofferError(.invalidJSON, of: subject(), "_attachments has a revpos beyond the revision's generation")
        }
        for reference in content.references {
            let row = try tables.attachments.attachment(reference.key)
            let file = stagedFile(reference.key)
            guard let byteCount = file?.digest.byteCount ?? row?.byteCount else {
                if missing == .awaited { continue }
                throw CofferError(
                    .attachmentNotFound, of: subject(), "it names a content that this database doesn't have")
            }
            guard byteCount == reference.byteCount else {
                throw CofferError(.invalidAttachment, of: subject(), "it states a wrong length for a content")
            }
            if let file, let known = row?.content, known != file.digest {
                forget(file)
                throw CofferError(
                    .digestCollision, of: subject(), "another content with the same SHA-1 is in this database")
            }
        }
    }

    /// Notes that the revision uses the contents that its body names. Those that are new are installed with the commit.
    func useContents(_ content: RevisionBody, by revision: SequenceNumber) throws(CofferError) {
        guard !content.references.isEmpty else { return }
        try change { () throws(CofferError) in
            for reference in content.references {
                let row = try tables.attachments.attachment(reference.key)
                let number: ContentNumber
                if let file = stagedFile(reference.key) {
                    number = try save(file, over: row)
                } else if let row {
                    number = row.number
                } else {
                    // Not here yet.
                    number = try insert(reference.key, byteCount: reference.byteCount, nil)
                }
                try records.attachments.insertUse(of: number, by: revision)
            }
        }
    }

    func stagedFile(_ key: AttachmentKey) -> StagedAttachment? {
        guard case .sha1(let sha1) = key, let file = stagedFile(sha1) else { return nil }
        // One that another transaction saved meanwhile is the store's: only its row counts.
        return file.isSaved ? nil : file
    }

    /// The number of the row that has the file's content from here on.
    func save(_ file: StagedAttachment, over row: AttachmentRow?) throws(CofferError) -> ContentNumber {
        guard let row else {
            let number = try insert(.sha1(file.digest.sha1), byteCount: file.digest.byteCount, file.proof)
            try installation.add(file)
            return number
        }
        // The same content is there, unless its file was lost or damaged: then this is its chance to come back.
        if let proof = row.proof {
            var isThere = installation.file(of: file.digest.sha1) != nil
            if !isThere { isThere = try contentIsThere(file.digest, header: proof.header) }
            if isThere {
                forget(file)
                return row.number
            }
        }
        try records.attachments.update(row.number, byteCount: file.digest.byteCount, file.proof)
        try installation.add(file)
        return row.number
    }

    /// Adds a content's row, and returns its number.
    private func insert(
        _ key: AttachmentKey, byteCount: Int, _ proof: AttachmentRow.Proof?
    ) throws(CofferError) -> ContentNumber {
        let number = ContentNumber(try nextNumber(in: .attachments))
        try records.attachments.insert(key, number: number, byteCount: byteCount, proof)
        return number
    }
}

extension StagedAttachment {
    /// What the content's row says of the file.
    fileprivate var proof: AttachmentRow.Proof { AttachmentRow.Proof(sha256: digest.sha256, header: header) }
}
