internal import CofferRecords
public import CofferSealing

/// The libraries that this process keeps stores with: what a support request wants to know.
public struct LoadedLibraries: Sendable {
    /// SQLite's version, such as `3.40.1`: that of the SQLite within SQLCipher.
    public let sqliteVersion: String

    /// SQLCipher's version, such as `4.5.3`; nil if the library is not SQLCipher, and encrypted stores are a 501.
    public let cipherVersion: String?

    /// Whether temporary data stays in memory. Where it goes to files, encrypted stores are a 501.
    public let keepsTemporaryDataInMemory: Bool

    /// The version that OpenSSL reports, such as `OpenSSL 3.0.15 3 Sep 2024`.
    public let openSSLVersion: String

    /// The libraries of this process. Loads SQLCipher if nothing has been opened yet.
    ///
    /// - Throws: `encryptionUnavailable` (501) where there is no SQLCipher to load.
    public init() throws(CofferError) {
        let library = try DatabaseLibrary()
        sqliteVersion = library.version
        cipherVersion = library.cipherVersion
        keepsTemporaryDataInMemory = library.keepsTemporaryDataInMemory
        openSSLVersion = OpenSSLLibrary.version
    }
}
