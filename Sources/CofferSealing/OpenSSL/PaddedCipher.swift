internal import COpenSSL

/// AES-256-CBC with PKCS #7 padding (NIST SP 800-38A section 6.2, RFC 5652 section 6.3), as other libraries encrypt
/// files. The owner of its OpenSSL context. It does not authenticate: the caller must check the output by other means.
@safe package struct PaddedCipher: ~Copyable {
    // Every use of it is mutating.
    private let context: OpaquePointer

    package enum Direction: Sendable { case encrypting, decrypting }

    package static let vectorByteCount = 16

    /// - Throws: `invalidArgument` (400) for a password, or a vector of another length, `encryptionUnavailable` (501).
    package init(_ direction: Direction, key: SymmetricKey, vector: [UInt8]) throws(CofferError) {
        guard !key.isPassword, vector.count == Self.vectorByteCount else {
            throw CofferError(.invalidArgument, "AES-256-CBC takes 32 bytes and a vector of 16")
        }
        guard let context = unsafe EVP_CIPHER_CTX_new() else { throw .openSSLFailed("AES-256-CBC") }
        let result = unsafe key.withBytes { key in
            unsafe EVP_CipherInit_ex2(
                context, EVP_aes_256_cbc(), key.bindMemory(to: UInt8.self).baseAddress, vector,
                direction == .encrypting ? 1 : 0, nil)
        }
        guard result == 1 else {
            unsafe EVP_CIPHER_CTX_free(context)
            throw .openSSLFailed("AES-256-CBC key")
        }
        unsafe self.context = context
    }

    // OpenSSL overwrites the key in a context that it frees.
    deinit { unsafe EVP_CIPHER_CTX_free(context) }

    /// Takes the next bytes, and returns those that are ready.
    package mutating func update(_ input: [UInt8]) throws(CofferError) -> [UInt8] {
        guard !input.isEmpty else { return [] }
        var output = [UInt8](repeating: 0, count: input.count + 2 * Self.vectorByteCount)
        var written: Int32 = 0
        guard unsafe EVP_CipherUpdate(context, &output, &written, input, Int32(input.count)) == 1 else {
            throw .openSSLFailed("AES-256-CBC")
        }
        output.removeLast(output.count - Int(written))
        return output
    }

    /// The last bytes; nil if the padding is wrong: the key is another one, or the bytes were changed.
    package mutating func finish() -> [UInt8]? {
        var output = [UInt8](repeating: 0, count: 2 * Self.vectorByteCount)
        var written: Int32 = 0
        guard unsafe EVP_CipherFinal_ex(context, &output, &written) == 1 else {
            drainOpenSSLErrors()
            return nil
        }
        output.removeLast(output.count - Int(written))
        return output
    }
}
