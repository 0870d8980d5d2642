package import CofferSealing

/// Where in an attachment's file its content is: in chunks of 16384 bytes, of which the last is always shorter.
///
/// Encrypted, a header comes before the first chunk and a tag after each, as c2sp.org/chunked-encryption has it. Plain
/// content is taken for chunks of the same size without either.
package struct ContentLayout: Sendable {
    let byteCount: Int
    let isEncrypted: Bool

    /// Bytes of content in each chunk but the last.
    static let chunkByteCount = Cobblestone.chunkByteCount

    /// How many chunks come from the system at once: 256 KiB, which every reader may hold. More was not faster.
    static let chunksPerCall = 16

    /// How many bytes go to the system at once, for which every writer may hold a little more. All but the last begin at a
    /// multiple of it: then the system keeps a file in memory in large parts, which are faster to write and to read.
    static let bytesPerWrite = 1 << 18

    /// Beyond it no message has a valid length; a row that says so was changed.
    static let maximumByteCount = Cobblestone.plaintextByteLimit

    var headerByteCount: Int { isEncrypted ? Cobblestone.headerByteCount : 0 }
    var storedChunkByteCount: Int { isEncrypted ? Cobblestone.sealedChunkByteCount : Self.chunkByteCount }
    var tagByteCount: Int { storedChunkByteCount - Self.chunkByteCount }

    var lastChunk: Int { byteCount / Self.chunkByteCount }
    var fileByteCount: Int { headerByteCount + byteCount + (lastChunk + 1) * tagByteCount }

    /// The chunks that hold the content in `range`, which isn't empty.
    func chunks(holding range: Range<Int>) -> Range<Int> {
        range.lowerBound / Self.chunkByteCount..<(range.upperBound - 1) / Self.chunkByteCount + 1
    }

    /// Where in the file `chunks` are.
    func stored(_ chunks: Range<Int>) -> Range<Int> {
        let start = headerByteCount + chunks.lowerBound * storedChunkByteCount
        return start..<min(start + chunks.count * storedChunkByteCount, fileByteCount)
    }

    /// Which part of the content `chunk` holds.
    func content(of chunk: Int) -> Range<Int> {
        let start = chunk * Self.chunkByteCount
        return start..<min(start + Self.chunkByteCount, byteCount)
    }
}

/// Some chunks of a file as they are stored, in memory.
struct ChunkWindow: ~Copyable {
    /// How many it can hold.
    let chunkCount: Int
    private let layout: ContentLayout
    private let buffer: RawBuffer
    private var chunks = 0..<0
    /// Where in the buffer the stored bytes begin: as far from a page's start as they are in the file. The system copies
    /// from whole pages, and much faster to a place of the same alignment.
    private var offset = 0

    private static let alignment = RawBuffer.alignment

    init(_ layout: ContentLayout, chunkCount: Int) {
        self.layout = layout
        self.chunkCount = chunkCount
        buffer = RawBuffer(byteCount: chunkCount * layout.storedChunkByteCount + Self.alignment)
    }

    func holds(_ chunk: Int) -> Bool { chunks.contains(chunk) }

    /// Where the stored bytes of `chunks` belong.
    mutating func fill(with chunks: Range<Int>) -> UnsafeMutableRawBufferPointer {
        self.chunks = chunks
        let stored = layout.stored(chunks)
        offset = stored.lowerBound % Self.alignment
        return unsafe buffer[offset..<offset + stored.count]
    }

    /// The stored bytes of a chunk that it holds.
    subscript(chunk: Int) -> UnsafeMutableRawBufferPointer {
        precondition(holds(chunk), "not in the window")
        let start = layout.stored(chunks).lowerBound - offset
        let stored = layout.stored(chunk..<chunk + 1)
        return unsafe buffer[stored.lowerBound - start..<stored.upperBound - start]
    }
}

/// How the files of one generation are encrypted.
struct AttachmentEncryption: Sendable {
    let key: SymmetricKey
    /// Binds each file to its store and generation.
    let context: [UInt8]

    /// Nil when the store is not encrypted.
    init?(_ manifest: UnlockedManifest) throws(CofferError) {
        guard let key = try manifest.key(for: .attachments) else { return nil }
        self.key = key
        context = KeyLabel.subkey(
            for: "attachment", of: manifest.manifest.storeUUID, generation: manifest.manifest.generation)
    }
}

/// How the attachment files of one generation are called.
package struct AttachmentNaming: Sendable {
    /// Nil when files are named by the SHA-1 itself.
    private let key: SymmetricKey?

    /// Which form names have.
    var kind: Manifest.AttachmentNames { key == nil ? .sha1 : .keyed }

    private static let suffix = ".blob"

    package init(_ manifest: UnlockedManifest) throws(CofferError) {
        switch manifest.manifest.attachmentNames {
        case .sha1: key = nil
        case .keyed: key = try manifest.key(for: .names)
        }
    }

    /// The name of the file with the content of this SHA-1: in lower-case hex the SHA-1, or where names are keyed its
    /// HMAC-SHA-256, and `.blob`.
    package func name(of sha1: [UInt8]) throws(CofferError) -> String {
        precondition(sha1.count == DigestAlgorithm.sha1.byteCount, "a SHA-1 has 20 bytes")
        guard let key else { return Self.plainName(of: sha1) }
        return hexadecimal(try key.authenticationCode(for: sha1)) + Self.suffix
    }

    static func plainName(of sha1: [UInt8]) -> String { name(spelling: sha1) }

    /// The name with these bytes in hex.
    static func name(spelling digest: [UInt8]) -> String { hexadecimal(digest) + suffix }

    /// The SHA-1 in a well-formed name, from which it can't be told where names are keyed: nil then.
    package func sha1(of name: String) -> [UInt8]? { key == nil ? Self.digest(in: name, .sha1) : nil }

    func isWellFormed(_ name: String) -> Bool { Self.isWellFormed(name, in: kind) }

    /// How many bytes a name spells in hex.
    static func digestByteCount(in names: Manifest.AttachmentNames) -> Int {
        switch names {
        case .sha1: DigestAlgorithm.sha1.byteCount
        case .keyed: DigestAlgorithm.sha256.byteCount
        }
    }

    /// The bytes that a well-formed name spells; nil for any other.
    static func digest(in name: String, _ names: Manifest.AttachmentNames) -> [UInt8]? {
        guard isWellFormed(name, in: names) else { return nil }
        let count = digestByteCount(in: names)
        var digits = name.utf8.makeIterator()
        return [UInt8](capacity: count) { output in
            for _ in 0..<count {
                guard let high = digits.next()?.hexDigitValue, let low = digits.next()?.hexDigitValue else { return }
                output.append(high << 4 | low)
            }
        }
    }

    /// Whether an attachment's file may be called so; nothing else in `attachments/` is ever taken for one.
    static func isWellFormed(_ name: String, in names: Manifest.AttachmentNames) -> Bool {
        let digits = name.utf8.dropLast(suffix.utf8.count)
        return digits.count == 2 * digestByteCount(in: names) && digits.allSatisfy(\.isLowerCaseHexDigit)
            && name.utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    }
}

/// Memory of one's own, uninitialized at first.
@safe struct RawBuffer: ~Copyable, @unchecked Sendable {
    // Sendable: nobody else has the pointer, and where threads share a buffer it is in a lock
    // (test: "An attachment's content is read by many threads at once").
    private let start: UnsafeMutableRawPointer
    let byteCount: Int

    static let alignment = 4096

    init(byteCount: Int) {
        unsafe start = .allocate(byteCount: byteCount, alignment: Self.alignment)
        self.byteCount = byteCount
    }

    deinit { unsafe start.deallocate() }

    /// Valid for as long as this value lives.
    subscript(range: Range<Int>) -> UnsafeMutableRawBufferPointer {
        precondition(range.lowerBound >= 0 && range.upperBound <= byteCount, "outside of the buffer")
        return unsafe UnsafeMutableRawBufferPointer(start: start + range.lowerBound, count: range.count)
    }
}
