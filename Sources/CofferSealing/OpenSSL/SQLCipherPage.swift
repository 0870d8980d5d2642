internal import COpenSSL

/// Checks the pages of a database file as SQLCipher writes them in the portable profile, which SQLCipher 3.4.1 has no call
/// for: each ends with an initialization vector and an HMAC-SHA-1 over ciphertext, vector and page number (docs/FORMAT.md,
/// "Pages, without SQLCipher").
@safe package struct PageAuthenticator: ~Copyable {
    // What it leads to never changes.
    private let context: OpaquePointer

    /// The bytes of a page, with its reserve.
    package static let pageByteCount = 4096
    /// The bytes that the file begins with, in the place of SQLite's own first 16.
    package static let saltByteCount = 16

    private static let codePosition = 4096 - 48 + 16
    private static let codeByteCount = 20
    private static let iterationCount: Int32 = 2
    private static let saltMask: UInt8 = 0x3a

    /// For the pages of a file that begins with `salt` and is encrypted under `key`.
    ///
    /// Throws `invalidArgument` (400) for a salt of another length, `encryptionUnavailable` (501).
    package init(key: SymmetricKey, salt: [UInt8]) throws(CofferError) {
        guard salt.count == Self.saltByteCount, !key.isPassword else {
            throw CofferError(.invalidArgument, "a database file begins with \(Self.saltByteCount) bytes of salt")
        }
        let mask = salt.map { $0 ^ Self.saltMask }
        let macKey = try unsafe SecretBytes(byteCount: 32, lifetime: .momentary) { (output) throws(CofferError) in
            let result = unsafe key.withBytes { key in
                unsafe PKCS5_PBKDF2_HMAC(
                    key.baseAddress, Int32(key.count), mask, Int32(mask.count), Self.iterationCount, EVP_sha1(),
                    Int32(output.count), output.baseAddress)
            }
            guard result == 1 else { throw .openSSLFailed("PBKDF2") }
        }
        unsafe context = try Self.makeContext(macKey)
    }

    private static func makeContext(_ key: borrowing SecretBytes) throws(CofferError) -> OpaquePointer {
        guard let algorithm = unsafe EVP_MAC_fetch(nil, "HMAC", nil) else { throw .openSSLFailed("HMAC") }
        defer { unsafe EVP_MAC_free(algorithm) }
        guard let context = unsafe EVP_MAC_CTX_new(algorithm) else { throw .openSSLFailed("HMAC") }
        // A parameter keeps the addresses of both texts, and must not outlive them.
        var (label, name) = (Array(OSSL_MAC_PARAM_DIGEST.utf8CString), Array("SHA1".utf8CString))
        let isReady = unsafe label.withUnsafeMutableBufferPointer { label in
            unsafe name.withUnsafeMutableBufferPointer { name in
                let parameters = unsafe [
                    OSSL_PARAM_construct_utf8_string(label.baseAddress, name.baseAddress, 0),
                    OSSL_PARAM_construct_end(),
                ]
                return unsafe key.withBytes { key in
                    unsafe EVP_MAC_init(context, key.bindMemory(to: UInt8.self).baseAddress, key.count, parameters)
                }
            }
        }
        guard isReady == 1 else {
            unsafe EVP_MAC_CTX_free(context)
            throw .openSSLFailed("HMAC-SHA-1")
        }
        return unsafe context
    }

    deinit { unsafe EVP_MAC_CTX_free(context) }

    /// Whether `page` is one that was written as page `number` of the file, counted from 1.
    package func isAuthentic(_ page: borrowing RawSpan, number: UInt32) throws(CofferError) -> Bool {
        try unsafe page.withUnsafeBytes { (page) throws(CofferError) in try unsafe isAuthentic(page, number: number) }
    }

    /// Whether `page` is one that was written as page `number` of the file, counted from 1.
    package func isAuthentic(_ page: UnsafeRawBufferPointer, number: UInt32) throws(CofferError) -> Bool {
        guard page.count == Self.pageByteCount else { return false }
        let start = number == 1 ? Self.saltByteCount : 0
        let message = unsafe UnsafeRawBufferPointer(rebasing: page[start..<Self.codePosition])
        var code = [UInt8](repeating: 0, count: Self.codeByteCount)
        var written = 0
        // A copy of the keyed context for each: OpenSSL before 3.0.3 doesn't start an HMAC again under the same key.
        guard let context = unsafe EVP_MAC_CTX_dup(context) else { throw .openSSLFailed("HMAC-SHA-1") }
        defer { unsafe EVP_MAC_CTX_free(context) }
        let result = unsafe withUnsafeBytes(of: number.littleEndian) { number in
            unsafe EVP_MAC_update(context, message.bindMemory(to: UInt8.self).baseAddress, message.count) == 1
                && EVP_MAC_update(context, number.bindMemory(to: UInt8.self).baseAddress, number.count) == 1
                && EVP_MAC_final(context, &code, &written, code.count) == 1
        }
        guard result, written == code.count else { throw .openSSLFailed("HMAC-SHA-1") }
        return unsafe page[Self.codePosition..<Self.codePosition + Self.codeByteCount].elementsEqual(code)
    }
}

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
