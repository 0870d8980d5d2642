internal import CofferModel
public import CofferSealing
internal import CofferVault
public import Foundation

extension SavedRevision {
    /// The names of the revision's attachments.
    ///
    /// - Throws: as ``properties``. The attachments themselves are not touched.
    public var attachmentNames: [String] {
        get throws(CofferError) { try attachmentStubs.map(\.name) }
    }

    /// The revision's attachments, to be read when they are asked for.
    public var attachments: [Attachment] {
        get throws(CofferError) { try attachmentStubs.map { attachment($0.name, $0.stub) } }
    }

    /// The revision's attachment of that name; nil if there isn't one.
    public func attachment(named name: String) throws(CofferError) -> Attachment? {
        try attachmentStubs.first { $0.name.utf8.elementsEqual(name.utf8) }.map { attachment($0.name, $0.stub) }
    }

    /// The blob that is the value of that property; nil if there isn't one, or a value of another type.
    public func blob(forKey key: String) throws(CofferError) -> Blob? { try properties[key]?.blobValue }

    private func attachment(_ name: String, _ stub: AttachmentStub) -> Attachment {
        Attachment(
            name: name, contentType: stub.contentType, document: document,
            Content(in: database.storage, digest: stub.digest, byteCount: stub.byteCount), stub: stub)
    }
}

extension MutableDocument {
    /// The blob that is the value of that property; nil if there isn't one, or a value of another type.
    public func blob(forKey key: String) -> Blob? { properties[key]?.blobValue }

    /// Makes a blob the value of that property; nil removes it.
    public func setBlob(_ blob: Blob?, forKey key: String) { properties[key] = blob.map { .blob($0) } }
}

extension UnsavedRevision {
    /// The blob that is the value of that property; nil if there isn't one, or a value of another type.
    public func blob(forKey key: String) -> Blob? { properties[key]?.blobValue }

    /// Makes a blob the value of that property; nil removes it.
    public func setBlob(_ blob: Blob?, forKey key: String) { properties[key] = blob.map { .blob($0) } }
}

extension UnsavedRevision {
    /// The names of the draft's attachments.
    public var attachmentNames: [String] { draftAttachments.entries.map(\.name) }

    /// Has the draft take attachments with an empty name: CouchDB's clients may send them.
    package func takeEmptyAttachmentNames() { draftAttachments.takesEmptyNames = true }

    /// The draft's attachments.
    public var attachments: [Attachment] { draftAttachments.entries.map { attachment($0) } }

    /// The draft's attachment of that name; nil if there isn't one.
    public func attachment(named name: String) -> Attachment? { draftAttachments[name].map { attachment($0) } }

    private func attachment(_ entry: DraftAttachments.Entry) -> Attachment {
        Attachment(
            name: entry.name, contentType: entry.contentType, document: document, entry.content, stub: entry.stub)
    }

    /// Attaches bytes, in place of an attachment of the same name. They are written when the draft is saved.
    ///
    /// - Parameters:
    ///   - name: any text but an empty one, which is a 400 when the draft is saved.
    ///   - contentType: by convention a MIME type. Coffer does not use it.
    ///   - content: the bytes.
    public func setAttachment(named name: String, contentType: String?, content: Data) {
        draftAttachments[name] = .init(name: name, contentType: contentType, content: Content(content))
    }

    /// Attaches a file's content, in place of an attachment of the same name.
    ///
    /// The file is read now, in constant memory, into a file of the store that is encrypted as the store is; it goes away
    /// with the draft unless that is saved.
    ///
    /// - Throws: `invalidAttachment` (400) when the file can't be read, `readOnly` (403), `closed` (500), `noSpace` (507).
    ///   The draft stays as it was.
    public func setAttachment(named name: String, contentType: String?, contentsOf url: URL) throws(CofferError) {
        try setAttachment(named: name, contentType, FileSource(url))
    }

    /// Attaches a stream's content, in place of an attachment of the same name. It is read now, to its end: see the form
    /// with a URL.
    public func setAttachment(
        named name: String, contentType: String?, contentsOf stream: sending InputStream
    ) throws(CofferError) {
        try setAttachment(named: name, contentType, StreamSource(stream))
    }

    /// Attaches the bytes that a sequence brings, in place of an attachment of the same name. They are read now, to their
    /// end: see the form with a URL. Where the sequence throws, nothing is attached.
    public func setAttachment<Bytes: AsyncSequence>(
        named name: String, contentType: String?, contentsOf bytes: Bytes
    ) async throws where Bytes.Element == UInt8 {
        let writer = try document.storage.beginStaging()
        var piece: [UInt8] = []
        piece.reserveCapacity(1 << 16)
        do {
            for try await byte in bytes {
                piece.append(byte)
                if piece.count == 1 << 16 {
                    try writer.write(piece)
                    piece.removeAll(keepingCapacity: true)
                }
            }
            try writer.write(piece)
        } catch {
            writer.cancel()
            throw error
        }
        setAttachment(named: name, contentType, try writer.finish())
    }

    /// Removes the attachment of that name. Where there isn't one, nothing happens.
    public func removeAttachment(named name: String) { draftAttachments[name] = nil }

    /// Attaches what a blob holds.
    package func setAttachment(named name: String, contentType: String?, _ blob: Blob) {
        guard let content = blob.stored else { return }
        draftAttachments[name] = .init(name: name, contentType: contentType, content: content)
    }

    private func setAttachment(
        named name: String, _ contentType: String?, _ source: any ContentSource
    ) throws(CofferError) {
        setAttachment(named: name, contentType, try document.storage.stage(source))
    }

    private func setAttachment(named name: String, _ contentType: String?, _ staged: StagedAttachment) {
        draftAttachments[name] = .init(
            name: name, contentType: contentType, content: Content(staged, in: document.storage))
    }
}
