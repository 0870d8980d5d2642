internal import COpenSSL

/// HKDF with SHA-256 or SHA-512, RFC 5869. One derivation, and the owner of its OpenSSL context.
@safe struct HKDF: ~Copyable {
    private let context: OpaquePointer

    /// Both steps, section 2: for input that isn't uniformly random or has a salt.
    static func extractAndExpandSHA256(
        _ inputKey: UnsafeRawBufferPointer, salt: [UInt8], info: [UInt8], byteCount: Int
    ) throws(CofferError) -> SecretBytes {
        let derivation = try HKDF()
        try unsafe derivation.start(EVP_KDF_HKDF_MODE_EXTRACT_AND_EXPAND, EVP_sha256())
        try derivation.setSalt(salt)
        return try unsafe derivation.derive(from: inputKey, info: info, byteCount: byteCount)
    }

    /// The second step alone, section 2.3: for input that is a random key of 32 bytes already.
    static func expandSHA256(
        _ randomKey: UnsafeRawBufferPointer, info: [UInt8], byteCount: Int
    ) throws(CofferError) -> SecretBytes {
        let derivation = try HKDF()
        try unsafe derivation.start(EVP_KDF_HKDF_MODE_EXPAND_ONLY, EVP_sha256())
        return try unsafe derivation.derive(from: randomKey, info: info, byteCount: byteCount)
    }

    /// The second step alone, with SHA-512.
    static func expandSHA512(
        _ randomKey: UnsafeRawBufferPointer, info: [UInt8], byteCount: Int, lifetime: SecretBytes.Lifetime = .long
    ) throws(CofferError) -> SecretBytes {
        let derivation = try HKDF()
        try unsafe derivation.start(EVP_KDF_HKDF_MODE_EXPAND_ONLY, EVP_sha512())
        return try unsafe derivation.derive(from: randomKey, info: info, byteCount: byteCount, lifetime: lifetime)
    }

    private init() throws(CofferError) {
        guard let context = unsafe EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nil) else { throw .openSSLFailed("HKDF") }
        unsafe self.context = context
    }

    deinit { unsafe EVP_PKEY_CTX_free(context) }

    private borrowing func start(_ mode: Int32, _ digest: OpaquePointer?) throws(CofferError) {
        guard unsafe EVP_PKEY_derive_init(context) == 1 else { throw .openSSLFailed("HKDF") }
        guard unsafe EVP_PKEY_CTX_set_hkdf_mode(context, mode) == 1 else { throw .openSSLFailed("HKDF mode") }
        guard unsafe EVP_PKEY_CTX_set_hkdf_md(context, digest) == 1 else { throw .openSSLFailed("HKDF digest") }
    }

    private borrowing func setSalt(_ salt: [UInt8]) throws(CofferError) {
        guard let count = Int32(exactly: salt.count) else { throw CofferError(.invalidArgument, "HKDF salt too long") }
        guard unsafe EVP_PKEY_CTX_set1_hkdf_salt(context, salt, count) == 1 else { throw .openSSLFailed("HKDF salt") }
    }

    private borrowing func derive(
        from key: UnsafeRawBufferPointer, info: [UInt8], byteCount: Int, lifetime: SecretBytes.Lifetime = .long
    ) throws(CofferError) -> SecretBytes {
        guard let keyCount = Int32(exactly: key.count), let infoCount = Int32(exactly: info.count) else {
            throw CofferError(.invalidArgument, "HKDF with inputs beyond 2 GiB")
        }
        guard unsafe EVP_PKEY_CTX_set1_hkdf_key(context, key.baseAddress, keyCount) == 1 else {
            throw .openSSLFailed("HKDF key")
        }
        guard unsafe EVP_PKEY_CTX_add1_hkdf_info(context, info, infoCount) == 1 else {
            throw .openSSLFailed("HKDF info")
        }
        let context = unsafe self.context
        return try unsafe SecretBytes(byteCount: byteCount, lifetime: lifetime) { (output) throws(CofferError) in
            var written = output.count
            guard unsafe EVP_PKEY_derive(context, output.baseAddress, &written) == 1, written == output.count else {
                throw .openSSLFailed("HKDF")
            }
        }
    }
}

/// The slow functions that turn a password into key bytes. They check no bounds: ``KeyDerivation`` has done that.
enum PasswordHashing {
    /// scrypt, RFC 7914. `n` is a power of two.
    static func scrypt(
        _ password: UnsafeRawBufferPointer, salt: [UInt8], n: UInt64, r: UInt64, p: UInt64, byteCount: Int
    ) throws(CofferError) -> SecretBytes {
        // OpenSSL needs 128·r·(N + 2) bytes for V, X and T and 128·r·p for B, and refuses above a limit that is
        // 32 MiB unless given: too little for N = 2^15. Two MiB more leave room for another way of counting.
        let memoryByteLimit = 128 * r * (n + p + 2) + 2 << 20
        return try unsafe SecretBytes(byteCount: byteCount) { (output) throws(CofferError) in
            let result = unsafe EVP_PBE_scrypt(
                password.baseAddress, password.count, salt, salt.count, n, r, p, memoryByteLimit,
                output.baseAddress, output.count)
            guard result == 1 else { throw .openSSLFailed("scrypt") }
        }
    }

    /// PBKDF2 with HMAC-SHA-512, RFC 8018 section 5.2.
    static func pbkdf2SHA512(
        _ password: UnsafeRawBufferPointer, salt: [UInt8], iterations: UInt32, byteCount: Int
    ) throws(CofferError) -> SecretBytes {
        try unsafe pbkdf2(password, EVP_sha512(), salt: salt, iterations: iterations, byteCount: byteCount)
    }

    /// PBKDF2 with HMAC-SHA-1 or HMAC-SHA-256, for keys that other libraries derived.
    static func pbkdf2(
        _ password: UnsafeRawBufferPointer, _ derivation: ForeignKeyDerivation, byteCount: Int
    ) throws(CofferError) -> SecretBytes {
        let digest = unsafe derivation.digest == .sha1 ? EVP_sha1() : EVP_sha256()
        return try unsafe pbkdf2(
            password, digest, salt: derivation.salt, iterations: derivation.iterations, byteCount: byteCount)
    }

    private static func pbkdf2(
        _ password: UnsafeRawBufferPointer, _ digest: OpaquePointer?, salt: [UInt8], iterations: UInt32, byteCount: Int
    ) throws(CofferError) -> SecretBytes {
        guard let passwordCount = Int32(exactly: password.count), let saltCount = Int32(exactly: salt.count),
            let iterations = Int32(exactly: iterations)
        else { throw CofferError(.invalidArgument, "PBKDF2 with inputs beyond 2 GiB") }
        return try unsafe SecretBytes(byteCount: byteCount) { (output) throws(CofferError) in
            let result = unsafe PKCS5_PBKDF2_HMAC(
                password.baseAddress, passwordCount, salt, saltCount, iterations, digest,
                Int32(output.count), output.baseAddress)
            guard result == 1 else { throw .openSSLFailed("PBKDF2") }
        }
    }
}

/// HMAC-SHA-256 of `message`, RFC 2104: 32 bytes.
func hmacSHA256(_ message: [UInt8], key: UnsafeRawBufferPointer) throws(CofferError) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 32)
    var written = 0
    guard
        unsafe EVP_Q_mac(
            nil, "HMAC", nil, "SHA256", nil, key.baseAddress, key.count, message, message.count, &code, code.count,
            &written) != nil, written == code.count
    else { throw .openSSLFailed("HMAC-SHA-256") }
    return code
}
