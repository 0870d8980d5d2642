internal import CofferModel
internal import CofferSealing
internal import Synchronization
internal import CofferVault

/// What contents that came later were called before: another database's digests of them, and their SHA-1s.
///
/// Revisions that were read before a content came still say the other digest, and find it by this. Kept for as long as the
/// database is open; those that are read later say the SHA-1. Safe from any thread.
final class RenamedContents: Sendable {
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
    /// The row of a content, by its digest or by the one that it had before it came; nil if there isn't one.
    func attachment(_ key: AttachmentKey, _ tables: borrowing DocumentTables) throws(CofferError) -> AttachmentRow? {
        if let row = try tables.attachments.attachment(key) { return row }
        guard case .foreign(let digest) = key, let sha1 = renamedContents.sha1(of: digest) else { return nil }
        return try tables.attachments.attachment(.sha1(sha1))
    }
}

extension Writer {
    /// The content with the SHA-1s of those contents that it calls by a digest that they had before they came.
    ///
    /// Called before the revision gets its id.
    func withPresentNames(
        _ content: RevisionContent, of document: Document
    ) throws(CofferError) -> RevisionContent {
        let names = document.database.storage.renamedContents
        guard !names.isEmpty else { return content }
        let renamed = try content.body.renamingContents { (stub) throws(CofferError) in
            guard let sha1 = names.sha1(of: stub.digest),
                try tables.attachments.attachment(.foreign(stub.digest)) == nil,
                let row = try tables.attachments.attachment(.sha1(sha1)), row.byteCount == stub.byteCount
            else { return nil }
            return SHA1Digest.text(of: sha1)
        }
        guard let renamed else { return content }
        return try RevisionContent(renamed, subject: document.subject)
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
