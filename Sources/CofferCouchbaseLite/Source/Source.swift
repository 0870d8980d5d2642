internal import CofferSealing
internal import Coffer
internal import CofferVault

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// How Couchbase Lite 1.x derives the key of a database from a password.
///
/// Each uses PBKDF2 with the same salt; the hash and the number of rounds differ.
public struct CouchbaseLiteKeyDerivation: Sendable, Hashable, CaseIterable {
    private enum Function { case hmacSHA256, hmacSHA1, hmacSHA1With1024Rounds }

    private let function: Function

    /// iOS and macOS, and the releases for Android and Java: HMAC-SHA-256, 64,000 rounds.
    public static let hmacSHA256 = Self(function: .hmacSHA256)
    /// .NET: HMAC-SHA-1, 64,000 rounds.
    public static let hmacSHA1 = Self(function: .hmacSHA1)
    /// Builds for Android and Java from before release 1.2: HMAC-SHA-1, 1,024 rounds.
    public static let hmacSHA1With1024Rounds = Self(function: .hmacSHA1With1024Rounds)

    /// All derivations, in the order in which they are tried.
    public static let allCases = [hmacSHA256, hmacSHA1, hmacSHA1With1024Rounds]

    private static let salt = Array("Salty McNaCl".utf8)

    /// The 32 bytes that it derives from a password.
    func key(from password: SymmetricKey) throws(CofferError) -> SymmetricKey {
        let derivation =
            switch function {
            case .hmacSHA256: ForeignKeyDerivation(.sha256, iterations: 64_000, salt: Self.salt)
            case .hmacSHA1: ForeignKeyDerivation(.sha1, iterations: 64_000, salt: Self.salt)
            case .hmacSHA1With1024Rounds: ForeignKeyDerivation(.sha1, iterations: 1_024, salt: Self.salt)
            }
        return try password.foreignKey(by: derivation)
    }
}

extension SymmetricKey {
    /// The keys that a database may be encrypted under if this is its password, or its 32 bytes.
    func candidates(_ derivations: [CouchbaseLiteKeyDerivation]) throws(CofferError) -> [SymmetricKey] {
        try checkUsable()
        guard isPassword else { return [self] }
        var keys: [SymmetricKey] = []
        for derivation in derivations { keys.append(try derivation.key(from: self)) }
        return keys
    }
}

/// A store of Couchbase Lite that is open for reading: its database, under the key that opens it, and its attachments.
struct Source {
    let database: SharedSourceDatabase
    let attachments: AttachmentFiles
    let isEncrypted: Bool
    private let files: SourceFiles

    /// - Throws: `wrongKey`, `keyRequired` and `notEncrypted` (401), and what opening its files throws.
    init(
        _ location: SourceLocation, _ key: SymmetricKey?, _ options: CouchbaseLiteImportOptions, scratchPath: String,
        _ monitor: ImportMonitor
    ) throws(CofferError) {
        files = try SourceFiles(location, scratchPath: scratchPath, monitor: monitor)
        let subject = location.subject
        isEncrypted = !files.isPlain
        let candidates = try key?.candidates(options.keyDerivations) ?? []
        if files.isPlain {
            // The removal of a key may have been interrupted between the database and the attachments.
            guard key == nil || AttachmentFiles.isMarked(location.attachments) else {
                throw CofferError(.notEncrypted, of: subject, "it is not encrypted; import it without a key")
            }
            guard let database = try SourceDatabase.open(files, subject: subject, key: nil) else {
                throw CofferError(.damaged, of: subject, "its first page is damaged")
            }
            self.database = SharedSourceDatabase(database)
            attachments = AttachmentFiles(location.attachments, keys: candidates, monitor: monitor)
            return
        }
        guard key != nil else {
            throw CofferError(.keyRequired, of: subject, "it is encrypted, or its first page is damaged")
        }
        for candidate in candidates {
            try monitor.checkCancelled()
            guard let database = try SourceDatabase.open(files, subject: subject, key: candidate) else { continue }
            self.database = SharedSourceDatabase(database)
            attachments = AttachmentFiles(location.attachments, keys: [candidate], monitor: monitor)
            return
        }
        throw CofferError(
            .wrongKey, of: subject,
            "this key can't read its first page; a damaged first page, or another program's file, looks the same"
        )
    }

    func close() { database.withLock { $0.close() } }

    /// - Throws: `busy` (503).
    func checkUnchanged() throws(CofferError) { try files.checkUnchanged() }
}

/// Where the files of a store of Couchbase Lite are.
struct SourceLocation {
    /// The store's name in errors.
    let subject: String
    /// The directory that the database file is in.
    let directory: Directory
    let fileName: String
    /// The directory of attachment files; nil if there isn't one.
    let attachments: Directory?

    static let fileSystem = SystemFileSystem()

    var databasePath: String { directory.path(of: fileName) }

    /// Finds the files of the store at `path`: a `.cblite2` folder, or a `.cblite` file with its attachments beside it.
    ///
    /// - Throws: `invalidArgument` (400) for a symbolic link, `databaseNotFound` and `notAStore` (404),
    ///   `unsupportedFormat` (501) for a store of ForestDB, `notOwner` (403), `ioFailed` (500).
    init(path: String) throws(CofferError) {
        var trimmed = path[...]
        while trimmed.utf8.count > 1, trimmed.utf8.last == UInt8(ascii: "/") { trimmed = trimmed.dropLast() }
        let slash = trimmed.utf8.lastIndex(of: UInt8(ascii: "/"))
        let name = String(slash.map { trimmed[trimmed.utf8.index(after: $0)...] } ?? trimmed)
        guard !["", ".", ".."].contains(name), !path.utf8.contains(0) else {
            throw CofferError(.invalidArgument, "the path doesn't name a file or folder")
        }
        subject = "Couchbase Lite store \(name)"
        let parentPath = slash.map { $0 == trimmed.startIndex ? "/" : String(trimmed[..<$0]) } ?? "."
        do throws(CofferError) {
            let parent: Directory
            do throws(CofferError) {
                parent = try Self.fileSystem.openDirectory(path: parentPath)
            } catch {
                throw error.isMissingFile ? CofferError(.databaseNotFound) : error
            }
            guard let status = try Self.fileSystem.status(of: name, in: parent) else {
                throw CofferError(.databaseNotFound)
            }
            switch status.kind {
            case .directory:
                directory = try Self.fileSystem.openDirectory(name, in: parent)
                fileName = try Self.databaseName(in: directory)
                attachments = try Self.folder(["attachments"], in: directory)
            case .file:
                directory = parent
                fileName = name
                attachments = try Self.attachments(ofFile: name, in: parent)
            case .symbolicLink:
                throw CofferError(.invalidArgument, "it is a symbolic link, which is not followed")
            default:
                throw CofferError(.notAStore, "it is \(status.kind)")
            }
        } catch {
            throw error.about(subject)
        }
    }

    private static func databaseName(in directory: Directory) throws(CofferError) -> String {
        let name = "db.sqlite3"
        if let status = try fileSystem.status(of: name, in: directory) {
            try requireFile(status)
            return name
        }
        if try fileSystem.textNames(in: directory).contains(where: { $0.hasPrefix("db.forest") }) {
            throw CofferError(
                .unsupportedFormat,
                "it is a ForestDB store, which only Couchbase Lite itself can read; let its app push it to a server, "
                    + "and pull from there")
        }
        throw CofferError(.notAStore, "the folder has no file db.sqlite3")
    }

    static func requireFile(_ status: FileStatus) throws(CofferError) {
        guard status.kind != .symbolicLink else {
            throw CofferError(.invalidArgument, "its database is a symbolic link, which is not followed")
        }
        guard status.kind == .file else { throw CofferError(.notAStore, "its database is \(status.kind)") }
    }

    /// The folder for `NAME.cblite`: `NAME attachments` beside it, or `NAME/attachments` (Android and .NET up to
    /// 1.0.4).
    private static func attachments(ofFile name: String, in parent: Directory) throws(CofferError) -> Directory? {
        if name == "db.sqlite3" { return try folder(["attachments"], in: parent) }
        let suffix = ".cblite"
        let base = name.hasSuffix(suffix) ? String(name.dropLast(suffix.count)) : name
        if let found = try folder(["\(base) attachments"], in: parent) { return found }
        return try folder([base, "attachments"], in: parent)
    }

    /// The folder that the names lead to; nil if one of them is missing.
    private static func folder(_ names: [String], in parent: Directory) throws(CofferError) -> Directory? {
        var folder = parent
        for name in names {
            guard let status = try fileSystem.status(of: name, in: folder) else { return nil }
            guard status.kind != .symbolicLink else {
                throw CofferError(
                    .invalidArgument, "its folder \(name) is a symbolic link, which is not followed")
            }
            guard status.kind == .directory else { return nil }
            folder = try fileSystem.openDirectory(name, in: folder)
        }
        return folder
    }
}

extension CofferError {
    /// Whether the system reported that there is no such file.
    var isMissingFile: Bool { systemErrorNumber == ENOENT }
}
