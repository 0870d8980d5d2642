internal import Coffer
internal import CofferModel
internal import CofferSealing
internal import Foundation

/// The blobs that came from another database without an entry in `_attachments`, and whose contents are not here.
///
/// A database that knows no blobs may hold a document that names one and has no such attachment. Where that document goes on to
/// others, no entry may be added: nobody has the content, and CouchDB refuses a stub of what it doesn't have. Other contents
/// that are not here have an entry, since some server has them. A local document for each such digest says which is which.
struct UnattachedBlobs {
    /// Digests that come without an entry, and were not known here.
    private var new: [String] = []
    /// Digests that were noted before, and have an entry now: somebody has the content, after all.
    private var found: [String] = []

    /// Looks at a revision that is about to be saved.
    ///
    /// - Parameters:
    ///   - blobs: what its body names.
    ///   - attached: the digests of those that have an entry in `_attachments`.
    init(_ blobs: [BlobReference], attached: Set<ByteKey>, in database: Database) throws(CofferError) {
        var seen: Set<ByteKey> = []
        for digest in blobs.map(\.digest) where seen.insert(ByteKey(digest)).inserted {
            if attached.contains(ByteKey(digest)) {
                if try Self.contains(digest, in: database) { found.append(digest) }
            } else if !database.hasContent(withDigest: digest), try database.uses(ofContent: digest, limit: 1).isEmpty {
                new.append(digest)
            }
        }
    }

    /// Notes them, once the revision is saved.
    func note(in database: Database) throws(CofferError) {
        for digest in new { try database.saveLocalDocument([:], withID: Self.id(of: digest)) }
        for digest in found { try database.deleteLocalDocument(withID: Self.id(of: digest)) }
    }

    /// Whether the blob of that digest, whose content is not here, goes without an entry.
    static func contains(_ digest: String, in database: Database) throws(CofferError) -> Bool {
        try database.localDocumentGeneration(withID: id(of: digest)) > 0
    }

    /// Another database's digest may be any text, of any length.
    private static func id(of digest: String) throws(CofferError) -> String {
        "_local/coffer.unattached." + Data(try Digest.sha256(of: Array(digest.utf8))).base64EncodedString()
    }
}
