internal import CofferModel
internal import CofferRecords
internal import CofferSealing

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
