internal import CofferModel
public import CofferSealing
internal import CofferRecords
package import CofferVault
internal import Dispatch
public import Foundation
internal import Synchronization

/// A directory of databases: where they are created, opened and listed.
///
/// Each database is one directory, `NAME.coffer`. Managers are cheap and hold nothing open; two for the same directory,
/// or one that reaches it on another way, hand out the same open databases. Safe from any thread.
public final class Manager: Sendable {
    /// The directory of this manager's databases. It is made when the first one is created, for its owner alone.
    public let directory: URL

    /// The manager of the app's usual place for data, ``defaultDirectory``.
    public static let shared = Manager(unchecked: defaultDirectory)

    /// The engine of encrypted databases that are created without naming one. Default: ``StorageType/sqlite``, which those
    /// without encryption always have.
    public var storageType: StorageType {
        get { storage.withLock { $0 } }
        set { storage.withLock { $0 = newValue } }
    }

    /// Whether this process, when it is root, works on stores of other users all the same. Default: false.
    ///
    /// **Whoever owns such a store can have the process overwrite any file of the system, and take it over:** SQLite is given
    /// paths, and the owner of a directory can put a link in the place of a file between a look at it and its opening. So
    /// root is refused with a 403 (`notOwner`) every store whose MANIFEST or directory is not root's, and every store
    /// that would be made in a directory of another user. Do such work in a process that is that user, as `coffer` does.
    ///
    /// Trust only users who may do on this machine what root may. What is made in their stores is given to them. Without
    /// root's rights it has no effect, nor on databases that are open. What needs MANIFEST alone is never refused:
    /// ``allDatabaseNames``, ``storeInfo(named:)``, ``keyBackup(ofDatabaseNamed:encryptionKey:)``.
    public var unsafelyTrustsStoreOwners: Bool {
        get { trust.withLock { $0 } == .trusted }
        set { trust.withLock { $0 = newValue ? .trusted : .refused } }
    }

    private let storage = Lock(StorageType.sqlite)
    private let trust = Lock(OtherOwners.refused)
    /// Where ``backgroundTell(databaseNamed:_:onFailure:)`` calls its functions.
    let background = DispatchQueue(label: "coffer.background", qos: .utility)
    let fileSystem: any FileSystem
    var otherOwners: OtherOwners { trust.withLock { $0 } }
    let passwordCost: PasswordCost
    let attachmentBatchCount: Int
    let adjustDigest: @Sendable (ContentDigest) -> ContentDigest
    /// What must last as long as anybody has this manager, or a database of it.
    private let companion: (any AnyObject & Sendable)?

    /// A manager for the databases in `directory`, which need not exist.
    ///
    /// - Throws: `invalidArgument` (400) for a URL that is not a file URL.
    public convenience init(directory: URL) throws(CofferError) {
        guard directory.isFileURL else {
            throw CofferError(.invalidArgument, "databases are files, and the URL is not a file URL")
        }
        self.init(unchecked: directory)
    }

    /// A manager whose files, password costs, batches and digests a test chooses: two contents with one SHA-1 are not to be
    /// had otherwise.
    package init(
        directory: URL, fileSystem: any FileSystem, passwordCost: PasswordCost,
        attachmentBatchCount: Int = Installation.batchCount,
        adjustDigest: @escaping @Sendable (ContentDigest) -> ContentDigest = { $0 },
        keeping companion: (any AnyObject & Sendable)? = nil
    ) {
        self.companion = companion
        self.directory = directory.standardizedFileURL
        self.fileSystem = fileSystem
        self.passwordCost = passwordCost
        self.attachmentBatchCount = attachmentBatchCount
        self.adjustDigest = adjustDigest
    }

    private convenience init(unchecked directory: URL) {
        self.init(directory: directory, fileSystem: SystemFileSystem(), passwordCost: .standard)
    }

    /// Where ``shared`` keeps its databases: `Application Support/Coffer` on Apple systems; elsewhere `$XDG_DATA_HOME/Coffer`, or
    /// `~/.local/share/Coffer` where that is not set (XDG Base Directory Specification). Need not exist.
    public static var defaultDirectory: URL {
        #if canImport(Darwin)
        URL.applicationSupportDirectory.appending(path: "Coffer", directoryHint: .isDirectory)
        #else
        // The XDG Base Directory Specification: a relative path there is to be ignored.
        if let home = ProcessInfo.processInfo.environment["XDG_DATA_HOME"], home.hasPrefix("/") {
            URL(filePath: home, directoryHint: .isDirectory).appending(path: "Coffer", directoryHint: .isDirectory)
        } else {
            URL.homeDirectory.appending(path: ".local/share/Coffer", directoryHint: .isDirectory)
        }
        #endif
    }

    // MARK: Opening

    /// Opens the database of that name, or creates it where `options.create` says so.
    ///
    /// A database that is open already is returned as the same instance, if `options.encryptionKey` opens it; all other
    /// options keep the values that it was opened with. Nothing of a store is changed before its key is proven.
    ///
    /// - Parameters:
    ///   - name: lower-case ASCII letters, digits and `_$()+-/`, the first a letter; shorter than 240 bytes.
    ///   - options: see there. Without any, a database that must exist is opened, unencrypted.
    /// - Throws: `invalidDatabaseName` and `invalidKey` (400); `wrongKey`, `keyRequired` and `notEncrypted` (401);
    ///   `notOwner` (403) for another user's store, see ``unsafelyTrustsStoreOwners`` too; `databaseNotFound` and
    ///   `notAStore` (404); `storageTypeUnavailable` (406); `damaged` (500);
    ///   `encryptionUnavailable` and `unsupportedFormat` (501); `busy` (503) while another process has it open; `ioFailed`
    ///   (500), saying what to do, for writing to an encrypted store in which an ``OldGeneration`` that may be readable can't
    ///   be removed.
    public func openDatabase(named name: String, options: DatabaseOptions = DatabaseOptions()) throws(CofferError)
        -> Database
    {
        try openDatabase(named: name, options: options) { true }
    }

    /// - Parameter goesOn: whether anybody waits any more, while another process has it open.
    func openDatabase(
        named name: String, options: DatabaseOptions, while goesOn: @escaping @Sendable () -> Bool
    ) throws(CofferError) -> Database {
        let name = try DatabaseName(name)
        guard let database = try open(name, options, checksKey: true, while: goesOn) else {
            throw CofferError(.databaseNotFound, of: Self.subject(name))
        }
        return database
    }

    /// Opens the database of that name, or creates it.
    ///
    /// - Parameters:
    ///   - name: see `openDatabase(named:options:)`, which also lists the errors.
    ///   - encryptionKey: the key that it opens with, or is encrypted under when it is created. **Without one a new
    ///     database is not encrypted.** A database that is open already is returned without asking for a key; a key that
    ///     is given all the same must open it.
    public func database(named name: String, encryptionKey: SymmetricKey? = nil) throws(CofferError) -> Database {
        var options = DatabaseOptions()
        options.create = true
        options.encryptionKey = encryptionKey
        let name = try DatabaseName(name)
        guard let database = try open(name, options, checksKey: encryptionKey != nil) else {
            throw CofferError(.databaseNotFound, of: Self.subject(name))
        }
        return database
    }

    /// Opens the database of that name, if there is one.
    ///
    /// - Parameters:
    ///   - name: see `openDatabase(named:options:)`, which also lists the errors.
    ///   - encryptionKey: the key that it opens with. One that is open already is returned without asking for it; a key
    ///     that is given all the same must open it.
    /// - Returns: the database, or nil if there isn't one.
    public func existingDatabase(named name: String, encryptionKey: SymmetricKey? = nil) throws(CofferError)
        -> Database?
    {
        var options = DatabaseOptions()
        options.encryptionKey = encryptionKey
        return try open(DatabaseName(name), options, checksKey: encryptionKey != nil)
    }

    /// - Returns: nil when there is no such database and none is to be created.
    private func open(
        _ name: DatabaseName, _ options: DatabaseOptions, checksKey: Bool,
        while goesOn: @escaping @Sendable () -> Bool = { true }
    ) throws(CofferError) -> Database? {
        if let key = options.encryptionKey {
            try key.checkUsable()
        } else if options.requiresEncryption {
            throw CofferError(
                .keyRequired, of: Self.subject(name), "the database is not encrypted, and encryption is required")
        }
        if let type = options.storageType {
            do throws(CofferError) { _ = try type.encryptedProfile } catch { throw error.about(Self.subject(name)) }
        }
        let creates = options.create && !options.readOnly
        if creates && !Manifest.exists(inStoreAt: storePath(name)) {
            _ = try storageType(ofNewWith: options, name)
            try makeDirectory()
        }
        let parent = try orNilWhenMissing { () throws(CofferError) in
            try StoreIdentity(ofDirectoryAt: directory.path(percentEncoded: false))
        }
        guard let parent else { return nil }
        let place = Registry.Place(directory: parent, fileName: name.fileName)
        let path = storePath(name)
        return try Registry.shared.withExclusiveUse(of: place) { () throws(CofferError) in
            let opener = StoreOpener(
                path: path, subject: Self.subject(name), options: options,
                newStorageType: { [self] () throws(CofferError) in try storageType(ofNewWith: options, name) },
                settings: StorageSettings(
                    options, passwordCost: passwordCost, otherOwners: otherOwners, fileSystem: fileSystem,
                    attachmentBatchCount: attachmentBatchCount, adjustDigest: adjustDigest),
                goesOn: goesOn)
            while true {
                if let identity = try orNilWhenMissing({ () throws(CofferError) in try StoreIdentity(path: path) }) {
                    if let database = openDatabase(identity, name) {
                        if checksKey { try database.checkKey(options.encryptionKey) }
                        if !options.readOnly { try database.checkOpenForWriting() }
                        return database
                    }
                    do throws(CofferError) {
                        return register(try opener.open(), name)
                    } catch  where error.code == .databaseNotFound {
                        // Deleted by another process since we looked.
                    }
                }
                guard creates else { return nil }
                do throws(CofferError) {
                    return register(try opener.create(), name)
                } catch  where error.code == .databaseExists {
                    // Created by another process since we looked: open that one.
                }
            }
        }
    }

    /// Gives `body` the path of a store while nobody in this process opens it.
    ///
    /// - Throws: what `body` throws; `databaseOpen` (412) when it is open, also if only a blob keeps it so; as opening does
    ///   where the manager's directory is missing.
    func withClosedDatabase<Value>(
        _ name: DatabaseName, _ body: (_ path: String) throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        let place = Registry.Place(
            directory: try StoreIdentity(ofDirectoryAt: directory.path(percentEncoded: false)), fileName: name.fileName)
        let path = storePath(name)
        return try Registry.shared.withExclusiveUse(of: place) { () throws(CofferError) in
            if let identity = try? StoreIdentity(path: path), !Registry.shared.waitUntilClosed(identity) {
                throw CofferError(.databaseOpen, of: Self.subject(name), "close it first")
            }
            return try body(path)
        }
    }

    private func orNilWhenMissing<Value>(_ body: () throws(CofferError) -> Value) throws(CofferError) -> Value? {
        do throws(CofferError) {
            return try body()
        } catch  where error.code == .databaseNotFound {
            return nil
        }
    }

    /// The database of that name, if it is open.
    func openDatabase(_ identity: StoreIdentity, _ name: DatabaseName) -> Database? {
        Registry.shared.database(identity) { Database(name: name.text, manager: self, storage: $0) }
    }

    private func register(_ storage: Storage, _ name: DatabaseName) -> Database {
        let database = Database(name: name.text, manager: self, storage: storage)
        Registry.shared.add(database, storage.store.identity)
        return database
    }

    /// The engine that a new database has.
    ///
    /// - Throws: `storageTypeUnavailable` (406).
    func storageType(
        ofNewWith options: DatabaseOptions, _ name: DatabaseName
    ) throws(CofferError) -> StorageType {
        do throws(CofferError) {
            let isEncrypted = options.encryptionKey != nil
            if let type = options.storageType {
                try type.check(isEncrypted: isEncrypted)
                return type
            }
            // Whoever sets it speaks of encrypted ones.
            let type = storageType
            try type.check(isEncrypted: true)
            return isEncrypted ? type : .sqlite
        } catch {
            throw error.about(Self.subject(name))
        }
    }

    package func makeDirectory() throws(CofferError) {
        do {
            // The names of databases are for their owner's eyes only, too.
            try FileManager.default.createDirectory(
                at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw CofferError(
                .ioFailed, of: "directory \(directory.lastPathComponent)", "it can't be made", cause: error)
        }
    }

    // MARK: Listing

    /// The names of all databases here, sorted by their bytes. Reads no database.
    ///
    /// - Throws: `ioFailed` (500) when the directory cannot be read. One that does not exist has no databases.
    public var allDatabaseNames: [String] {
        get throws(CofferError) {
            let path = directory.path(percentEncoded: false)
            guard FileManager.default.fileExists(atPath: path) else { return [] }
            do {
                return try FileManager.default.contentsOfDirectory(atPath: path)
                    .compactMap { DatabaseName(fileName: $0) }
                    .filter { Manifest.exists(inStoreAt: storePath($0)) }
                    .map(\.text)
                    .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            } catch {
                throw CofferError(
                    .ioFailed, of: "directory \(directory.lastPathComponent)", "it can't be read", cause: error)
            }
        }
    }

    /// Whether there is a database of that name. False for a name that none can have. Reads no database.
    public func databaseExists(named name: String) -> Bool {
        guard let name = try? DatabaseName(name) else { return false }
        return Manifest.exists(inStoreAt: storePath(name))
    }

    // MARK: Deleting

    /// Deletes a database that is not open, with all its documents and attachments. **Needs no key**: the way out when the last
    /// one is lost, and the app has to start over.
    ///
    /// It is gone at once, even if the process is killed; the space is given back by the end of the call. An open database is
    /// deleted by `delete()`.
    ///
    /// - Throws: `invalidDatabaseName` (400); `notOwner` (403); `databaseNotFound`, and `notAStore` for a directory without a
    ///   MANIFEST (404); `databaseOpen` (412) when it is open in this process, also if only a blob keeps it so; `ioFailed`
    ///   (500); `unsupportedFormat` (501) on a network file system; `busy` (503) while another process has it open, be it for
    ///   reading only. It is as it was then, unless the disk failed while it was taken apart: its name is free then.
    public func deleteDatabase(named name: String) throws(CofferError) {
        let name = try DatabaseName(name)
        do throws(CofferError) {
            try withClosedDatabase(name) { (path) throws(CofferError) in
                let store = try LockedStore.open(
                    path: path, access: .readWrite, otherOwners: otherOwners, fileSystem: fileSystem)
                defer { store.close() }
                try store.delete()
            }
        } catch {
            throw error.about(Self.subject(name))
        }
    }

    func storePath(_ name: DatabaseName) -> String {
        directory.appending(component: name.fileName, directoryHint: .isDirectory).path(percentEncoded: false)
    }

    static func subject(_ name: DatabaseName) -> String { "database \(name.text)" }
}
