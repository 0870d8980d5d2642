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
