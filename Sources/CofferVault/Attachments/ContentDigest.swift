internal import CofferSealing

/// What names an attachment's content and what checks it.
package struct ContentDigest: Sendable, Hashable {
    /// 20 bytes: what Couchbase's format calls the content by. Collisions can be made on purpose, so it decides nothing
    /// alone.
    package let sha1: [UInt8]
    /// 32 bytes.
    package let sha256: [UInt8]
    package let byteCount: Int

    /// `sha1` must be 20 bytes and `sha256` 32.
    package init(sha1: [UInt8], sha256: [UInt8], byteCount: Int) {
        precondition(sha1.count == DigestAlgorithm.sha1.byteCount, "a SHA-1 has 20 bytes")
        precondition(sha256.count == DigestAlgorithm.sha256.byteCount, "a SHA-256 has 32 bytes")
        precondition(byteCount >= 0, "no content is that short")
        self.sha1 = sha1
        self.sha256 = sha256
        self.byteCount = byteCount
    }
}

/// Makes a ``ContentDigest`` of content that comes in pieces.
struct ContentHasher: ~Copyable {
    private var sha1: StreamingDigest?
    private var sha256: StreamingDigest
    private var byteCount = 0
    private let known: ContentDigest?

    /// Of content that is new, or that should be `known`: its SHA-1 is taken from there then, since it decides nothing.
    ///
    /// Throws `encryptionUnavailable` (501).
    init(known: ContentDigest? = nil) throws(CofferError) {
        self.known = known
        sha1 = known == nil ? try StreamingDigest(.sha1) : nil
        sha256 = try StreamingDigest(.sha256)
    }

    mutating func update(_ bytes: RawSpan) {
        sha1?.update(bytes)
        sha256.update(bytes)
        byteCount += bytes.byteCount
    }

    mutating func finalize() -> ContentDigest {
        ContentDigest(
            sha1: sha1?.finalize() ?? known?.sha1 ?? [], sha256: sha256.finalize(), byteCount: byteCount)
    }
}
