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

    /// - Parameters:
    ///   - body: in canonical order, so that everybody numbers the same.
    ///   - taken: names of attachments of its own, which no blob has.
    package init(_ body: JSONObject, taken: Set<ByteKey> = []) {
        var all: [Entry] = []
        var known: Set<ByteKey> = []
        var number = 0
        for reference in body.blobReferences where known.insert(ByteKey(reference.digest)).inserted {
            var name: String
            repeat {
                number += 1
                name = "\(Self.prefix)\(number)"
            } while taken.contains(ByteKey(name))
            all.append(Entry(name: name, reference: reference))
        }
        self.all = all
    }

    /// The blobs that a revision's attachments stand for in another database, by the attachments' names.
    ///
    /// - Parameter attachments: what `_attachments` says there. Digests of CouchDB are others than ours: there names and
    ///   lengths have to do.
    static func references(
        in body: JSONObject, among attachments: JSONObject
    ) -> [ByteKey: BlobReference] {
        let candidates = attachments.filter { $0.key.hasPrefix(prefix) && $0.value["digest"]?.stringValue != nil }
        guard !candidates.isEmpty else { return [:] }
        let names = BlobNames(body).all
        let byDigest = Dictionary(
            names.map { (ByteKey($0.reference.digest), $0.reference) }, uniquingKeysWith: { first, _ in first })
        let byName = Dictionary(names.map { (ByteKey($0.name), $0.reference) }, uniquingKeysWith: { first, _ in first })
        var found: [ByteKey: BlobReference] = [:]
        for (name, entry) in candidates {
            guard let digest = entry["digest"]?.stringValue else { continue }
            let length: Int? = entry["length"]
            if let same = byDigest[ByteKey(digest)] {
                found[ByteKey(name)] = same
            } else if !digest.hasPrefix("sha1-"), let same = byName[ByteKey(name)],
                length == nil || same.length == length
            {
                found[ByteKey(name)] = same
            }
        }
        // Where an attachment of its own has a blob's name, the blob has a later one.
        let claimed = Set(found.values.map { ByteKey($0.digest) })
        var unclaimed: [Int: [String]] = [:]
        for (name, entry) in candidates where found[ByteKey(name)] == nil {
            guard entry["digest"]?.stringValue?.hasPrefix("sha1-") == false, let length: Int = entry["length"] else {
                continue
            }
            unclaimed[length, default: []].append(name)
        }
        for blob in names where !claimed.contains(ByteKey(blob.reference.digest)) {
            guard var places = unclaimed[blob.reference.length], !places.isEmpty else { continue }
            found[ByteKey(places.removeFirst())] = blob.reference
            unclaimed[blob.reference.length] = places
        }
        return found
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
            let taken = Set((body["_attachments"]?.objectValue ?? [:]).map { ByteKey($0.key) })
            body["_attachments"] = nil
            ancestors.append((ancestor.revisionID.generation, BlobNames(body, taken: taken)))
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
