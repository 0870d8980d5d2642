@_spi(Tool) public import Coffer
@_spi(Tool) public import Foundation

/// What only whoever has opened a database knows of it.
@_spi(Tool) public struct DatabaseDescription: Codable, Sendable {
    /// The database's own UUID.
    public let uuid: UUID?
    /// The keys; `DatabaseKey.isCurrent` is said of the one that it was opened with, here or by whoever asked.
    public let keys: [DatabaseKey]
    /// What is left of earlier generations of the store.
    public let oldGenerations: [OldGeneration]

    /// That description.
    public init(uuid: UUID?, keys: [DatabaseKey], oldGenerations: [OldGeneration]) {
        (self.uuid, self.keys, self.oldGenerations) = (uuid, keys, oldGenerations)
    }
}

/// How much is in a database.
@_spi(Tool) public struct DatabaseCounts: Codable, Sendable {
    /// Documents, deleted ones not counted.
    public let documentCount: Int
    /// The sequence of the last revision that was saved.
    public let lastSequence: Int
    /// Contents of attachments and blobs that were left out by a pull.
    public let missingContentCount: Int

    /// Counts a database. May take as long as counting does.
    public init(_ database: Database) throws(CofferError) {
        documentCount = try database.documentCount
        lastSequence = try database.lastSequenceNumber
        missingContentCount = try database.missingContentCount
    }
}

/// Which keys a database is to have.
@_spi(Tool) public struct KeyChangeOrder: Sendable {
    /// The new key.
    public let newKey: SymmetricKey
    /// Other keys that should still open it.
    public let keptKeys: [SymmetricKey]
    /// Whether keys that are not given may end.
    public let dropsOtherKeys: Bool
    /// Whether attachment files are named by a keyed digest; nil for as before.
    public let keyedNames: Bool?

    /// That order.
    public init(newKey: SymmetricKey, keptKeys: [SymmetricKey], dropsOtherKeys: Bool, keyedNames: Bool? = nil) {
        (self.newKey, self.keptKeys) = (newKey, keptKeys)
        (self.dropsOtherKeys, self.keyedNames) = (dropsOtherKeys, keyedNames)
    }
}

/// Which store is meant, by whom.
struct Hello: Codable {
    /// What both sides have to understand of each other. Another number is refused.
    static let currentVersion = 1

    var version = currentVersion
    /// The database's name in its directory.
    let name: String
    /// The store's directory, by which a copy of the same name is distinguished from it.
    let store: FileIdentity
}

/// What is notified of a ``Hello`` before anything else is read of it.
struct HelloVersion: Codable {
    let version: Int
}

/// What is said of a store that is open.
struct Welcome: Codable {
    /// Whether the process has it open for reading only, and nothing can be changed through it.
    let isReadOnly: Bool
}

/// What is asked of the process that has a store open. Keys go before it, each in a frame of its own.
enum MaintenanceRequest: Codable {
    /// What only the process that has the store open knows of it: a ``DatabaseDescription``.
    case describe
    /// How much is in it: a ``DatabaseCounts``. May take as long as counting does.
    case count
    /// A `Verification`, after progress.
    case verify(VerificationLevel)
    /// A `BackupResult`, after progress. A key before it is the copy's, and without one the copy is not encrypted.
    case backUp(Backup)
    /// A `CompactionResult`.
    case compact
    /// Nothing but that it is done.
    case setMaximumDepth(Int)
    /// The new key, a `DatabaseKey`. Before it goes the key itself.
    case addKey(label: String?)
    /// Nothing but that it is done.
    case removeKey(DatabaseKey.ID)
    /// The new key, a `DatabaseKey`. Before it goes the key itself. Without an id, the key that opened this connection goes.
    case replaceKey(DatabaseKey.ID?, label: String?)
    /// A `KeyChangeResult`, after progress. Before it go the new key and those that are kept.
    case changeKey(dropsOtherKeys: Bool, keyedNames: Bool?)
    /// A ``ConversionAnswer``, after progress.
    case convert(StorageType)
    /// Each current document as a ``DocumentItem``, then how many there were.
    case listDocuments
    /// A content in pieces, then whether it was there.
    case readContent(digest: String, byteCount: Int)

    /// Where a copy is to be.
    struct Backup: Codable {
        /// The folder, which both sides must mean by this path.
        let folder: String
        let folderIdentity: FileIdentity
        let fileName: String
    }
}

/// What came of a conversion.
struct ConversionAnswer: Codable {
    /// Nil where there was nothing to do.
    let result: ConversionResult?
}

/// One document of many: what an export makes of it.
struct DocumentItem {
    var header: Header
    /// The revision's JSON, as `SavedRevision.json` has it.
    let json: Data

    struct Header: Codable {
        let id: String
        /// Whether there is an attachment.
        let hasAttachments: Bool
        /// Those of its attachments, and of the blobs in it.
        let contents: [Content]
        /// Whether other revisions count, too.
        let isInConflict: Bool
    }

    struct Content: Codable {
        /// The attachment's name; nil for a blob.
        let name: String?
        let digest: String
        let byteCount: Int
    }

    /// The header's length in four bytes, the lowest first, the header as JSON, and the document's JSON as it is.
    var payload: Data {
        get throws {
            let header = try JSONEncoder().encode(header)
            return Data((0..<4).map { UInt8(truncatingIfNeeded: header.count >> (8 * $0)) }) + header + json
        }
    }

    init(header: Header, json: Data) { (self.header, self.json) = (header, json) }

    init(payload: Data) throws(CofferError) {
        let bytes = [UInt8](payload.prefix(4))
        let byteCount = bytes.count == 4 ? (0..<4).reduce(0) { $0 | Int(bytes[$1]) << (8 * $1) } : Int.max
        guard byteCount <= payload.count - 4,
            let header = try? JSONDecoder().decode(Header.self, from: payload.dropFirst(4).prefix(byteCount))
        else { throw CofferError(.ioFailed, of: Frame.subject, "this version doesn't understand a document") }
        self.init(header: header, json: Data(payload.dropFirst(4 + byteCount)))
    }
}
