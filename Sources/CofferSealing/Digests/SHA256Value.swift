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
