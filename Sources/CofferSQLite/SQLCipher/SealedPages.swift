internal import CSQLCipher
package import CofferSealing

/// The sealed pages of one database file: their key, and the cache of opened ones that all its connections share.
///
/// For the path that it was made with, and for as long as it lives; connections keep it alive. Several for the same file, key
/// and binding are one underneath, as its connections have to share what they know of the log.
@safe package final class SealedPages: @unchecked Sendable {
    // Sendable: the C functions lock what they change (test: "Threads that read and write one sealed file see whole commits").
    private let pages: OpaquePointer

    /// The path of the database file.
    package let path: String
    /// What errors say that they happened to.
    package let subject: String

    /// Limits the cache to `cacheByteCount` bytes. Memory is taken as pages are read, not at once; 0 keeps none.
    ///
    /// - Throws: `encryptionUnavailable` (501) when there is no library to load, `invalidArgument` (400) for a password,
    ///   `busy` (503) when connections have the same file open under another key, `ioFailed` (500).
    package convenience init(
        path: String, subject: String, key: SymmetricKey, binding: SealedPageBinding, cacheByteCount: Int
    ) throws(CofferError) {
        try self.init(
            path: path, subject: subject, key: key, binding: binding, cacheByteCount: cacheByteCount, beneath: nil)
    }

    /// - Parameter beneath: the VFS that has the bytes; nil for the system's files.
    init(
        path: String, subject: String, key: SymmetricKey, binding: SealedPageBinding, cacheByteCount: Int,
        beneath: String?
    ) throws(CofferError) {
        try Library.loadCode()
        guard !key.isPassword else {
            throw CofferError(.invalidArgument, of: subject, "pages are sealed under 32 bytes")
        }
        var pages: OpaquePointer?
        let code = unsafe key.withBytes { key in
            unsafe sealed_pages_open(
                path, key.bindMemory(to: UInt8.self).baseAddress, binding.bytes, max(0, cacheByteCount), beneath, &pages
            )
        }
        guard code == Int32(SQLCIPHER_OK), let pages = unsafe pages else {
            throw DatabaseHandle(subject: subject).error(code)
        }
        unsafe self.pages = pages
        self.path = path
        self.subject = subject
    }

    deinit { unsafe sealed_pages_release(pages) }

    /// Limits the cache to `byteCount` bytes; what is more than that is wiped and given back at once.
    package func setCache(byteCount: Int) { unsafe sealed_pages_set_cache(pages, max(0, byteCount)) }

    /// The bytes that the cache takes now.
    package var cachedByteCount: Int { unsafe Int(sealed_pages_cached(pages)) }

    /// Makes an empty database of the existing file, which must have no bytes. Doesn't sync it.
    ///
    /// A new sealed file begins with this, since SQLite 3.15 can't be told the reserve of an attached one.
    package func writeEmptyDatabase() throws(CofferError) {
        let code = unsafe sealed_pages_write_empty(pages)
        guard code == Int32(SQLCIPHER_OK) else { throw DatabaseHandle(subject: subject).error(code) }
    }

    /// Whether the connection's file has these pages, and not those of another that was made for its path since.
    func areOf(_ handle: DatabaseHandle) -> Bool { unsafe sealed_pages_are_of(pages, handle.pointer) != 0 }
}
