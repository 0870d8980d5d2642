internal import CofferSQLite
package import CofferSealing
package import CofferVault

/// Goes through the frames of a write-ahead log, as sqlite.org/fileformat2.html section 4 has it. Nothing is written.
///
/// A frame's checksum goes on from the one before it. It is compared here with the one that stands there, so that a frame
/// which was changed is alone in having a wrong one: whoever wants the frames up to the first wrong one ends there.
///
/// A frame of a sealed log is opened first, its header and its page at once. Of one that doesn't open nothing is known, nor
/// which checksum the next goes on from.
package struct WriteAheadLog {
    package let fileSystem: any FileSystem
    package let file: File
    private let protection: DatabaseProtection
    private let header: Words
    /// Whether the log's header is whole, or, of a sealed log, was made again from its first frame. SQLite takes a log
    /// without one for empty.
    package let hasHeader: Bool
    /// Whether a sealed header opens, and says what that of no store's log does.
    package let isHeaderImpossible: Bool

    package static let name = Generation.databaseName + "-wal"
    private static let headerByteCount = 32
    private static let frameHeaderByteCount = 24
    private static let magic: UInt32 = 0x377f_0682
    private static let version: UInt32 = 3_007_000

    /// One version of a page.
    package struct Frame {
        package var page: UInt32
        /// How many pages the database has after the commit that this frame ends; 0 where it ends none.
        package var pageCount: UInt32
        /// Where in the file the page's bytes are; of a sealed log, where the frame begins.
        package var offset: Int
        /// Whether it was written since the log was begun; behind its end there may be others.
        package var isCurrent: Bool
        /// Whether its checksum is right.
        package var isIntact: Bool
        /// Whether the page is what was written there, since its frame was sealed with it.
        package var isSealed = false
        /// How many frames the log began with that were on the disk for good when this one was sealed.
        package var syncedFrameCount = 0
    }

    /// Whether frames are sealed.
    package var isSealed: Bool {
        if case .sealed = protection { true } else { false }
    }

    /// - Returns: nil if there is no log, or an empty one: of no bytes, or emptied by a checkpoint that kept its
    ///   length.
    package init?(
        _ fileSystem: any FileSystem, _ generation: Generation, _ protection: DatabaseProtection
    ) throws(CofferError) {
        guard let status = try fileSystem.status(of: Self.name, in: generation.directory), status.kind == .file,
            status.byteCount > 0
        else { return nil }
        self.fileSystem = fileSystem
        self.protection = protection
        file = try fileSystem.openFile(Self.name, in: generation.directory)
        let start = try fileSystem.read(Self.headerByteCount, from: file, at: 0)
        if start == Connection.emptiedLogHeader { return nil }
        guard case .sealed(let key, let binding) = protection else {
            header = Words(start)
            hasHeader = Self.isHeader(header)
            isHeaderImpossible = false
            return
        }
        var codec = try SealedPageCodec(key: key, binding: binding)
        let sealed = try fileSystem.read(SealedPageCodec.logHeaderByteCount, from: file, at: 0)
        if sealed.count == SealedPageCodec.logHeaderByteCount, let opened = try codec.openLogHeader(sealed) {
            header = Words(opened)
            hasHeader = Self.isHeader(header) && header[1] == Self.version
            isHeaderImpossible = !hasHeader
        } else {
            let rebuilt = try Self.headerOfFirstFrame(fileSystem, file, &codec)
            header = rebuilt ?? Words([])
            hasHeader = rebuilt != nil
            isHeaderImpossible = false
        }
    }

    private static func isHeader(_ header: Words) -> Bool {
        guard header.count == headerByteCount / 4, header[0] & ~1 == magic,
            header[2] == UInt32(PageAuthenticator.pageByteCount)
        else { return false }
        var checksum = Checksum(isBigEndian: header[0] & 1 == 1)
        checksum.add(header.bytes[..<24])
        return checksum.matches(header[6], header[7])
    }

    /// The header of a sealed log, of which a power cut left a part, or one from before: all that it says is in the first
    /// frame, too.
    private static func headerOfFirstFrame(
        _ fileSystem: any FileSystem, _ file: File, _ codec: inout SealedPageCodec
    ) throws(CofferError) -> Words? {
        let bytes = try fileSystem.read(
            SealedPageCodec.frameByteCount, from: file, at: SealedPageCodec.logHeaderByteCount)
        guard bytes.count == SealedPageCodec.frameByteCount, let frame = try codec.openFrame(1, bytes) else {
            return nil
        }
        let words = Words(frame.header)
        for isBigEndian in [false, true] {
            var header = Words(numbers: [
                magic | (isBigEndian ? 1 : 0), version, UInt32(SealedPageCodec.pageByteCount),
                frame.checkpointSequence, words[2], words[3],
            ])
            var checksum = Checksum(isBigEndian: isBigEndian)
            checksum.add(header.bytes[...])
            header = Words(numbers: (0..<6).map { header[$0] } + [checksum.first, checksum.second])
            checksum.add(frame)
            if checksum.matches(words[4], words[5]) { return header }
        }
        return nil
    }

    /// Hands each frame with its page to `body`, until that says false.
    ///
    /// Of a sealed log they are opened; of a frame that doesn't open, `body` gets all bytes as they stand there.
    ///
    /// - Throws: what `body` throws; as reading does.
    package func forEachFrame(
        _ body: (Frame, ArraySlice<UInt8>) throws(CofferError) -> Bool
    ) throws(CofferError) {
        if case .sealed(let key, let binding) = protection {
            return try forEachSealedFrame(SealedPageCodec(key: key, binding: binding), body)
        }
        let frameByteCount = Self.frameHeaderByteCount + PageAuthenticator.pageByteCount
        // What the header said is in every frame once more, but for the order of bytes: little, where it isn't known.
        var salts = hasHeader ? (header[4], header[5]) : nil
        var checksum = Checksum(isBigEndian: hasHeader && header[0] & 1 == 1)
        checksum.go(onFrom: header[6], header[7])
        var position = Self.headerByteCount
        while true {
            let bytes = try fileSystem.read(frameByteCount, from: file, at: position)
            guard bytes.count == frameByteCount else { return }
            let words = Words(Array(bytes.prefix(Self.frameHeaderByteCount)))
            let page = bytes[Self.frameHeaderByteCount...]
            checksum.add(bytes[..<8])
            checksum.add(page)
            let current = salts ?? (words[2], words[3])
            salts = current
            let isCurrent = current == (words[2], words[3])
            let frame = Frame(
                page: words[0], pageCount: words[1], offset: position + Self.frameHeaderByteCount, isCurrent: isCurrent,
                isIntact: isCurrent && checksum.matches(words[4], words[5]))
            guard try body(frame, page) else { return }
            checksum.go(onFrom: words[4], words[5])
            position += frameByteCount
        }
    }

    private func forEachSealedFrame(
        _ codec: consuming SealedPageCodec, _ body: (Frame, ArraySlice<UInt8>) throws(CofferError) -> Bool
    ) throws(CofferError) {
        var codec = codec
        var salts = hasHeader ? (header[4], header[5]) : nil
        var checksum = Checksum(isBigEndian: hasHeader && header[0] & 1 == 1)
        checksum.go(onFrom: header[6], header[7])
        var isChained = hasHeader
        var index: UInt32 = 1
        while true {
            let offset = Self.sealedFrameOffset(index)
            let bytes = try fileSystem.read(SealedPageCodec.frameByteCount, from: file, at: offset)
            guard bytes.count == SealedPageCodec.frameByteCount else { return }
            guard let opened = try codec.openFrame(index, bytes) else {
                let frame = Frame(page: 0, pageCount: 0, offset: offset, isCurrent: false, isIntact: false)
                guard try body(frame, bytes[...]) else { return }
                isChained = false
                index += 1
                continue
            }
            let words = Words(opened.header)
            checksum.add(opened)
            let current = salts ?? (words[2], words[3])
            salts = current
            let isCurrent = current == (words[2], words[3])
            let frame = Frame(
                page: words[0], pageCount: words[1], offset: offset, isCurrent: isCurrent,
                isIntact: isCurrent && (!isChained || checksum.matches(words[4], words[5])),
                isSealed: words[0] != 1 || PageProof.isFirstPage(opened.page),
                syncedFrameCount: Int(opened.syncedFrameCount))
            guard try body(frame, opened.page[...]) else { return }
            checksum.go(onFrom: words[4], words[5])
            isChained = true
            index += 1
        }
    }

    private static func sealedFrameOffset(_ index: UInt32) -> Int {
        SealedPageCodec.logHeaderByteCount + (Int(index) - 1) * SealedPageCodec.frameByteCount
    }

    /// The number, from 1, of the sealed frame that begins there.
    static func sealedFrameIndex(at offset: Int) -> UInt32 {
        UInt32(clamping: (offset - SealedPageCodec.logHeaderByteCount) / SealedPageCodec.frameByteCount + 1)
    }
}

/// Big-endian numbers of 32 bits.
private struct Words {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    init(numbers: [UInt32]) {
        bytes = numbers.flatMap { number in (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }
    }

    var count: Int { bytes.count / 4 }

    subscript(index: Int) -> UInt32 {
        guard index < count else { return 0 }
        return bytes[index * 4..<index * 4 + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }
}

/// The log's cumulative checksum.
private struct Checksum {
    let isBigEndian: Bool
    private(set) var first: UInt32 = 0
    private(set) var second: UInt32 = 0

    init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

    mutating func go(onFrom first: UInt32, _ second: UInt32) { (self.first, self.second) = (first, second) }

    /// Takes a multiple of 8 bytes.
    mutating func add(_ bytes: ArraySlice<UInt8>) {
        unsafe bytes.withUnsafeBytes { bytes in
            for offset in stride(from: 0, to: bytes.count - 7, by: 8) {
                first &+= unsafe word(bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)) &+ second
                second &+= unsafe word(bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)) &+ first
            }
        }
    }

    /// Takes what counts of a frame: page number and length, and the page with the reserve that SQLite sees.
    mutating func add(_ frame: SealedPageCodec.Frame) {
        add(frame.header[..<8])
        add(frame.page[...])
        add([UInt8](repeating: 0, count: SealedPageCodec.pageByteCount - frame.page.count)[...])
    }

    func matches(_ first: UInt32, _ second: UInt32) -> Bool { self.first == first && self.second == second }

    private func word(_ stored: UInt32) -> UInt32 {
        isBigEndian ? UInt32(bigEndian: stored) : UInt32(littleEndian: stored)
    }
}
