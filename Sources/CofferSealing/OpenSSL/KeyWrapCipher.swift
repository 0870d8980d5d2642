internal import COpenSSL

/// AES-256 key wrap with the default initial value, RFC 3394. One operation, and the owner of its OpenSSL context.
@safe struct KeyWrapCipher: ~Copyable {
    private let context: OpaquePointer

    /// What a wrapped key is longer by than the key: the check value.
    static let overheadByteCount = 8

    /// RFC 3394 section 2.2.1. The key is a multiple of 8 bytes, at least 16.
    static func wrap(
        _ key: UnsafeRawBufferPointer, under wrappingKey: UnsafeRawBufferPointer
    ) throws(CofferError) -> [UInt8] {
        let cipher = try KeyWrapCipher()
        try unsafe cipher.start(under: wrappingKey, isWrapping: true)
        var wrapped = [UInt8](repeating: 0, count: key.count + overheadByteCount)
        var written: Int32 = 0
        guard
            unsafe EVP_CipherUpdate(cipher.context, &wrapped, &written, key.baseAddress, Int32(key.count)) == 1,
            Int(written) == wrapped.count
        else { throw .openSSLFailed("AES key wrap") }
        return wrapped
    }

    /// RFC 3394 section 2.2.2; nil when the check value is wrong, that is, when it was wrapped under another key or the
    /// bytes were changed. The wrapped key is a multiple of 8 bytes, at least 24.
    static func unwrap(
        _ wrapped: [UInt8], under wrappingKey: UnsafeRawBufferPointer
    ) throws(CofferError) -> SecretBytes? {
        let cipher = try KeyWrapCipher()
        try unsafe cipher.start(under: wrappingKey, isWrapping: false)
        var key = SecretBytes(byteCount: wrapped.count - overheadByteCount)
        let isIntact = unsafe key.withMutableBytes { output in
            var written: Int32 = 0
            return unsafe EVP_CipherUpdate(cipher.context, output.baseAddress, &written, wrapped, Int32(wrapped.count))
                == 1 && Int(written) == output.count
        }
        guard isIntact else {
            drainOpenSSLErrors()
            return nil
        }
        return key
    }

    private init() throws(CofferError) {
        guard let context = unsafe EVP_CIPHER_CTX_new() else { throw .openSSLFailed("AES key wrap") }
        unsafe self.context = context
    }

    deinit { unsafe EVP_CIPHER_CTX_free(context) }

    private borrowing func start(
        under wrappingKey: UnsafeRawBufferPointer, isWrapping: Bool
    ) throws(CofferError) {
        precondition(wrappingKey.count == 32, "AES-256 takes 32 bytes")
        guard let algorithm = unsafe EVP_CIPHER_fetch(nil, "AES-256-WRAP", nil) else {
            throw .openSSLFailed("AES key wrap")
        }
        defer { unsafe EVP_CIPHER_free(algorithm) }  // the context keeps a reference of its own
        // Before OpenSSL 3, and from engines still, wrap ciphers are refused without this: they write 8 bytes more.
        unsafe EVP_CIPHER_CTX_set_flags(context, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW)
        let key = unsafe wrappingKey.bindMemory(to: UInt8.self).baseAddress
        guard unsafe EVP_CipherInit_ex2(context, algorithm, key, nil, isWrapping ? 1 : 0, nil) == 1 else {
            throw .openSSLFailed("AES key wrap")
        }
    }
}
