internal import CofferModel
public import CofferSealing

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
