internal import CSQLCipher
package import CofferSealing

/// The sealed pages of one database file: their key, and the cache of opened ones that all its connections share.
///
/// For the path that it was made with, and for as long as it lives; connections keep it alive.
package final class SealedPages: Sendable {
    /// The path of the database file.
    package let path: String
    /// What errors say that they happened to.
    package let subject: String

    /// - Throws: `encryptionUnavailable` (501) when there is no library to load, `ioFailed` (500).
    package init(
        path: String, subject: String, key: SymmetricKey, binding: SealedPageBinding, cacheByteCount: Int
    ) throws(CofferError) {
        self.path = path
        self.subject = subject
        _ = try Library.load()
    }

    /// Limits the cache to `byteCount` bytes; what is more than that is wiped and given back at once.
    package func setCache(byteCount: Int) {}

    /// The bytes that the cache takes now.
    package var cachedByteCount: Int { 0 }

    /// Makes an empty database of the existing file, which must have no bytes. Doesn't sync it.
    ///
    /// A new sealed file begins with this, since SQLite 3.15 can't be told the reserve of an attached one.
    package func writeEmptyDatabase() throws(CofferError) {
        throw CofferError(.encryptionUnavailable, of: subject, "sealed pages")
    }
}
