internal import COpenSSL

/// The OpenSSL that this process has loaded.
package enum OpenSSLLibrary {
    /// What it says of its version (OpenSSL_version(3)).
    package static var version: String { unsafe String(cString: OpenSSL_version(OPENSSL_VERSION)) }
}

extension CofferError {
    /// OpenSSL could not do `task`: the algorithm or the memory is missing on this system. Never a wrong key.
    ///
    /// Empties this thread's error queue; the reasons, which are fixed texts without data, become the detail.
    static func openSSLFailed(_ task: String) -> CofferError {
        let reasons = drainOpenSSLErrors()
        return CofferError(
            .encryptionUnavailable, (["OpenSSL can't do \(task)"] + reasons).joined(separator: ": "))
    }
}

/// Empties this thread's OpenSSL error queue and returns the reasons, oldest first.
@discardableResult
func drainOpenSSLErrors() -> [String] {
    var reasons: [String] = []
    while case let code = ERR_get_error(), code != 0 {
        reasons.append(unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) } ?? "error \(code)")
    }
    return reasons
}

/// Overwrites `bytes` in a way that the compiler doesn't remove as useless.
func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
    unsafe OPENSSL_cleanse(bytes.baseAddress, bytes.count)
}

/// Whether two byte strings are the same, in a time that depends on their lengths alone.
package func equalInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    unsafe left.withUnsafeBytes { left in
        unsafe right.withUnsafeBytes { right in unsafe equalInConstantTime(left, right) }
    }
}

func equalInConstantTime(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    guard left.count == right.count else { return false }
    guard let first = left.baseAddress, let second = right.baseAddress else { return true }
    return unsafe CRYPTO_memcmp(first, second, left.count) == 0
}

/// `count` random bytes that need not be secret: salts, ids, tags.
package func randomBytes(count: Int) throws(CofferError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    guard unsafe RAND_bytes_ex(nil, &bytes, count, 0) == 1 else { throw .openSSLFailed("random bytes") }
    return bytes
}

/// Random bytes for a key, from the generator that OpenSSL keeps apart for secrets.
func randomSecret(byteCount: Int) throws(CofferError) -> SecretBytes {
    try unsafe SecretBytes(byteCount: byteCount) { (buffer) throws(CofferError) in
        guard unsafe RAND_priv_bytes_ex(nil, buffer.baseAddress, buffer.count, 0) == 1 else {
            throw .openSSLFailed("random key")
        }
    }
}
