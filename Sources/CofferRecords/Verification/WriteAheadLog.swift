internal import CofferSQLite
package import CofferSealing
package import CofferVault

/// Goes through the frames of a write-ahead log, as sqlite.org/fileformat2.html section 4 has it. Nothing is written.
///
/// A frame's checksum goes on from the one before it. It is compared here with the one that stands there, so that a frame
/// which was changed is alone in having a wrong one: whoever wants the frames up to the first wrong one ends there.
package struct WriteAheadLog {
    package let fileSystem: any FileSystem
    package let file: File
    private let header: Words
    /// Whether the log's header is whole. SQLite takes a log without one for empty.
    package let hasHeader: Bool

    package static let name = Generation.databaseName + "-wal"
    private static let headerByteCount = 32
    private static let frameHeaderByteCount = 24
    private static let magic: UInt32 = 0x377f_0682

    /// One version of a page.
    package struct Frame {
        package var page: UInt32
        /// How many pages the database has after the commit that this frame ends; 0 where it ends none.
        package var pageCount: UInt32
        /// Where in the file the page's bytes are.
        package var offset: Int
        /// Whether it was written since the log was begun; behind its end there may be others.
        package var isCurrent: Bool
        /// Whether its checksum is right.
        package var isIntact: Bool
    }

    /// - Returns: nil if there is no log, or an empty one: of no bytes, or emptied by a checkpoint that kept its
    ///   length.
    package init?(_ fileSystem: any FileSystem, _ generation: Generation) throws(CofferError) {
        guard let status = try fileSystem.status(of: Self.name, in: generation.directory), status.kind == .file,
            status.byteCount > 0
        else { return nil }
        self.fileSystem = fileSystem
        file = try fileSystem.openFile(Self.name, in: generation.directory)
        header = Words(try fileSystem.read(Self.headerByteCount, from: file, at: 0))
        if header.bytes == Connection.emptiedLogHeader { return nil }
        guard header.count == Self.headerByteCount / 4, header[0] & ~1 == Self.magic,
            header[2] == UInt32(PageAuthenticator.pageByteCount)
        else {
            hasHeader = false
            return
        }
        var checksum = Checksum(isBigEndian: header[0] & 1 == 1)
        checksum.add(header.bytes[..<24])
        hasHeader = checksum.matches(header[6], header[7])
    }

    /// Hands each frame with its page to `body`, until that says false.
    ///
    /// - Throws: what `body` throws; as reading does.
    package func forEachFrame(
        _ body: (Frame, ArraySlice<UInt8>) throws(CofferError) -> Bool
    ) throws(CofferError) {
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
}

/// Big-endian numbers of 32 bits.
private struct Words {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var count: Int { bytes.count / 4 }

    subscript(index: Int) -> UInt32 {
        guard index < count else { return 0 }
        return bytes[index * 4..<index * 4 + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }
}

/// The log's cumulative checksum.
private struct Checksum {
    let isBigEndian: Bool
    private var first: UInt32 = 0
    private var second: UInt32 = 0

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

    func matches(_ first: UInt32, _ second: UInt32) -> Bool { self.first == first && self.second == second }

    private func word(_ stored: UInt32) -> UInt32 {
        isBigEndian ? UInt32(bigEndian: stored) : UInt32(littleEndian: stored)
    }
}
