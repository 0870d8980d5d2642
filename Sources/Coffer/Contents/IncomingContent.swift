package import CofferModel
internal import CofferRecords
package import CofferSealing
internal import CofferVault
internal import Synchronization

/// Content that arrives in pieces, for a revision that is to be saved: encrypted from its first byte on, and gone unless the
/// revision is. Calls may come from any thread, one after another; ``cancel()`` at any time.
package final class IncomingContent: Sendable {
    /// Nil once it was given up, so that its file is closed too.
    private let writer: Lock<AttachmentWriter?>
    private let storage: Storage

    fileprivate init(_ writer: AttachmentWriter, in storage: Storage) {
        self.writer = Lock(writer)
        self.storage = storage
    }

    /// Takes the next bytes.
    ///
    /// - Throws: `noSpace` (507), `ioFailed` (500); `cancelled` (499) once it was given up.
    package func write(_ bytes: [UInt8]) throws(CofferError) { try current().write(bytes) }

    /// Ends the content.
    ///
    /// - Returns: what knows its digest and length, and goes into a revision.
    package func finish(contentType: String? = nil) throws(CofferError) -> Blob {
        Blob(contentType: contentType, backing: Content(try current().finish(), in: storage))
    }

    /// Gives the content up. Nothing of it stays on the disk.
    package func cancel() { writer.withLock { $0.take() }?.cancel() }

    private func current() throws(CofferError) -> AttachmentWriter {
        guard let writer = writer.withLock({ $0 }) else {
            throw CofferError(.cancelled, "the content's writing was cancelled")
        }
        return writer
    }
}

/// Contents that may be on their way for hours, and are not to keep a key that was changed, or a store that is closed.
///
/// Safe from any thread.
final class OpenContents: StorageCompanion {
    private struct Entry {
        weak var content: IncomingContent?
    }

    private let entries = Lock<[Entry]>([])

    fileprivate func add(_ content: IncomingContent) {
        entries.withLock { entries in
            entries.removeAll { $0.content == nil }
            entries.append(Entry(content: content))
        }
    }

    /// Gives all of them up.
    func giveUpUnfinished() {
        let contents = entries.withLock { entries in
            defer { entries = [] }
            return entries.compactMap(\.content)
        }
        for content in contents { content.cancel() }
    }
}

extension Storage {
    /// Contents that are on their way for long.
    fileprivate var openContents: OpenContents { companions[OpenContents.self] }
}

extension Database {
    /// Begins to write content that arrives in pieces.
    ///
    /// - Throws: `readOnly` (403), `reopenRequired` and `closed` (500), `noSpace` (507).
    package func beginContent() throws(CofferError) -> IncomingContent {
        IncomingContent(try storage.beginStaging(), in: storage)
    }

    /// Begins to write content that may take long to arrive: a change of the key and a close don't wait for it but give it up,
    /// and nothing of it stays that was encrypted for the old key.
    ///
    /// - Throws: as ``beginContent()``.
    package func beginLongContent() throws(CofferError) -> IncomingContent {
        while true {
            let generation = storage.attachments
            let content = try beginContent()
            storage.openContents.add(content)
            let isOurs = generation === storage.attachments
            if isOurs && !storage.isClosing { return content }
            // The key was changed just then, or a close has given up those that it knew of.
            content.cancel()
            if isOurs { throw CofferError(.closed, of: storage.subject) }
        }
    }

    /// Whether the content of that digest is here. Neither opens nor reads it.
    package func hasContent(withDigest digest: String) -> Bool { storage.hasContent(AttachmentKey(digest)) }

    /// The digest that a blob's content has in this database; nil if it is not saved here.
    package func digest(of blob: Blob) -> String? { blob.stored?.digest(savedIn: storage) }
}

extension Content {
    func digest(savedIn storage: Storage) -> String? {
        guard case .saved(let home, let digest, _) = place, home === storage else { return nil }
        // What was read before the content came may call it otherwise.
        let row = try? storage.read { (tables) throws(CofferError) in
            try storage.attachment(AttachmentKey(digest), tables)
        }
        if case .sha1(let sha1)? = row?.key { return SHA1Digest.text(of: sha1) }
        return digest
    }
}

/// What contents that came later were called before: another database's digests of them, and their SHA-1s.
///
/// Revisions that were read before a content came still say the other digest, and find it by this. Kept for as long as the
/// database is open; those that are read later say the SHA-1. Safe from any thread.
final class RenamedContents: StorageCompanion {
    /// By the bytes of the digests.
    private let names = Lock<[[UInt8]: [UInt8]]>([:])

    /// More are not kept: what was read before so many came has to be read again.
    private static let limit = 1 << 16

    var isEmpty: Bool { names.withLock { $0.isEmpty } }

    /// Notes that the content with another database's digest has this SHA-1.
    func note(_ digest: String, is sha1: [UInt8]) {
        names.withLock { names in
            if names.count >= Self.limit { names = [:] }
            names[Array(digest.utf8)] = sha1
        }
    }

    func sha1(of digest: String) -> [UInt8]? { names.withLock { $0[Array(digest.utf8)] } }
}

extension Storage {
    /// What contents were called before they came.
    var renamedContents: RenamedContents { companions[RenamedContents.self] }

    /// The row of a content, by its digest or by the one that it had before it came; nil if there isn't one.
    func attachment(_ key: AttachmentKey, _ tables: borrowing Snapshot) throws(CofferError) -> AttachmentRow? {
        if let row = try tables.attachments.attachment(key) { return row }
        guard case .foreign(let digest) = key, let sha1 = renamedContents.sha1(of: digest) else { return nil }
        return try tables.attachments.attachment(.sha1(sha1))
    }
}

extension CanonicalBody {
    /// The body with other digests in its attachments; nil if none changes.
    ///
    /// - Parameter name: the digest that an attachment is to have; nil leaves it.
    func renamingContents(
        _ name: (AttachmentStub) throws(CofferError) -> String?
    ) throws(CofferError) -> CanonicalBody? {
        guard Self.mayHoldAttachments(bytes) else { return nil }
        var object = try JSONObject(self)
        var attachments: JSONObject = [:]
        var isChanged = false
        for (attachment, stub) in try object.attachmentStubs() {
            var stub = stub
            if let digest = try name(stub) {
                stub.digest = digest
                isChanged = true
            }
            attachments[attachment] = stub.json
        }
        guard isChanged else { return nil }
        object["_attachments"] = .object(attachments)
        return try DocumentBody(object, valueLimit: JSONLimits.storedValueCount).body
    }
}
