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

/// A SHA-256 as a value of fixed size, which costs no allocation.
package struct SHA256Value: Sendable, Hashable {
    /// The first, second, third and fourth 8 bytes, each read as a big-endian number.
    package let word0, word1, word2, word3: UInt64

    package init(_ word0: UInt64, _ word1: UInt64, _ word2: UInt64, _ word3: UInt64) {
        (self.word0, self.word1, self.word2, self.word3) = (word0, word1, word2, word3)
    }

    /// All 32 bytes.
    package var bytes: [UInt8] { unsafe withBytes { unsafe Array($0) } }

    /// The first 16 bytes: what a row carries of its body's digest.
    package var first16: [UInt8] { unsafe withBytes { unsafe Array($0.prefix(16)) } }

    /// Whether the first 16 bytes are these. Not in constant time: digests of bodies are no secrets.
    package func startsWithFirst16(_ bytes: RawSpan) -> Bool {
        guard bytes.byteCount == 16 else { return false }
        return unsafe bytes.withUnsafeBytes {
            unsafe UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) == word0
                && UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)) == word1
        }
    }

    /// Lends all 32 bytes to `body`, without allocating.
    @inlinable package func withBytes<R, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        let words = (word0.bigEndian, word1.bigEndian, word2.bigEndian, word3.bigEndian)
        return try unsafe withUnsafeBytes(of: words) { (bytes) throws(E) in try unsafe body(bytes) }
    }
}

/// `bytes` in lower-case hex, two digits for each. Not for keys: what it returns isn't wiped.
package func hexadecimal(_ bytes: [UInt8]) -> String {
    func digit(_ value: UInt8) -> UInt8 { value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10 }
    return unsafe String(unsafeUninitializedCapacity: 2 * bytes.count) { output in
        for (index, byte) in bytes.enumerated() {
            unsafe output[2 * index] = digit(byte >> 4)
            unsafe output[2 * index + 1] = digit(byte & 15)
        }
        return 2 * bytes.count
    }
}

/// `value` in lower-case hex, with 16 digits.
package func hexadecimal(_ value: UInt64) -> String {
    hexadecimal((0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * UInt64($0))) })
}

extension UInt8 {
    /// The value of the hex digit, of either case, that this is in ASCII; nil for anything else.
    package var hexDigitValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// Whether this is a hex digit as ``hexadecimal(_:)`` writes them.
    package var isLowerCaseHexDigit: Bool {
        hexDigitValue != nil && !(UInt8(ascii: "A")...UInt8(ascii: "F")).contains(self)
    }
}
