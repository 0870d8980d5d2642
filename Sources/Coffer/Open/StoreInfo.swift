internal import CofferModel
public import CofferSealing
internal import CofferVault
public import Foundation
internal import CofferRecords

/// The readable facts about a store: anyone who can read its directory can get them without a key. They hold no secret.
public struct StoreInfo: Sendable {
    /// Whether the store is encrypted.
    public let isEncrypted: Bool
    /// The storage engine.
    public let storageType: StorageType
    /// Identifies the store's bytes: copies have the same, and a key change keeps it.
    public let storeUUID: UUID
    /// From 1, one more with every change of the encryption key and every conversion to another storage engine.
    public let generation: Int
    /// From 1, one more with every change of the manifest.
    public let sequence: Int
    /// The keys that open it, in the order of their slots. Empty when it is not encrypted.
    public let keySlots: [KeySlot]
    /// When the data key was made that everything is encrypted under, at the latest: a change of the encryption key makes
    /// another, adding and removing keys and converting the store don't. Nil for a store that is not encrypted.
    ///
    /// That is when the first of its keys was added or its files were made, as far as the file system says, whichever came
    /// first. Only where that key was replaced and the store was copied or converted, too, the data key is older.
    public let dataKeyCreated: Date?

    /// One key that opens a store, as far as that is known without it.
    public struct KeySlot: Sendable, Codable {
        /// The slot's id: 16 hex digits.
        public let id: String
        /// The kind of key that opens it.
        public let kind: Kind
        /// When it was made.
        public let created: Date

        /// The kind of key that opens a slot, and its cost.
        public enum Kind: Sendable, Equatable, Codable {
            /// A password, through scrypt with these parameters (RFC 7914).
            case scryptPassword(n: Int, r: Int, p: Int)
            /// A password, through PBKDF2 with HMAC-SHA-512 (RFC 8018).
            case pbkdf2Password(iterations: Int)
            /// 32 bytes.
            case bytes
        }
    }
}

extension Manager {
    /// The readable facts about the store of that name. Takes no lock and needs no key, so they are not authenticated.
    ///
    /// - Throws: `invalidDatabaseName` (400), `databaseNotFound` and `notAStore` (404), `damaged` (500),
    ///   `unsupportedFormat` (501).
    public func storeInfo(named name: String) throws(CofferError) -> StoreInfo {
        let name = try DatabaseName(name)
        do throws(CofferError) {
            let path = storePath(name)
            return StoreInfo(try Manifest.read(path: path), at: path)
        } catch {
            throw error.about(Self.subject(name))
        }
    }
}

extension StoreInfo {
    init(_ manifest: Manifest, at path: String) {
        isEncrypted = manifest.isEncrypted
        storageType = StorageType(of: manifest)
        storeUUID = UUID(manifest.storeUUID.bytes)
        generation = Int(clamping: manifest.generation)
        sequence = Int(clamping: manifest.sequence)
        keySlots = manifest.slots.map(KeySlot.init)
        let birth = manifest.generationBirthTime(inStoreAt: path).map { Date(timeIntervalSince1970: Double($0)) }
        dataKeyCreated = isEncrypted ? (keySlots.map(\.created) + [birth].compactMap(\.self)).min() : nil
    }
}

extension StoreInfo.KeySlot {
    init(_ slot: CofferVault.KeySlot) {
        id = slot.id.description
        created = Date(timeIntervalSince1970: Double(slot.creationTime))
        kind =
            switch slot.derivation {
            case .scrypt(let log2N, let r, let p): .scryptPassword(n: 1 << Int(log2N), r: Int(r), p: Int(p))
            case .pbkdf2SHA512(let iterations): .pbkdf2Password(iterations: Int(iterations))
            case .hkdfSHA256: .bytes
            }
    }
}

extension UUID {
    /// A UUID of 16 bytes, all of which count.
    init(_ bytes: [UInt8]) {
        precondition(bytes.count == 16, "a UUID has 16 bytes")
        self.init(
            uuid: (
                bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8], bytes[9],
                bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]
            ))
    }
}

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
