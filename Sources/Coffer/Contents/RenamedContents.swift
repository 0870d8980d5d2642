internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import CofferVault
internal import Synchronization

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
