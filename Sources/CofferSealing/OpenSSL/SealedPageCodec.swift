internal import COpenSSL

/// Opens and seals the pages, frames and log headers of a sealed database file (docs/FORMAT.md, "Sealed pages"):
/// XAES-256-GCM, c2sp.org/XAES-256-GCM. For verification and salvage, which read files without SQLite.
///
/// It shares nothing with what SQLite reads and writes through, so that each proves the other.
@safe package struct SealedPageCodec: ~Copyable {
    package static let pageByteCount = 4096
    /// The bytes of a page that SQLite uses; behind them are nonce and tag.
    package static let usableByteCount = 4056
    /// A frame of the log, as it is stored.
    package static let frameByteCount = 4128
    /// What the log begins with, as it is stored.
    package static let logHeaderByteCount = 72

    /// What a frame of the log says.
    package struct Frame: Sendable {
        /// SQLite's own header: page number, database size after a commit or 0, two salts, two checksums, big-endian. 24 bytes.
        package let header: [UInt8]
        /// The checkpoint sequence of the log's header when the frame was written.
        package let checkpointSequence: UInt32
        /// How many frames the log began with that had been put on the disk, when this one was sealed.
        package let syncedFrameCount: UInt32
        /// ``SealedPageCodec/usableByteCount`` bytes.
        package let page: [UInt8]
    }

    /// Throws `invalidArgument` (400) for a password, `encryptionUnavailable` (501).
    package init(key: SymmetricKey, binding: SealedPageBinding) throws(CofferError) {
        throw CofferError(.encryptionUnavailable, "sealed pages")
    }

    /// What SQLite sees of page `number`, counted from 1; nil if it doesn't authenticate. `page` is 4096 bytes.
    package mutating func openPage(_ number: UInt32, _ page: [UInt8]) throws(CofferError) -> [UInt8]? { nil }

    /// What frame `index`, counted from 1, says; nil if it doesn't authenticate. `frame` is 4128 bytes.
    package mutating func openFrame(_ index: UInt32, _ frame: [UInt8]) throws(CofferError) -> Frame? { nil }

    /// SQLite's own log header, 32 bytes; nil if it doesn't authenticate. `header` is 72 bytes.
    package mutating func openLogHeader(_ header: [UInt8]) throws(CofferError) -> [UInt8]? { nil }
}
