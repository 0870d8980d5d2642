/// The digests that Coffer uses: SHA-256 for what must be certain, SHA-1 for the names that Couchbase's format asks for, MD5
/// to see that what CouchDB sent arrived whole.
package enum DigestAlgorithm: Sendable {
    /// RFC 1321, 16 bytes. Proves nothing against who means harm.
    case md5
    /// FIPS 180-4 section 6.1, 20 bytes. Collisions can be made on purpose: never decides identity alone.
    case sha1
    /// FIPS 180-4 section 6.2, 32 bytes.
    case sha256

    package var byteCount: Int {
        switch self {
        case .md5: 16
        case .sha1: 20
        case .sha256: 32
        }
    }
}

/// Digests of bytes that are all there already. For bytes in pieces, and where many are made, see ``StreamingDigest``.
///
/// All throw `encryptionUnavailable` (501) where this system's OpenSSL lacks the digest.
package enum Digest {
    package static func sha1(of bytes: borrowing RawSpan) throws(CofferError) -> [UInt8] {
        var digest = try StreamingDigest(.sha1)
        digest.update(copy bytes)
        return digest.finalize()
    }

    package static func sha256(of bytes: borrowing RawSpan) throws(CofferError) -> [UInt8] {
        try sha256Value(of: bytes).bytes
    }

    package static func sha256Value(of bytes: borrowing RawSpan) throws(CofferError) -> SHA256Value {
        var digest = try StreamingDigest(.sha256)
        digest.update(copy bytes)
        return digest.finalizeSHA256()
    }

    package static func sha1(of bytes: [UInt8]) throws(CofferError) -> [UInt8] { try unsafe sha1(of: bytes.span.bytes) }
    package static func sha256(of bytes: [UInt8]) throws(CofferError) -> [UInt8] {
        try unsafe sha256(of: bytes.span.bytes)
    }
    package static func sha256Value(of bytes: [UInt8]) throws(CofferError) -> SHA256Value {
        try unsafe sha256Value(of: bytes.span.bytes)
    }
}
