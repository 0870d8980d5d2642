internal import CofferSealing

/// What MANIFEST says, read whole and checked as far as that goes without a key: nobody has vouched for it yet.
///
/// Its bytes are in docs/FORMAT.md. It holds no secret: the master key is in its slots only in wrapped form.
/// ``unlock(with:)`` makes an ``UnlockedManifest`` of it.
package struct Manifest: Sendable, Equatable {
    /// How the database file is kept.
    package enum DatabaseProfile: UInt8, Sendable {
        /// Plain SQLite.
        case sqlite = 0
        /// SQLCipher, in the form that versions 3 and 4 both read.
        case portableSQLCipher = 1
        /// SQLite on pages that Coffer seals.
        case sealedPages = 3

        var isEncrypted: Bool { self != .sqlite }
    }

    /// How attachment files are kept.
    package enum AttachmentFormat: UInt8, Sendable {
        case plain = 0
        /// c2sp.org/chunked-encryption with AES-256-GCM.
        case cobblestone256 = 1
    }

    /// How attachment files are named.
    package enum AttachmentNames: UInt8, Sendable {
        /// By the SHA-1 of the plaintext.
        case sha1 = 1
        /// By an HMAC-SHA-256 of it, which says nothing to those who don't have the key.
        case keyed = 2
    }

    package let isEncrypted: Bool
    package let storeUUID: StoreUUID
    /// From 1, one more with every change of the encryption key.
    package let generation: UInt64
    /// From 1, one more with every writing of MANIFEST.
    package internal(set) var sequence: UInt64
    /// Random, so that what an interrupted attempt left is never taken for this generation.
    package let generationTag: UInt64
    package let databaseProfile: DatabaseProfile
    package let attachmentFormat: AttachmentFormat
    package let attachmentNames: AttachmentNames
    /// Eight places, some of them empty; all when the store is not encrypted.
    let slotPlaces: [KeySlot?]
    /// HMAC-SHA-256 of all bytes before it; zeros when the store is not encrypted.
    var authenticationCode: [UInt8]

    /// How a copy of the database is kept that is encrypted: as this one, or in the portable form if this one isn't.
    package var profileOfEncryptedCopies: DatabaseProfile { isEncrypted ? databaseProfile : .portableSQLCipher }

    /// The keys that open the store, in the order of their slots.
    package var slots: [KeySlot] { slotPlaces.compactMap(\.self) }

    /// The name of the directory that holds the current generation.
    package var generationName: String { "g\(hexadecimal(generation))-\(hexadecimal(generationTag))" }

    /// The name of the file in a store.
    package static let fileName = "MANIFEST"
    package static let byteCount = 1024
    package static let slotCount = 8
    static let authenticationCodeByteCount = 32
}
