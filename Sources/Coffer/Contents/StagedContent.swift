internal import CofferModel
internal import CofferSealing
internal import CofferVault

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
