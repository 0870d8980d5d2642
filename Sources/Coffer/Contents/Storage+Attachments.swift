internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import CofferVault
internal import Foundation

extension Storage {
    /// Makes bytes content that can be saved.
    ///
    /// Few bytes inside a transaction of the calling thread stay in memory, as ciphertext where the store is encrypted. They
    /// get a file when the transaction needs one, and by its end.
    func stage(_ data: Data) throws(CofferError) -> StagedAttachment {
        let ownAttachments = ifWriting { $0.state.depth > 0 ? $0.files.attachments : nil } ?? nil
        guard let attachments = ownAttachments, attachments.canSeal(data.count) else {
            return try stage(DataSource(data))
        }
        try checkUsable()
        return try unsafe data.bytes.withUnsafeBytes { (bytes) throws(CofferError) in
            try unsafe attachments.seal(bytes)
        }
    }

    /// Writes content into the store's `incoming/`, as ciphertext where the store is encrypted.
    func stage(_ source: any ContentSource) throws(CofferError) -> StagedAttachment {
        let writer = try beginStaging()
        do throws(CofferError) {
            unsafe try source.read { (bytes: UnsafeRawBufferPointer) throws(CofferError) in
                try unsafe writer.write(bytes)
            }
            return try writer.finish()
        } catch {
            writer.cancel()
            throw error
        }
    }

    /// Opens an attachment's content; nil if it was never downloaded.
    ///
    /// - Throws: `damaged` (500) when it should be here and is missing or was changed; `attachmentNotFound` (404) when no
    ///   revision has it any more, since the database was compacted; `closed` (500).
    func openAttachment(
        _ key: AttachmentKey, subject: String, onlyForReadingWhole: Bool = false
    ) throws(CofferError) -> AttachmentReader? {
        var row = try attachmentRow(key, subject)
        while true {
            guard let content = row.content, let proof = row.proof else { return nil }
            if let staged = staged(content.sha1) { return try staged.open() }
            let attachments = attachments
            do throws(CofferError) {
                return try attachments.open(
                    content, header: proof.header, subject: subject, onlyForReadingWhole: onlyForReadingWhole)
            } catch  where error.code == .damaged {
                // It may have been compacted away, or written again, since the row was read. Only if it is still that
                // row, whose number no other gets, and the key was not changed just then, is it damage.
                let now = try attachmentRow(key, subject)
                if now.number == row.number && now.proof == proof && attachments === self.attachments { throw error }
                row = now
            }
        }
    }

    /// Whether the content is here. Neither opens nor reads it.
    func hasContent(_ key: AttachmentKey) -> Bool { availableContent(key) != nil }

    /// The SHA-1 of a content that is here; nil if it isn't. Neither opens nor reads it.
    func availableContent(_ key: AttachmentKey) -> [UInt8]? {
        guard let row = try? read({ (tables) throws(CofferError) in try attachment(key, tables) }),
            let content = row.content
        else { return nil }
        if staged(content.sha1) != nil { return content.sha1 }
        while true {
            let attachments = attachments
            if attachments.isPresent(content.sha1) { return content.sha1 }
            if attachments === self.attachments { return nil }
        }
    }

    private func attachmentRow(_ key: AttachmentKey, _ subject: String) throws(CofferError) -> AttachmentRow {
        let row = try read { (tables) throws(CofferError) in try attachment(key, tables) }
        guard let row else {
            throw CofferError(.attachmentNotFound, of: subject, "no revision uses it any more")
        }
        return row
    }
}
