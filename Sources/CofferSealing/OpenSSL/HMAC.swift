internal import COpenSSL

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
