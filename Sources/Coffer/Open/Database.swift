internal import CofferModel
internal import CofferRecords
public import CofferSealing
internal import CofferVault
public import Foundation

/// A database of JSON documents, encrypted when it was created with a key.
///
/// ```swift
/// var options = DatabaseOptions()
/// options.create = true
/// options.encryptionKey = SymmetricKey(password: "password123456")
/// let database = try Manager.shared.openDatabase(named: "people", options: options)
///
/// let robin = try database.document(withID: "Robin").newRevision()
/// robin["name"] = "Robin"
/// try robin.save()
/// ```
///
/// Safe from any thread, as is everything that hangs on it but drafts. Reads see what was committed when they began and
/// wait for nobody; writes wait for each other. Where a call may wait there is an `async` form of the same name, which
/// suspends its task instead of blocking a thread. A commit has reached the disk when its call returns.
///
/// There is one instance for each open database of the process. It closes with `close()`, or when nobody holds it or a
/// revision or blob of it.
public final class Database: Sendable {
    // The first, so that it is let go of first: the manager may hold the directory.
    let storage: Storage

    /// The database's name.
    public let name: String

    /// The manager that opened the database.
    public let manager: Manager

    init(name: String, manager: Manager, storage: Storage) {
        self.name = name
        self.manager = manager
        self.storage = storage
    }

    /// Whether a database can have that name: lower-case ASCII letters, digits and `_$()+-/`, the first a letter; shorter than
    /// 240 bytes.
    public static func isValidName(_ name: String) -> Bool { DatabaseName.isValid(name) }

    /// The directory of the database's store, where it was opened.
    public var url: URL {
        manager.directory.appending(component: DatabaseName.fileName(of: name), directoryHint: .isDirectory)
    }

    /// Whether the database is encrypted.
    public var isEncrypted: Bool { storage.manifest.manifest.isEncrypted }

    /// Whether the database was opened for reading only.
    public var isReadOnly: Bool { storage.isReadOnly }

    /// The identifier that replication uses for the database. Copies of the store have different ones; it stays the
    /// same when the key is changed.
    ///
    /// - Returns: nil for a backup that is open for reading only and was never opened for writing.
    public var uuid: UUID? {
        get throws(CofferError) {
            try storage.readBriefly { (tables) throws(CofferError) in try tables.identity() }
                .map(UUID.init)
        }
    }

    // MARK: Transactions

    /// Runs `body` as one transaction: all that it saves is committed together, or nothing if it throws.
    ///
    /// Reads inside see what it has saved so far; other threads do not, until it has returned. Many saves in one
    /// transaction are much faster than many transactions, since each commit waits for the disk. Transactions nest: an
    /// inner one that throws takes back only its own changes. `body` runs on the calling thread.
    ///
    /// Since `body` may throw anything, a bare `catch` has an `any Error`, without a status: write
    /// `catch let error as CofferError`.
    ///
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws; `readOnly` (403), `closed` (500), `busy` (503), `noSpace` (507).
    @discardableResult
    public func inTransaction<Value>(_ body: () throws -> Value) throws -> Value {
        try storage.transaction(body)
    }

    // MARK: Closing

    /// Waits for reads, writes and calls of listeners under way, then closes. Whatever is called later fails with `closed`
    /// (500).
    ///
    /// Closing again does nothing.
    ///
    /// - Throws: `invalidArgument` (400) inside a transaction or a listener, which would wait for itself; `busy` (503).
    public func close() throws(CofferError) { try storage.close() }

    /// Closes the database and deletes it, with all its documents and attachments. It is gone at once, even if the
    /// process is killed; the space is given back by the end of the call.
    ///
    /// - Throws: as `close()`; `readOnly` (403), `closed` (500) when it was closed before.
    public func delete() throws(CofferError) { try storage.close(removing: true) }

    // MARK: For those who ask for an open database again

    /// - Throws: as opening does, unless `key` opens this database.
    func checkKey(_ key: SymmetricKey?) throws(CofferError) {
        do throws(CofferError) {
            _ = try storage.manifest.manifest.unlock(with: key)
        } catch {
            throw error.about(storage.subject)
        }
    }

    /// - Throws: `busy` (503) when it is open for reading only.
    func checkOpenForWriting() throws(CofferError) {
        if isReadOnly { throw CofferError(.busy, of: storage.subject, "it is open for reading only") }
    }
}
