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

    /// The database's engine.
    public var storageType: StorageType { StorageType(of: storage.manifest.manifest) }

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

    /// How many bytes the database file has with its log, and all contents of attachments and blobs that are here. Takes time in
    /// proportion to the number of contents.
    ///
    /// - Throws: `damaged` and `closed` (500).
    package var sizes: (databaseByteCount: Int, contentByteCount: Int) {
        get throws(CofferError) {
            let file = storage.databaseFile
            let contents = try storage.read { (tables) throws(CofferError) in try tables.attachments.contentSum() }
            return (file.byteCount.addingSaturated(file.logByteCount), contents.byteCount)
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

/// How `openDatabase(named:options:)` opens or creates a database.
public struct DatabaseOptions: Sendable {
    /// Whether a database that does not exist is created. Default: false.
    public var create = false

    /// Whether the database is opened for reading only. Default: false.
    ///
    /// Nothing is written then, not even to recover from a crash, and other processes may read at the same time. A
    /// database that does not exist is not created.
    public var readOnly = false

    /// The key that the database opens with, or, when it is created, is encrypted under. Default: nil, no encryption.
    ///
    /// A new database without a key is **not encrypted**. A database that exists opens only with one of its keys, and an
    /// unencrypted one only with nil; everything else is a 401.
    public var encryptionKey: SymmetricKey?

    /// Whether only an encrypted database will do. Default: false.
    ///
    /// Without a key every opening is a 401 then (`keyRequired`), also where the store says of itself that it isn't encrypted:
    /// whoever can write to the directory can put such a store in the place of another. With a key it always is: an
    /// unencrypted store is a 401 then (`notEncrypted`), whatever this says.
    public var requiresEncryption = false

    /// Whether the attachment files of a new encrypted database have names that say nothing. Default: false.
    ///
    /// Otherwise a file's name is the SHA-1 of its content: whoever can list the directory can tell whether a content that
    /// they know is in it. With keyed names they can't. Without a key it is a 400. A database that exists keeps its names.
    public var keyedNames = false

    /// The database's storage engine. Default: nil, which is the manager's ``Manager/storageType`` for a new database that is
    /// encrypted, and for any other its own.
    ///
    /// A database with another engine is **converted in place** before it is opened, as ``Database/convert(to:)`` does, which
    /// takes seconds for a gigabyte and as much free space as the database takes. Its keys go on opening it. One that is open
    /// already is returned as it is. ``StorageType/sealed`` without a key is a 406, and so is a name that no engine has;
    /// for reading only, another engine than the database's is a 403.
    public var storageType: StorageType?

    /// When a commit returns. Default: ``Durability/full``.
    public var durability = Durability.full

    /// How many bytes of decrypted pages are kept in memory, for writing and reading together. Default: 64 MiB.
    ///
    /// A page that is not in memory costs a read, a decryption and a check. A cache that holds the working set matters
    /// more for speed than any other setting. Memory is taken as pages are read; values below 1 MiB count as 1 MiB. A quarter
    /// is for the writer, and for what is read within transactions; those who read at the same time share the rest, and
    /// after some thousand reads that nobody wrote between all of it, until somebody writes. In a database of sealed pages
    /// that rest is one cache, from which all read.
    public var cacheByteCount = 64 << 20

    /// How long opening waits for another process to close the database. Default: zero.
    ///
    /// When it has passed, opening fails with `busy` (503).
    public var lockTimeout = Duration.zero

    /// How long a call waits for another thread's transaction to end. Default: 10 seconds.
    ///
    /// When it has passed, the call fails with `busy` (503).
    public var busyTimeout = Duration.seconds(10)

    /// Whether the database is compacted automatically, in the background, when that gives enough back. Default: true.
    ///
    /// Enough is 16 MiB, or an eighth of the database where that is more. It is estimated as documents are saved. Without
    /// it, what replaced and deleted revisions hold stays until ``Database/compact()``.
    public var compactsInBackground = true

    /// What is enough.
    var compactionPolicy = CompactionPolicy()

    /// Frames in the log from which a commit is followed by a checkpoint. Default: 16 MiB of pages.
    var checkpointFrameCount = 4096

    /// Readers' connections that are kept when nobody reads. More are opened under load, and closed as they come back.
    var idleReaderLimit = 8

    /// The options that are their defaults.
    public init() {}
}

/// When a commit returns: how much of it a power cut can take back.
public enum Durability: Sendable {
    /// After the commit has reached the disk.
    case full
    /// After the commit was handed to the operating system.
    ///
    /// A crash of the app loses nothing. A power cut or a crash of the system may lose the last commits, as a whole and
    /// in order; it never leaves half of one.
    case relaxed
}
