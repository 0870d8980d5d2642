internal import COpenSSL

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
