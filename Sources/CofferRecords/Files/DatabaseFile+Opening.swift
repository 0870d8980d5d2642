package import CofferSealing
internal import CofferSQLite

extension DatabaseFile {
    /// How a file is opened by who doesn't write.
    package enum Reading: Sendable {
        /// Through the write-ahead log, if there is one. SQLite may make or change the `-shm` file beside it.
        case throughLog
        /// A file that nothing changes and that has no write-ahead log. No file is made or changed.
        case immutable

        fileprivate var access: Connection.Access {
            switch self {
            case .throughLog: .readOnly
            case .immutable: .immutable
            }
        }
    }

    /// A connection that reads.
    ///
    /// - Throws: `encryptionUnavailable` (501), `ioFailed` and `damaged` (500).
    package func openSnapshot(
        _ reading: Reading = .throughLog, cacheByteCount: Int
    ) throws(CofferError) -> sending Snapshot {
        Snapshot(try connect(reading.access, cacheByteCount: cacheByteCount))
    }

    /// The connection that writes. Each of its commits is on the disk when it returns, unless
    /// ``Change/synchronizeCommits(_:)`` says otherwise.
    ///
    /// - Throws: as ``openSnapshot(_:cacheByteCount:)``.
    package func openChange(_ cache: CacheBudget) throws(CofferError) -> sending Change {
        let connection = try connect(
            .readWrite, cacheByteCount: cache.writerByteCount(besideShared: hasSharedCache))
        try connection.execute("PRAGMA synchronous = FULL")
        return Change(Snapshot(connection))
    }

    /// Gives a file that nobody else has open an identity that no other has, and leaves no log beside it.
    package func renewIdentity() throws(CofferError) {
        let connection = try connect(.readWrite, cacheByteCount: 8 << 20)
        do throws(CofferError) {
            try DatabaseIdentity.renew(in: connection)
            _ = try connection.checkpoint(patience: .zero)
            try connection.close()
        } catch {
            try? connection.close()
            throw error
        }
    }

    /// Takes the tables of damaged indexes out of the schema, through a connection of its own: one that has met damage may call
    /// good pages bad.
    ///
    /// - Parameter losesDefinitions: whether what indexes there are goes too, and not only their entries.
    /// - Throws: `ioFailed` (500) when it is open whether that is on the disk.
    package func abandonIndexes(losesDefinitions: Bool) throws(CofferError) {
        let connection = try connect(.readWrite, cacheByteCount: 1 << 20)
        do throws(CofferError) {
            try connection.execute("PRAGMA synchronous = FULL")
            try connection.changeSchemaDirectly(
                losesDefinitions ? IndexSchema.abandonmentOfAll : IndexSchema.abandonment)
        } catch {
            if error.code == .ioFailed { connection.abandon() }
            throw error
        }
    }
}

/// The SQLite library of this process.
package struct DatabaseLibrary: Sendable {
    private let library: Library

    /// Loads it, if nothing has yet.
    ///
    /// - Throws: `encryptionUnavailable` (501) where there is none to load.
    package init() throws(CofferError) { library = try Library.load() }

    /// SQLite's version, such as `3.15.2`.
    package var version: String { library.version }

    /// SQLCipher's version, such as `3.4.1`; nil if the library is not SQLCipher.
    package var cipherVersion: String? { library.cipherVersion }

    /// Whether temporary tables and indexes are kept in memory.
    package var keepsTemporaryDataInMemory: Bool { library.keepsTemporaryDataInMemory }

    /// - Throws: `encryptionUnavailable` (501) unless it can keep encrypted files.
    package static func requireEncryption() throws(CofferError) { try Library.load().requireEncryption() }
}
