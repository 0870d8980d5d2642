/// Opens and seals the pages, frames and log headers of a sealed database file (docs/FORMAT.md, "Sealed pages"):
/// XAES-256-GCM, c2sp.org/XAES-256-GCM. For verification and salvage, which read files without SQLite.
///
/// It shares nothing with what SQLite reads and writes through, so that each proves the other. For one thread at a time.
package struct SealedPageCodec: ~Copyable {
    package static let pageByteCount = 4096
    /// The bytes of a page that SQLite uses; behind them are nonce and tag.
    package static let usableByteCount = 4056
    /// A frame of the log, as it is stored.
    package static let frameByteCount = 4128
    /// What the log begins with, as it is stored.
    package static let logHeaderByteCount = 72

    /// What a frame of the log says.
    package struct Frame: Sendable, Equatable {
        /// SQLite's own header: page number, database size after a commit or 0, two salts, two checksums, big-endian. 24 bytes.
        package let header: [UInt8]
        /// The checkpoint sequence of the log's header when the frame was written.
        package let checkpointSequence: UInt32
        /// How many frames the log began with that had been put on the disk, when this one was sealed.
        package let syncedFrameCount: UInt32
        /// ``SealedPageCodec/usableByteCount`` bytes.
        package let page: [UInt8]

        package init(header: [UInt8], checkpointSequence: UInt32, syncedFrameCount: UInt32, page: [UInt8]) {
            self.header = header
            self.checkpointSequence = checkpointSequence
            self.syncedFrameCount = syncedFrameCount
            self.page = page
        }
    }

    /// What a message is: the byte that is authenticated with it.
    private enum Kind: UInt8 { case page = 1, frame, logHeader }

    private var cipher: ExtendedNonceCipher
    private let context: [UInt8]

    private static let frameHeaderByteCount = 24
    private static let openedLogHeaderByteCount = 32
    private static let label = Array("coffer/v1/page\0".utf8)

    /// Throws `invalidArgument` (400) for a password, `encryptionUnavailable` (501).
    package init(key: SymmetricKey, binding: SealedPageBinding) throws(CofferError) {
        cipher = try ExtendedNonceCipher(key: key)
        context = Self.label + binding.bytes
    }

    // MARK: Opening

    /// What SQLite sees of page `number`, counted from 1, without its reserve; nil if it doesn't authenticate. `page` is
    /// 4096 bytes.
    package mutating func openPage(_ number: UInt32, _ page: [UInt8]) throws(CofferError) -> [UInt8]? {
        precondition(page.count == Self.pageByteCount, "a page has 4096 bytes")
        return try open(.page, number, page)
    }

    /// What frame `index`, counted from 1, says; nil if it doesn't authenticate. `frame` is 4128 bytes.
    ///
    /// That it belongs to the log as it is now is for the caller to see: by salts and checksums, which chain the frames.
    package mutating func openFrame(_ index: UInt32, _ frame: [UInt8]) throws(CofferError) -> Frame? {
        precondition(frame.count == Self.frameByteCount, "a frame has 4128 bytes")
        guard let opened = try open(.frame, index, frame) else { return nil }
        let numbers = Self.frameHeaderByteCount
        return Frame(
            header: Array(opened[..<numbers]), checkpointSequence: Self.number(opened[numbers...].prefix(4)),
            syncedFrameCount: Self.number(opened[(numbers + 4)...].prefix(4)), page: Array(opened[(numbers + 8)...]))
    }

    /// SQLite's own log header, 32 bytes; nil if it doesn't authenticate. `header` is 72 bytes.
    package mutating func openLogHeader(_ header: [UInt8]) throws(CofferError) -> [UInt8]? {
        precondition(header.count == Self.logHeaderByteCount, "a log's header has 72 bytes")
        return try open(.logHeader, 0, header)
    }

    private mutating func open(_ kind: Kind, _ number: UInt32, _ sealed: [UInt8]) throws(CofferError) -> [UInt8]? {
        let end = sealed.count - ExtendedNonceCipher.tagByteCount - ExtendedNonceCipher.nonceByteCount
        let nonce = Array(sealed[end...].prefix(ExtendedNonceCipher.nonceByteCount))
        let message = sealed[..<end] + sealed.suffix(ExtendedNonceCipher.tagByteCount)
        return try cipher.open(message, nonce: nonce, additionalData: additionalData(kind, number))
    }

    // MARK: Sealing

    /// A page as it is stored. `nonce` is 24 bytes that are used only once under the key.
    package mutating func sealPage(
        _ number: UInt32, _ page: [UInt8], nonce: [UInt8]
    ) throws(CofferError) -> [UInt8] {
        precondition(page.count == Self.usableByteCount, "SQLite uses 4056 bytes of a page")
        return try seal(.page, number, page, nonce)
    }

    /// A frame as it is stored. `nonce` is 24 bytes that are used only once under the key.
    package mutating func sealFrame(
        _ index: UInt32, _ frame: Frame, nonce: [UInt8]
    ) throws(CofferError) -> [UInt8] {
        precondition(frame.header.count == Self.frameHeaderByteCount && frame.page.count == Self.usableByteCount)
        let numbers = Self.bytes(frame.checkpointSequence) + Self.bytes(frame.syncedFrameCount)
        return try seal(.frame, index, frame.header + numbers + frame.page, nonce)
    }

    /// A log header as it is stored. `nonce` is 24 bytes that are used only once under the key.
    package mutating func sealLogHeader(_ header: [UInt8], nonce: [UInt8]) throws(CofferError) -> [UInt8] {
        precondition(header.count == Self.openedLogHeaderByteCount, "SQLite's log header has 32 bytes")
        return try seal(.logHeader, 0, header, nonce)
    }

    private mutating func seal(
        _ kind: Kind, _ number: UInt32, _ plaintext: [UInt8], _ nonce: [UInt8]
    ) throws(CofferError) -> [UInt8] {
        let sealed = try cipher.seal(plaintext, nonce: nonce, additionalData: additionalData(kind, number))
        return sealed.dropLast(ExtendedNonceCipher.tagByteCount) + nonce
            + sealed.suffix(ExtendedNonceCipher.tagByteCount)
    }

    // MARK: Numbers

    private func additionalData(_ kind: Kind, _ number: UInt32) -> [UInt8] {
        context + [kind.rawValue] + Self.bytes(number)
    }

    private static func bytes(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }
}

/// What a sealed page belongs to, besides its kind and number: a page of another store, or of another generation of the same
/// one, doesn't open.
package struct SealedPageBinding: Sendable, Equatable {
    /// 16 bytes.
    package let storeUUID: [UInt8]
    package let generation: UInt64
    /// The random number in the name of the generation's directory.
    package let generationTag: UInt64

    package init(storeUUID: [UInt8], generation: UInt64, generationTag: UInt64) {
        precondition(storeUUID.count == Self.uuidByteCount, "a UUID has 16 bytes")
        self.storeUUID = storeUUID
        self.generation = generation
        self.generationTag = generationTag
    }

    private static let uuidByteCount = 16

    /// UUID, generation and tag, as they are authenticated with every page: 32 bytes.
    package var bytes: [UInt8] { storeUUID + bigEndian(generation) + bigEndian(generationTag) }

    private func bigEndian(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
    }
}
