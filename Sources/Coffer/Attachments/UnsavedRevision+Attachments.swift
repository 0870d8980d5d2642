internal import CofferModel
internal import CofferVault
public import CofferSealing
public import Foundation

/// The attachments of a draft: those of the revision that it was made from, and what was changed since.
struct DraftAttachments {
    struct Entry {
        var name: String
        var contentType: String?
        var content: Content
        /// What the revision before said; nil for one that is new.
        var stub: AttachmentStub?
    }

    private(set) var entries: [Entry] = []
    /// Whether a new one may have an empty name, as in CouchDB. What comes from there may; an app has no use for it.
    var takesEmptyNames = false

    init() {}

    /// Those of a saved revision.
    init(of revision: SavedRevision) throws(CofferError) {
        entries = try revision.attachmentStubs.map { name, stub in
            Entry(
                name: name, contentType: stub.contentType,
                content: Content(
                    in: revision.document.database.storage, digest: stub.digest, byteCount: stub.byteCount),
                stub: stub)
        }
    }

    subscript(name: String) -> Entry? {
        get { index(of: name).map { entries[$0] } }
        set {
            switch (index(of: name), newValue) {
            case (let index?, let entry?): entries[index] = entry
            case (let index?, nil): entries.remove(at: index)
            case (nil, let entry?): entries.append(entry)
            case (nil, nil): break
            }
        }
    }

    private func index(of name: String) -> Int? {
        entries.firstIndex { $0.name.utf8.elementsEqual(name.utf8) }
    }

    /// Makes sure that the store has all contents.
    ///
    /// - Returns: what a revision with this generation says of them, and what is to be installed with it.
    func stage(
        in storage: Storage, generation: Int
    ) throws(CofferError) -> (stubs: [(name: String, stub: AttachmentStub)], staged: [StagedContent]) {
        var stubs: [(name: String, stub: AttachmentStub)] = []
        var staged: [StagedContent] = []
        for entry in entries {
            guard !entry.name.isEmpty || entry.stub != nil || takesEmptyNames else {
                throw CofferError(.invalidAttachment, "an attachment without a name")
            }
            if let stub = entry.stub {
                stubs.append((entry.name, stub))
                continue
            }
            staged += try StagedContent(entry.content, in: storage).map { [$0] } ?? []
            guard let digest = entry.content.digest, let byteCount = entry.content.length else {
                throw CofferError(.invalidAttachment, of: "attachment \(entry.name)", "its content is unknown")
            }
            let stub = AttachmentStub(
                contentType: entry.contentType, digest: digest, byteCount: byteCount, changedInGeneration: generation)
            stubs.append((entry.name, stub))
        }
        return (stubs, staged)
    }

    /// Notes that all of this was saved, and what the revision says of it.
    mutating func noteSaved(as stubs: [(name: String, stub: AttachmentStub)]) {
        for (name, stub) in stubs {
            guard var entry = self[name] else { continue }
            entry.stub = stub
            self[name] = entry
        }
    }
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
        let writer = try document.database.storage.beginStaging()
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
        setAttachment(named: name, contentType, try document.database.storage.stage(source))
    }

    private func setAttachment(named name: String, _ contentType: String?, _ staged: StagedAttachment) {
        draftAttachments[name] = .init(
            name: name, contentType: contentType, content: Content(staged, in: document.database.storage))
    }
}
