internal import COpenSSL

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
