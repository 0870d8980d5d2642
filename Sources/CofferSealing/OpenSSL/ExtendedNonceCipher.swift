internal import COpenSSL

/// XAES-256-GCM, c2sp.org/XAES-256-GCM: AES-256-GCM with nonces of 24 bytes, whose first half gives each its own key. The owner
/// of its OpenSSL contexts, which keep those keys. For one thread at a time.
@safe struct ExtendedNonceCipher: ~Copyable {
    private let key: SymmetricKey
    /// K1 of the specification.
    private let subkey: [UInt8]
    /// Contexts for the halves of nonces that came last. Every use of them is mutating.
    private var contexts: [Context]

    @safe private struct Context {
        let prefix: [UInt8]
        let pointer: OpaquePointer
    }

    static let nonceByteCount = 24
    static let tagByteCount = 16
    static let prefixByteCount = 12
    private static let contextLimit = 4

    /// Throws `invalidArgument` (400) for a password, `encryptionUnavailable` (501).
    init(key: SymmetricKey) throws(CofferError) {
        let subkey = try Self.subkey(of: key)
        self.key = key
        self.subkey = subkey
        contexts = []
    }

    private static func subkey(of key: SymmetricKey) throws(CofferError) -> [UInt8] {
        guard !key.isPassword else {
            throw CofferError(.invalidArgument, "XAES-256-GCM takes 32 bytes")
        }
        let encryptedZeros = try encryptedBlock([UInt8](repeating: 0, count: 16), key: key)
        // Doubled in GF(2^128).
        return encryptedZeros.indices.map { index in
            let following = index + 1 < encryptedZeros.count ? encryptedZeros[index + 1] >> 7 : 0
            let reduced: UInt8 = index == 15 && encryptedZeros[0] >> 7 == 1 ? 0x87 : 0
            return encryptedZeros[index] << 1 | following ^ reduced
        }
    }

    // OpenSSL overwrites the key in a context that it frees.
    deinit { for context in contexts { unsafe EVP_CIPHER_CTX_free(context.pointer) } }

    /// The ciphertext, with its tag.
    mutating func seal(
        _ plaintext: [UInt8], nonce: [UInt8], additionalData: [UInt8]
    ) throws(CofferError) -> [UInt8] {
        let context = unsafe try context(nonce)
        var output = try unsafe run(
            context, isSealing: true, plaintext[...], nonce: nonce, additionalData: additionalData)
        var tag = [UInt8](repeating: 0, count: Self.tagByteCount)
        guard unsafe finish(context),
            unsafe EVP_CIPHER_CTX_ctrl(
                context, EVP_CTRL_AEAD_GET_TAG, Int32(tag.count), &tag) == 1
        else { throw .openSSLFailed("XAES-256-GCM") }
        output += tag
        return output
    }

    /// What was sealed, from ciphertext and tag; nil if the tag is wrong.
    mutating func open(
        _ sealed: ArraySlice<UInt8>, nonce: [UInt8], additionalData: [UInt8]
    ) throws(CofferError) -> [UInt8]? {
        precondition(sealed.count >= Self.tagByteCount, "a tag has 16 bytes")
        let context = unsafe try context(nonce)
        var output = try unsafe run(
            context, isSealing: false, sealed.dropLast(Self.tagByteCount), nonce: nonce,
            additionalData: additionalData)
        var tag = [UInt8](sealed.suffix(Self.tagByteCount))
        guard unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tag.count), &tag) == 1 else {
            throw .openSSLFailed("XAES-256-GCM")
        }
        guard unsafe finish(context) else {
            // What was decrypted before the tag was seen must not be read.
            unsafe output.withUnsafeMutableBytes { unsafe wipe($0) }
            drainOpenSSLErrors()
            return nil
        }
        return output
    }

    /// Everything but the tag.
    private func run(
        _ context: OpaquePointer, isSealing: Bool, _ input: ArraySlice<UInt8>, nonce: [UInt8],
        additionalData: [UInt8]
    ) throws(CofferError) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: input.count)
        var written: Int32 = 0
        let end = Array(nonce[Self.prefixByteCount...])
        guard
            unsafe EVP_CipherInit_ex2(context, nil, nil, end, isSealing ? 1 : 0, nil) == 1,
            unsafe EVP_CipherUpdate(context, nil, &written, additionalData, Int32(additionalData.count)) == 1,
            unsafe input.withUnsafeBufferPointer({
                unsafe EVP_CipherUpdate(context, &output, &written, $0.baseAddress, Int32($0.count)) == 1
            }), Int(written) == input.count
        else { throw .openSSLFailed("XAES-256-GCM") }
        return output
    }

    private func finish(_ context: OpaquePointer) -> Bool {
        var written: Int32 = 0
        var none: UInt8 = 0
        return unsafe EVP_CipherFinal_ex(context, &none, &written) == 1 && written == 0
    }

    /// The context with the key that belongs to the first half of `nonce`.
    private mutating func context(_ nonce: [UInt8]) throws(CofferError) -> OpaquePointer {
        precondition(nonce.count == Self.nonceByteCount, "a nonce has 24 bytes")
        let prefix = Array(nonce[..<Self.prefixByteCount])
        if let index = contexts.firstIndex(where: { $0.prefix == prefix }) {
            let found = contexts.remove(at: index)
            contexts.append(found)
            return unsafe found.pointer
        }
        let derived = try derivedKey(prefix)
        guard let pointer = unsafe EVP_CIPHER_CTX_new() else { throw .openSSLFailed("XAES-256-GCM") }
        let result = unsafe derived.withBytes { derived in
            unsafe EVP_CipherInit_ex2(
                pointer, EVP_aes_256_gcm(), derived.bindMemory(to: UInt8.self).baseAddress, nil, 0, nil)
        }
        guard result == 1 else {
            unsafe EVP_CIPHER_CTX_free(pointer)
            throw .openSSLFailed("XAES-256-GCM key")
        }
        if contexts.count == Self.contextLimit { unsafe EVP_CIPHER_CTX_free(contexts.removeFirst().pointer) }
        contexts.append(unsafe Context(prefix: prefix, pointer: pointer))
        return unsafe pointer
    }

    /// Kx of the specification.
    private func derivedKey(_ prefix: [UInt8]) throws(CofferError) -> SecretBytes {
        var derived = SecretBytes(byteCount: 32, lifetime: .momentary)
        for half in 0..<2 {
            let message = [0, UInt8(half + 1), UInt8(ascii: "X"), 0] + prefix
            var block = try Self.encryptedBlock(zip(message, subkey).map { $0 ^ $1 }, key: key)
            unsafe derived.withMutableBytes { derived in
                for index in block.indices { unsafe derived[16 * half + index] = block[index] }
            }
            unsafe block.withUnsafeMutableBytes { unsafe wipe($0) }
        }
        return derived
    }

    /// AES-256 of one block.
    private static func encryptedBlock(_ block: [UInt8], key: SymmetricKey) throws(CofferError) -> [UInt8] {
        guard let context = unsafe EVP_CIPHER_CTX_new() else { throw .openSSLFailed("AES-256") }
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: 16)
        var written: Int32 = 0
        let isDone = unsafe key.withBytes { key in
            unsafe EVP_EncryptInit_ex2(
                context, EVP_aes_256_ecb(), key.bindMemory(to: UInt8.self).baseAddress, nil, nil) == 1
                && EVP_CIPHER_CTX_set_padding(context, 0) == 1
                && EVP_EncryptUpdate(context, &output, &written, block, Int32(block.count)) == 1
        }
        guard isDone, Int(written) == output.count else { throw .openSSLFailed("AES-256") }
        return output
    }
}
