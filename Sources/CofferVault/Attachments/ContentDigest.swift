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
    /// Nil where it is known.
    private var sha1: StreamingDigest?
    /// Nil while it is lent.
    private var sha256: StreamingDigest?
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
        sha256?.update(bytes)
        byteCount += bytes.byteCount
    }

    /// Takes bytes on other threads, as far as there are any, while `body` runs on this one. When this returns, all of it is over.
    mutating func update(
        _ bytes: UnsafeRawBufferPointer, beside body: () throws(CofferError) -> Void
    ) throws(CofferError) {
        let (first, second) = (LentDigest(sha1.take()), LentDigest(sha256.take()))
        // They stay for as long as this call does, and nobody reads them after it
        // (test: "Side work that another thread has begun is over when the call returns, also when the other work throws").
        nonisolated(unsafe) let bytes = unsafe bytes
        defer {
            sha1 = first.takeBack()
            sha256 = second.takeBack()
            byteCount += unsafe bytes.count
        }
        try SideWork.run({ unsafe second.update(bytes) }) { () throws(CofferError) in
            guard known == nil else { return try body() }
            try SideWork.run({ unsafe first.update(bytes) }, beside: body)
        }
    }

    mutating func finalize() -> ContentDigest {
        guard let sha256 = sha256?.finalize(), let sha1 = sha1?.finalize() ?? known?.sha1 else {
            preconditionFailure("a digest is lent")
        }
        return ContentDigest(sha1: sha1, sha256: sha256, byteCount: byteCount)
    }
}

/// A digest that another thread takes bytes into.
private final class LentDigest: Sendable {
    private let digest: Lock<StreamingDigest?>

    init(_ digest: consuming sending StreamingDigest?) { self.digest = Lock(digest) }

    func update(_ bytes: UnsafeRawBufferPointer) { digest.withLock { unsafe $0?.update(bytes.bytes) } }

    func takeBack() -> StreamingDigest? { digest.withLock { $0.take() } }
}
