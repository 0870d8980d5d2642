internal import COpenSSL

/// Decrypts the pages of a database file as SQLCipher writes them in the portable profile: AES-256-CBC without padding, with
/// the initialization vector that stands behind the ciphertext (docs/FORMAT.md, "Pages, without SQLCipher").
///
/// Only for a page that ``PageAuthenticator`` has found right, or for who checks what comes out by other means: any bytes
/// decrypt to something.
@safe package struct PageDecryptor: ~Copyable {
    // Every use of it is mutating.
    private let context: OpaquePointer

    /// The bytes of a page that SQLite uses; behind them are vector and code.
    package static let usableByteCount = PageAuthenticator.pageByteCount - 48

    private static let sqliteHeader = Array("SQLite format 3\0".utf8)

    /// For the pages of a file that is encrypted under `key`.
    ///
    /// Throws `invalidArgument` (400) for a password, `encryptionUnavailable` (501).
    package init(key: SymmetricKey) throws(CofferError) {
        guard !key.isPassword else {
            throw CofferError(.invalidArgument, "pages are encrypted under 32 bytes")
        }
        guard let context = unsafe EVP_CIPHER_CTX_new() else { throw .openSSLFailed("AES-256-CBC") }
        let result = unsafe key.withBytes { key in
            unsafe EVP_CipherInit_ex2(
                context, EVP_aes_256_cbc(), key.bindMemory(to: UInt8.self).baseAddress, nil, 0, nil)
        }
        guard result == 1 else {
            unsafe EVP_CIPHER_CTX_free(context)
            throw .openSSLFailed("AES-256-CBC key")
        }
        unsafe self.context = context
    }

    // OpenSSL overwrites the key in a context that it frees.
    deinit { unsafe EVP_CIPHER_CTX_free(context) }

    /// What SQLite sees of `page`, which is 4096 bytes as they are stored and page `number` of the file, counted from 1: the
    /// first ``usableByteCount`` bytes.
    package mutating func decrypt(_ page: [UInt8], number: UInt32) throws(CofferError) -> [UInt8] {
        precondition(page.count == PageAuthenticator.pageByteCount, "a page has 4096 bytes")
        let start = number == 1 ? PageAuthenticator.saltByteCount : 0
        var output = [UInt8](repeating: 0, count: Self.usableByteCount)
        let count = Self.usableByteCount - start
        var written: Int32 = 0
        let isDone = unsafe page.withUnsafeBufferPointer { page in
            unsafe output.withUnsafeMutableBufferPointer { output in
                guard let input = page.baseAddress, let place = output.baseAddress else { return false }
                return unsafe EVP_CipherInit_ex2(context, nil, nil, input + Self.usableByteCount, 0, nil) == 1
                    && EVP_CIPHER_CTX_set_padding(context, 0) == 1
                    && EVP_CipherUpdate(context, place + start, &written, input + start, Int32(count)) == 1
            }
        }
        guard isDone, Int(written) == count else { throw .openSSLFailed("AES-256-CBC") }
        if number == 1 { output.replaceSubrange(0..<start, with: Self.sqliteHeader) }
        return output
    }
}
