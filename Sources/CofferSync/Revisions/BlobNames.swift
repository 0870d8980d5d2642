internal import Coffer
package import CofferModel

/// The names under which a body's blobs stand among its attachments, for databases that know no blobs.
package struct BlobNames: Sendable {
    package struct Entry: Sendable {
        package let name: String
        package let reference: BlobReference
    }

    /// Each content once, in the order in which the body names them.
    package let all: [Entry]

    static let prefix = "blob_"

    /// - Parameter body: in canonical order, so that everybody numbers the same.
    package init(_ body: JSONObject) {
        var all: [Entry] = []
        for reference in body.blobReferences where !all.contains(where: { $0.reference.digest == reference.digest }) {
            all.append(Entry(name: "\(Self.prefix)\(all.count + 1)", reference: reference))
        }
        self.all = all
    }

    /// The blob that an attachment of another database stands for; nil where it is an attachment of its own.
    ///
    /// - Parameter digest: which CouchDB makes another than ours.
    package func reference(named name: String, digest: String, length: Int?) -> BlobReference? {
        guard name.hasPrefix(Self.prefix) else { return nil }
        if let same = all.first(where: { $0.reference.digest == digest }) { return same.reference }
        guard !digest.hasPrefix("sha1-") else { return nil }
        return all.first { $0.name == name && (length == nil || $0.reference.length == length) }?.reference
    }
}

/// Finds out in which generation a revision's blobs came.
struct BlobGenerations {
    private let revision: SavedRevision
    /// The names in the revision's ancestors, the newest first, as far as their bodies are here.
    private var ancestors: [(generation: Int, names: BlobNames)]

    /// An ancestor's body costs a read: more than that many are not looked at.
    private static let depth = 20

    init(_ revision: SavedRevision) throws(CofferError) {
        self.revision = revision
        ancestors = []
        for ancestor in try revision.history.reversed().dropFirst().prefix(Self.depth) {
            guard try ancestor.propertiesAvailable else { break }
            var body = try JSONValue(json: Array(try ancestor.json)).objectValue ?? [:]
            body["_attachments"] = nil
            ancestors.append((ancestor.revisionID.generation, BlobNames(body)))
        }
    }

    /// The generation of the first of the unbroken line of revisions that have this blob under this name.
    mutating func generation(of blob: BlobNames.Entry) throws(CofferError) -> Int {
        var generation = revision.revisionID.generation
        for ancestor in ancestors {
            guard
                ancestor.names.all.contains(where: {
                    $0.name == blob.name && $0.reference.digest == blob.reference.digest
                })
            else { break }
            generation = ancestor.generation
        }
        return generation
    }
}
