internal import CofferModel
internal import CofferSealing
internal import CofferSQLite
internal import CofferVault

extension Writer {
    /// Notes which files the draft brings, and makes sure that every content the body names is among them or is saved.
    ///
    /// - Throws: `attachmentNotFound` (404) for a content that is neither; `digestCollision` (409) where another one with
    ///   the same SHA-1 is saved; `invalidAttachment` (400) for a length that is not the content's. Nothing was changed.
    func checkContents(
        _ content: RevisionContent, of draft: RevisionDraft, generation: Int
    ) throws(CofferError) {
        try checkContents(
            content, staged: draft.staged, generation: generation, missing: .refused, draft.document.subject)
    }

    /// What is done with a content that is neither saved nor brought.
    enum MissingContent {
        case refused
        /// It gets a row that says where it is known from, and may come later.
        case awaited
    }

    /// The same for a revision that may name contents which aren't here yet.
    func checkContents(
        _ content: RevisionContent, staged: [StagedContent], generation: Int, missing: MissingContent,
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
    func useContents(_ content: RevisionContent, by revision: Int64) throws(CofferError) {
        guard !content.references.isEmpty else { return }
        try change { () throws(CofferError) in
            for reference in content.references {
                let row = try tables.attachments.attachment(reference.key)
                let number: Int64
                if let file = stagedFile(reference.key) {
                    number = try save(file, over: row)
                } else if let row {
                    number = row.number
                } else {
                    number = try insertAwaited(reference.key, byteCount: reference.byteCount)
                }
                try insertUse.bind(1, revision)
                try insertUse.bind(2, number)
                try insertUse.run()
            }
        }
    }

    func stagedFile(_ key: AttachmentKey) -> StagedAttachment? {
        guard case .sha1(let sha1) = key, let file = stagedFile(sha1) else { return nil }
        // One that another transaction saved meanwhile is the store's: only its row counts.
        return file.isSaved ? nil : file
    }

    /// The number of the row that has the file's content from here on.
    func save(_ file: StagedAttachment, over row: AttachmentRow?) throws(CofferError) -> Int64 {
        guard let row else {
            try insertAttachment.bind(1, file.digest.sha1)
            try bind(file, to: insertAttachment)
            let number = try insertNumbered()
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
        try updateAttachment.bind(1, row.number)
        try bind(file, to: updateAttachment)
        try updateAttachment.run()
        try installation.add(file)
        return row.number
    }

    /// Adds a row for a content that is not here.
    private func insertAwaited(_ key: AttachmentKey, byteCount: Int) throws(CofferError) -> Int64 {
        switch key {
        case .sha1(let bytes): try insertAttachment.bind(1, bytes)
        case .foreign(let text): try insertAttachment.bind(1, text)
        }
        try insertAttachment.bind(2, Int64(byteCount))
        try insertAttachment.bindNull(3)
        try insertAttachment.bindNull(4)
        return try insertNumbered()
    }

    /// Inserts the row that was bound, and returns its number.
    private func insertNumbered() throws(CofferError) -> Int64 {
        let number = try nextNumber(in: .attachments)
        try insertAttachment.bind(5, number)
        try insertAttachment.run()
        return number
    }

    private func bind(_ file: StagedAttachment, to statement: Statement) throws(CofferError) {
        try statement.bind(2, Int64(file.digest.byteCount))
        try statement.bind(3, file.digest.sha256)
        try statement.bind(4, file.header)
    }
}
