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

/// Seals one message, chunk by chunk from first to last. For one thread at a time.
package struct CobblestoneEncryptor: ~Copyable, Sendable {
    /// The first 56 bytes of the message: salt and commitment. No other message has the same.
    package let header: [UInt8]

    private var cipher: ChunkCipher
    private var hasEnded = false
    /// The index of the chunk that is sealed next.
    var nextIndex = 0

    /// Starts a message under 32 bytes of key; only the same key and the same context open it.
    ///
    /// - Throws: ``CofferError/Code/invalidArgument`` (400) if the key is a password,
    ///   ``CofferError/Code/encryptionUnavailable`` (501) if OpenSSL can't do it.
    package init(key: SymmetricKey, context: [UInt8]) throws(CofferError) {
        try self.init(key: key, context: context, salt: randomBytes(count: Cobblestone.saltByteCount))
    }

    /// For test vectors: two messages under one key, context and salt give both away.
    init(key: SymmetricKey, context: [UInt8], salt: [UInt8]) throws(CofferError) {
        let keys = try Cobblestone.MessageKeys(inputKey: key, salt: salt, context: context)
        let cipher = try keys.cipher(.sealing)
        header = salt + keys.commitment
        self.cipher = cipher
    }

    /// Seals the next chunk: 16384 bytes, but for the last one, which has fewer (0…16383) and ends the message.
    ///
    /// Writes `plaintext.count + 16` bytes to the start of `output`, which may be where `plaintext` is. Any other number
    /// of bytes, less room, or a chunk after the last or after an error, is a programming error and ends the process.
    ///
    /// - Throws: ``CofferError/Code/invalidAttachment`` (400) for a chunk that would make the message longer than 2^38
    ///   chunks, ``CofferError/Code/encryptionUnavailable`` (501) if OpenSSL fails. The message is unusable then.
    package mutating func seal(
        _ plaintext: UnsafeRawBufferPointer, isLast: Bool, into output: UnsafeMutableRawBufferPointer
    ) throws(CofferError) {
        precondition(!hasEnded, "the message has ended")
        precondition(
            isLast ? plaintext.count < Cobblestone.chunkByteCount : plaintext.count == Cobblestone.chunkByteCount,
            "the last chunk is shorter than 16384 bytes, and no other")
        let sealedByteCount = plaintext.count + Cobblestone.tagByteCount
        precondition(output.count >= sealedByteCount, "the sealed chunk doesn't fit")
        hasEnded = true  // An error must not lead to another plaintext under the same nonce.
        guard nextIndex < (isLast ? Cobblestone.maximumChunkCount : Cobblestone.maximumChunkCount - 1) else {
            throw CofferError(.invalidAttachment, "the content has 4 PiB or more")
        }
        try unsafe cipher.seal(plaintext, index: nextIndex, into: .init(rebasing: output[..<sealedByteCount]))
        nextIndex += 1
        hasEnded = isLast
    }
}

/// Opens the chunks of one message in any order. For one thread at a time.
///
/// A chunk that opens is the one that was sealed at this index of the message with this header. Whether the message is
/// whole only its length and its last chunk say: take the length from ``Cobblestone/plaintextByteCount(ofMessage:)``,
/// and rely on it, or on the end of a read, only after the last chunk has been opened.
package struct CobblestoneDecryptor: ~Copyable, Sendable {
    private var cipher: ChunkCipher

    /// Checks the first 56 bytes of a message.
    ///
    /// Nil when the commitment isn't the one that this key and context have for the salt: the message was sealed under
    /// another key or for another context (another store or generation), was changed, or is not such a message.
    ///
    /// - Throws: ``CofferError/Code/invalidArgument`` (400) if the key is a password,
    ///   ``CofferError/Code/encryptionUnavailable`` (501) if OpenSSL can't do it.
    package init?(key: SymmetricKey, context: [UInt8], header: [UInt8]) throws(CofferError) {
        guard header.count == Cobblestone.headerByteCount else { return nil }
        let salt = header.prefix(Cobblestone.saltByteCount)
        let keys = try Cobblestone.MessageKeys(inputKey: key, salt: salt, context: context)
        guard equalInConstantTime(keys.commitment, Array(header.dropFirst(Cobblestone.saltByteCount))) else {
            return nil
        }
        cipher = try keys.cipher(.opening)
    }

    /// Opens chunk `index`: all 16400 bytes of it, or those that are left in the last, which are fewer.
    ///
    /// Returns false when these are not the bytes that were sealed there, of that length; no chunk has fewer than 16 or
    /// more than 16400. Writes `sealed.count - 16` bytes to the start of `output`, which may be where `sealed` is: the
    /// plaintext, or zeros (of a chunk of impossible length, nothing), so that no byte is seen whose tag wasn't right.
    /// Less room is a programming error and ends the process, as is an index that no message has (2^38 or more).
    ///
    /// - Throws: ``CofferError/Code/encryptionUnavailable`` (501) if OpenSSL fails.
    package mutating func open(
        _ sealed: UnsafeRawBufferPointer, index: Int, into output: UnsafeMutableRawBufferPointer
    ) throws(CofferError) -> Bool {
        precondition((0..<Cobblestone.maximumChunkCount).contains(index), "the chunk's index is beyond the message")
        let byteCount = sealed.count - Cobblestone.tagByteCount
        guard (0...Cobblestone.chunkByteCount).contains(byteCount) else { return false }
        precondition(output.count >= byteCount, "the chunk doesn't fit")
        return try unsafe cipher.open(sealed, index: index, into: .init(rebasing: output[..<byteCount]))
    }
}
