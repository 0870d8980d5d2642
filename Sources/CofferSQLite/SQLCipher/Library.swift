internal import CSQLCipher
package import CofferSealing

/// The SQLCipher library of this process: loaded once, and examined before anything relies on it.
package struct Library: Sendable {
    /// SQLite's version, such as `3.15.2`.
    package let version: String

    /// What `PRAGMA cipher_version` answered, such as `3.4.1`, or nil when what was loaded is not SQLCipher.
    package let cipherVersion: String?

    /// Whether temporary tables and indexes can be kept in memory. Where they go to files they would be plaintext.
    package let keepsTemporaryDataInMemory: Bool

    private static let shared: Result<Library, CofferError> = Result { () throws(CofferError) in try Library() }

    /// The library, loaded by the first call. Safe from any thread.
    ///
    /// - Throws: `encryptionUnavailable` (501) when there is no library to load.
    package static func load() throws(CofferError) -> Library {
        try shared.get()
    }

    /// - Throws: `encryptionUnavailable` (501) unless the library is SQLCipher and keeps temporary data in memory.
    ///
    /// A plain SQLite takes a key, ignores it, and writes plaintext. Only a row from `PRAGMA cipher_version` is proof.
    package func requireEncryption() throws(CofferError) {
        guard cipherVersion != nil else {
            throw CofferError(.encryptionUnavailable, "the library that was loaded is SQLite \(version), not SQLCipher")
        }
        guard keepsTemporaryDataInMemory else {
            throw CofferError(.encryptionUnavailable, "this SQLCipher is built to keep temporary data in files")
        }
    }

    /// Loads the library without looking at it. No call into it may come before.
    static func loadCode() throws(CofferError) {
        if let failure = unsafe sqlcipher_load() {
            throw CofferError(.encryptionUnavailable, unsafe String(cString: failure))
        }
    }

    private init() throws(CofferError) {
        try Self.loadCode()
        guard sqlcipher_threadsafe() != 0 else {
            throw CofferError(.encryptionUnavailable, "this SQLCipher is built for one thread only")
        }
        version = unsafe String(cString: sqlcipher_libversion())
        keepsTemporaryDataInMemory =
            unsafe sqlcipher_compileoption_used("TEMP_STORE=0") == 0
            && sqlcipher_compileoption_used("TEMP_STORE=1") == 0

        let connection = try Connection(inMemoryOf: "cipher check")
        let question = Statement(connection, "PRAGMA cipher_version")
        cipherVersion = try question.step() ? question.text(0) : nil
        question.reset()
        try connection.close()
    }
}
