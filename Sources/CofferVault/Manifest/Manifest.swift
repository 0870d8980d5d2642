package import CofferSealing

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

/// The 16 random bytes that identify a store's bytes. They are in every key derivation, so that nothing of one store
/// opens in another, and travel with a copy.
package struct StoreUUID: Sendable, Hashable {
    package let bytes: [UInt8]

    package static let byteCount = 16

    /// `bytes` must be 16.
    package init(bytes: [UInt8]) {
        precondition(bytes.count == Self.byteCount, "a store UUID has \(Self.byteCount) bytes")
        self.bytes = bytes
    }

    package static func random() throws(CofferError) -> StoreUUID {
        StoreUUID(bytes: try randomBytes(count: byteCount))
    }
}

extension StoreUUID: CustomStringConvertible {
    /// 32 lower-case hex digits in the usual five groups.
    package var description: String {
        let digits = bytes.map { hexadecimal([$0]) }
        return [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { digits[$0].joined() }.joined(separator: "-")
    }
}

/// A random number of 64 bits.
func randomNumber() throws(CofferError) -> UInt64 {
    try randomBytes(count: 8).reduce(0) { $0 << 8 | UInt64($1) }
}

extension Manifest {
    private static let magic: [UInt8] = [0x89, 0x43, 0x46, 0x52, 0x0D, 0x0A, 0x1A, 0x0A]
    private static let formatVersion: UInt16 = 1
    private static let encryptedFlag: UInt32 = 1
    /// SQLCipher 4's own settings, which this version neither writes nor reads.
    private static let nativeSQLCipherProfile: UInt8 = 2
    /// HKDF-SHA-256.
    private static let keyDerivationSuite: UInt8 = 1

    private static let profileOffset = 56
    private static let slotsOffset = 64
    private static let checksumOffset = 960
    private static let authenticationCodeOffset = 992

    /// Generation and sequence are integers of the database too, which holds 63 bits.
    static let largestNumber = UInt64(Int64.max)

    /// Reads the 1,024 bytes of MANIFEST.
    ///
    /// Everything is checked here that needs no key: whole before understood, understood before believed. Costs some
    /// microseconds, and no derivation. Throws `damaged` (500) for bytes that no version wrote and `unsupportedFormat`
    /// (501) for what a later version may have.
    package init(bytes: [UInt8]) throws(CofferError) {
        // Damage is distinguished from a wrong key here, and later formats keep these parts: magic, length, checksum.
        guard bytes.count == Self.byteCount else {
            throw CofferError(.damaged, "\(bytes.count) bytes instead of \(Self.byteCount)")
        }
        guard bytes.starts(with: Self.magic) else {
            throw CofferError(.damaged, "it does not start as a manifest does")
        }
        guard bytes[10..<12].elementsEqual([UInt8(Self.byteCount >> 8), UInt8(Self.byteCount & 0xFF)]) else {
            throw CofferError(.damaged, "the length in it is not its length")
        }
        let checksum = Array(bytes[Self.checksumOffset..<Self.authenticationCodeOffset])
        guard try Digest.sha256(of: Array(bytes[..<Self.checksumOffset])) == checksum else {
            throw CofferError(.damaged, "its checksum is wrong")
        }
        try Self.refuseLaterVersion(bytes)
        try self.init(fieldsOf: bytes)
        guard try self.bytes == bytes else { throw CofferError(.damaged, "it has unknown fields") }
    }

    private static func slotBytes(_ bytes: [UInt8], at index: Int) -> ArraySlice<UInt8> {
        bytes[slotsOffset + index * KeySlot.byteCount..<slotsOffset + (index + 1) * KeySlot.byteCount]
    }

    private static func refuseLaterVersion(_ bytes: [UInt8]) throws(CofferError) {
        var reader = FieldReader(bytes[8...])
        let version = reader.number(UInt16.self)
        guard version == formatVersion else {
            throw CofferError(.unsupportedFormat, "format \(version), and this version reads \(formatVersion)")
        }
        guard bytes[profileOffset] != nativeSQLCipherProfile else {
            throw CofferError(.unsupportedFormat, "a database profile of a later version")
        }
        guard !(0..<slotCount).contains(where: { KeySlot.asksForLaterVersion(slotBytes(bytes, at: $0)) }) else {
            throw CofferError(.unsupportedFormat, "a key derivation of a later version")
        }
    }

    /// Reads the fields and checks each one's range. That nothing else is in the bytes is for the caller to check.
    private init(fieldsOf bytes: [UInt8]) throws(CofferError) {
        var reader = FieldReader(bytes[12...])
        let isEncrypted = reader.number(UInt32.self) & Self.encryptedFlag != 0
        let storeUUID = StoreUUID(bytes: reader.bytes(StoreUUID.byteCount))
        let generation = reader.number(UInt64.self)
        let sequence = reader.number(UInt64.self)
        let tag = reader.number(UInt64.self)
        guard (1...Self.largestNumber).contains(generation), (1...Self.largestNumber).contains(sequence) else {
            throw CofferError(.damaged, "its generation or sequence is out of range")
        }
        guard let profile = DatabaseProfile(rawValue: reader.number()),
            let format = AttachmentFormat(rawValue: reader.number()),
            let names = AttachmentNames(rawValue: reader.number()),
            profile.isEncrypted == isEncrypted,
            format == (isEncrypted ? .cobblestone256 : .plain),
            isEncrypted || names == .sha1
        else { throw CofferError(.damaged, "its database profile or attachment format is out of range") }

        var places: [KeySlot?] = []
        for index in 0..<Self.slotCount { places.append(try KeySlot.parse(Self.slotBytes(bytes, at: index))) }
        let ids = places.compactMap { $0?.id }
        guard ids.isEmpty != isEncrypted else {
            throw CofferError(.damaged, isEncrypted ? "it has no key slot" : "it has a key slot and is not encrypted")
        }
        guard Set(ids).count == ids.count else { throw CofferError(.damaged, "two key slots have one id") }

        let code = Array(bytes[Self.authenticationCodeOffset...])
        guard isEncrypted || code.allSatisfy({ $0 == 0 }) else {
            throw CofferError(.damaged, "it is authenticated and not encrypted")
        }
        self.init(
            isEncrypted: isEncrypted, storeUUID: storeUUID, generation: generation, sequence: sequence,
            generationTag: tag, databaseProfile: profile, attachmentFormat: format, attachmentNames: names,
            slotPlaces: places, authenticationCode: code)
    }

    /// All 1,024 bytes. Throws `encryptionUnavailable` (501).
    package var bytes: [UInt8] { get throws(CofferError) { try authenticatedBytes + authenticationCode } }

    /// What the authentication code covers: everything before it.
    var authenticatedBytes: [UInt8] {
        get throws(CofferError) {
            var writer = FieldWriter()
            writer.append(Self.magic)
            writer.append(Self.formatVersion)
            writer.append(UInt16(Self.byteCount))
            writer.append(isEncrypted ? Self.encryptedFlag : 0)
            writer.append(storeUUID.bytes)
            writer.append(generation)
            writer.append(sequence)
            writer.append(generationTag)
            writer.append(databaseProfile.rawValue)
            writer.append(attachmentFormat.rawValue)
            writer.append(attachmentNames.rawValue)
            writer.append(isEncrypted ? Self.keyDerivationSuite : 0)
            writer.pad(to: Self.slotsOffset)
            for slot in slotPlaces { writer.append(slot?.bytes ?? [UInt8](repeating: 0, count: KeySlot.byteCount)) }
            writer.append(try Digest.sha256(of: writer.bytes))
            return writer.bytes
        }
    }
}

/// Reads big-endian fields one after another from bytes whose count the caller has checked.
struct FieldReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    mutating func number<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number {
        bytes(Number.bitWidth / 8).reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }

    mutating func bytes(_ count: Int) -> [UInt8] {
        precondition(rest.count >= count)
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }
}

/// Writes big-endian fields one after another.
struct FieldWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ number: some FixedWidthInteger) {
        for shift in stride(from: number.bitWidth - 8, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }

    mutating func append(_ more: [UInt8]) { bytes += more }

    /// Fills with zeros up to `count` bytes in all.
    mutating func pad(to count: Int) {
        precondition(bytes.count <= count)
        bytes += [UInt8](repeating: 0, count: count - bytes.count)
    }
}
