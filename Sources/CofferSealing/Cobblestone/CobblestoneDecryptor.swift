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
