internal import COpenSSL

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
