internal import CofferModel
internal import CofferSealing
internal import CofferVault

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
        let storage = revision.database.storage
        entries = try revision.attachmentStubs.map { name, stub in
            Entry(
                name: name, contentType: stub.contentType,
                content: Content(in: storage, digest: stub.digest, byteCount: stub.byteCount),
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
