package import CofferModel
package import CofferSealing
internal import CofferVault

/// Content that arrives in pieces, for a revision that is to be saved: encrypted from its first byte on, and gone unless the
/// revision is. Calls may come from any thread, one after another.
package final class IncomingContent: Sendable {
    private let writer: AttachmentWriter
    private let storage: Storage

    fileprivate init(_ writer: AttachmentWriter, in storage: Storage) {
        self.writer = writer
        self.storage = storage
    }

    /// Takes the next bytes.
    ///
    /// - Throws: `noSpace` (507), `ioFailed` (500).
    package func write(_ bytes: [UInt8]) throws(CofferError) { try writer.write(bytes) }

    /// Ends the content.
    ///
    /// - Returns: what knows its digest and length, and goes into a revision.
    package func finish(contentType: String? = nil) throws(CofferError) -> Blob {
        Blob(contentType: contentType, backing: Content(try writer.finish(), in: storage))
    }

    /// Gives the content up.
    package func cancel() { writer.cancel() }
}

extension Database {
    /// Begins to write content that arrives in pieces.
    ///
    /// - Throws: `readOnly` (403), `reopenRequired` and `closed` (500), `noSpace` (507).
    package func beginContent() throws(CofferError) -> IncomingContent {
        IncomingContent(try storage.beginStaging(), in: storage)
    }

    /// Whether the content of that digest is here. Neither opens nor reads it.
    package func hasContent(withDigest digest: String) -> Bool { storage.hasContent(AttachmentKey(digest)) }
}
