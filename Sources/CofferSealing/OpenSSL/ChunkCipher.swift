internal import COpenSSL

/// AES-256-GCM (NIST SP 800-38D) of the chunks of one message, each under a nonce of its own, without additional data.
/// The owner of its OpenSSL context, which keeps the key; it either seals or opens. For one thread at a time.
@safe struct ChunkCipher: ~Copyable, @unchecked Sendable {
    // Sendable: nobody else has the pointer, and every use of it is mutating, so that the compiler lets one thread at a time
    // use it (test: "Threads that take turns with a digest, a cipher and a secret get what one thread would").
    private let context: OpaquePointer

    // A nonce isn't secret. The last 8 of its 12 bytes are a number, big-endian, because only they vary: a chunk's index
    // has fewer than 64 bits.
    private let nonceStart: UInt32
    private let nonceEnd: UInt64

    enum Direction { case sealing, opening }

    static let keyByteCount = 32
    static let nonceByteCount = 12
    static let tagByteCount = 16

    /// The nonce of chunk k is `baseNonce` XOR k, as a number of 96 bits.
    init(
        _ direction: Direction, key: UnsafeRawBufferPointer, baseNonce: UnsafeRawBufferPointer
    ) throws(CofferError) {
        precondition(key.count == Self.keyByteCount, "AES-256 takes 32 bytes")
        precondition(baseNonce.count == Self.nonceByteCount, "GCM takes a nonce of 12 bytes here")
        guard let algorithm = CipherImplementation.aes256GCM else { throw .openSSLFailed("AES-256-GCM") }
        guard let context = unsafe EVP_CIPHER_CTX_new() else { throw .openSSLFailed("AES-256-GCM") }
        let keyStart = unsafe key.bindMemory(to: UInt8.self).baseAddress
        let isSealing: Int32 = direction == .sealing ? 1 : 0
        guard unsafe EVP_CipherInit_ex2(context, algorithm.pointer, keyStart, nil, isSealing, nil) == 1 else {
            unsafe EVP_CIPHER_CTX_free(context)
            throw .openSSLFailed("AES-256-GCM key")
        }
        unsafe self.context = context
        nonceStart = unsafe UInt32(bigEndian: baseNonce.loadUnaligned(as: UInt32.self))
        nonceEnd = unsafe UInt64(bigEndian: baseNonce.loadUnaligned(fromByteOffset: 4, as: UInt64.self))
    }

    // OpenSSL overwrites the key in a context that it frees.
    deinit { unsafe EVP_CIPHER_CTX_free(context) }

    /// Writes the ciphertext and its tag to `output`, which holds exactly that. It may start where `plaintext` does.
    mutating func seal(
        _ plaintext: UnsafeRawBufferPointer, index: Int, into output: UnsafeMutableRawBufferPointer
    ) throws(CofferError) {
        precondition(output.count == plaintext.count + Self.tagByteCount, "a sealed chunk is 16 bytes longer")
        try setNonce(ofChunk: index)
        let tag = unsafe UnsafeMutableRawBufferPointer(rebasing: output[plaintext.count...])
        guard unsafe update(plaintext, into: output), finish(),
            unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tag.count), tag.baseAddress) == 1
        else { throw .openSSLFailed("AES-256-GCM") }
    }

    /// Writes the plaintext to `output`, which holds exactly that, and returns whether the tag is right; if it isn't,
    /// `output` is all zero. It may start where `sealed` does.
    mutating func open(
        _ sealed: UnsafeRawBufferPointer, index: Int, into output: UnsafeMutableRawBufferPointer
    ) throws(CofferError) -> Bool {
        precondition(sealed.count == output.count + Self.tagByteCount, "a sealed chunk is 16 bytes longer")
        var isAuthentic = false
        // OpenSSL decrypts before it has seen the whole chunk. What it wrote must not be read unless the tag is right.
        defer { if !isAuthentic { unsafe wipe(output) } }
        try setNonce(ofChunk: index)
        let ciphertext = unsafe UnsafeRawBufferPointer(rebasing: sealed.prefix(output.count))
        let tag = unsafe UnsafeMutableRawPointer(mutating: sealed.baseAddress).map { unsafe $0 + output.count }
        guard
            unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagByteCount), tag) == 1,
            unsafe update(ciphertext, into: output)
        else { throw .openSSLFailed("AES-256-GCM") }
        isAuthentic = finish()
        if !isAuthentic { drainOpenSSLErrors() }
        return isAuthentic
    }

    private mutating func setNonce(ofChunk index: Int) throws(CofferError) {
        precondition(index >= 0, "chunks are numbered from 0")
        var nonce = (UInt32(0), UInt32(0), UInt32(0))
        let end = nonceEnd ^ UInt64(index)
        nonce = (nonceStart.bigEndian, UInt32(end >> 32).bigEndian, UInt32(truncatingIfNeeded: end).bigEndian)
        let result = unsafe withUnsafeBytes(of: &nonce) { nonce in
            unsafe EVP_CipherInit_ex2(context, nil, nil, nonce.bindMemory(to: UInt8.self).baseAddress, -1, nil)
        }
        guard result == 1 else { throw .openSSLFailed("AES-256-GCM nonce") }
    }

    private mutating func update(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> Bool {
        guard input.count > 0, let inputStart = unsafe input.bindMemory(to: UInt8.self).baseAddress else { return true }
        var written: Int32 = 0
        let outputStart = unsafe output.bindMemory(to: UInt8.self).baseAddress
        return unsafe EVP_CipherUpdate(context, outputStart, &written, inputStart, Int32(input.count)) == 1
            && Int(written) == input.count
    }

    /// Makes the tag, or checks it. GCM writes nothing then.
    private mutating func finish() -> Bool {
        var written: Int32 = 0
        var none: UInt8 = 0
        return unsafe EVP_CipherFinal_ex(context, &none, &written) == 1 && written == 0
    }
}

/// A cipher's implementation, looked up once per process: looking it up costs as much as a chunk.
@safe private final class CipherImplementation: @unchecked Sendable {
    // Sendable: OpenSSL's EVP_CIPHER is immutable once fetched, and reference counted (test: "Threads that take turns with a digest, a cipher and a secret get what one thread would").
    let pointer: OpaquePointer

    private init?(_ name: String) {
        guard let pointer = unsafe EVP_CIPHER_fetch(nil, name, nil) else { return nil }
        unsafe self.pointer = pointer
    }

    deinit { unsafe EVP_CIPHER_free(pointer) }

    static let aes256GCM = CipherImplementation("AES-256-GCM")
}
