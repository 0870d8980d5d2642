/// c2sp.org/chunked-encryption with AES-256-GCM, "Cobblestone-256": how the content of an attachment is encrypted.
///
///     message = salt(24) ‖ commitment(32) ‖ chunk 0 ‖ … ‖ chunk N
///     key(32) ‖ base nonce(12) ‖ commitment(32) =
///         HKDF-Expand-SHA-512(input key(32), label ‖ 00 ‖ salt ‖ context, 76)
///     chunk k = AES-256-GCM(key, nonce = base nonce XOR k, 16384 bytes of plaintext) ‖ tag(16)
///
/// The last chunk, and only that, has fewer than 16384 bytes of plaintext: a multiple of 16384 ends with a bare tag. So
/// every message has one valid length, a message cut anywhere is noticed at its new end, and any chunk is found and
/// opened without the others.
package enum Cobblestone {
    /// Bytes of plaintext in each chunk but the last.
    package static let chunkByteCount = 16384
    /// Bytes of the message in each chunk but the last.
    package static let sealedChunkByteCount = chunkByteCount + tagByteCount
    /// Bytes before the first chunk: salt and commitment.
    package static let headerByteCount = saltByteCount + commitmentByteCount

    static let saltByteCount = 24
    static let commitmentByteCount = 32
    static let tagByteCount = ChunkCipher.tagByteCount

    /// The most chunks that a message may have: 2^38, which are 4 PiB.
    static let maximumChunkCount = 1 << 38
    /// A message's plaintext has fewer bytes: 2^52.
    package static let plaintextByteLimit = maximumChunkCount * chunkByteCount

    /// The length of the plaintext of a message with `byteCount` bytes, or nil when no message has that length.
    package static func plaintextByteCount(ofMessage byteCount: Int) -> Int? {
        guard byteCount >= headerByteCount + tagByteCount else { return nil }
        let (fullChunkCount, rest) = (byteCount - headerByteCount).quotientAndRemainder(
            dividingBy: sealedChunkByteCount)
        guard rest >= tagByteCount, fullChunkCount < maximumChunkCount else { return nil }
        return fullChunkCount * chunkByteCount + rest - tagByteCount
    }

    /// The length of the message whose plaintext has `byteCount` bytes, which must be fewer than 2^52.
    package static func messageByteCount(ofPlaintext byteCount: Int) -> Int {
        precondition((0..<plaintextByteLimit).contains(byteCount), "the length is beyond the limit of a message")
        return headerByteCount + byteCount + (byteCount / chunkByteCount + 1) * tagByteCount
    }

    /// What is derived for one message: its key, its base nonce and its commitment.
    struct MessageKeys: ~Copyable {
        private let bytes: SecretBytes

        /// `inputKey` must be 32 bytes, a password is a 400.
        init(inputKey: SymmetricKey, salt: some Collection<UInt8>, context: [UInt8]) throws(CofferError) {
            precondition(salt.count == Cobblestone.saltByteCount, "a salt has 24 bytes")
            let label = Array("c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM".utf8)
            bytes = try inputKey.derivedBytes(
                by: .hkdfExpandSHA512(info: label + [0] + salt + context),
                byteCount: ChunkCipher.keyByteCount + ChunkCipher.nonceByteCount + Cobblestone.commitmentByteCount,
                lifetime: .momentary)
        }

        func cipher(_ direction: ChunkCipher.Direction) throws(CofferError) -> ChunkCipher {
            try unsafe bytes.withBytes { (bytes) throws(CofferError) in
                try unsafe ChunkCipher(
                    direction, key: .init(rebasing: bytes[..<32]), baseNonce: .init(rebasing: bytes[32..<44]))
            }
        }

        /// Tells everybody that the sealer had this key, and nothing about the key.
        var commitment: [UInt8] { unsafe bytes.withBytes { unsafe Array($0[44...]) } }
    }
}
