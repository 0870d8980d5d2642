internal import CofferSealing
internal import CofferVault

/// Checks the pages in a write-ahead log, as sqlite.org/fileformat2.html section 4 has it.
///
/// Where the log's own checksums end, SQLite ends it, as after a crash; behind that there is nothing to check. What is checked
/// is every page before it: whoever can make checksums right has no key for the page's code.
struct LogVerification {
    let fileSystem: any FileSystem
    let generation: Generation

    private static let headerByteCount = 32
    private static let frameHeaderByteCount = 24
    private static let magic: UInt32 = 0x377f_0682

    /// - Parameter authenticator: for the pages of the file that the log belongs to; nil where they have no codes.
    func run(
        authenticator makeAuthenticator: () throws(CofferError) -> PageAuthenticator?
    ) throws(CofferError) -> PageVerification.Result {
        var result = PageVerification.Result()
        let name = Generation.databaseName + "-wal"
        guard let status = try fileSystem.status(of: name, in: generation.directory), status.byteCount > 0 else {
            return result
        }
        let file = try fileSystem.openFile(name, in: generation.directory)
        let header = Words(try fileSystem.read(Self.headerByteCount, from: file, at: 0))
        guard header.count == Self.headerByteCount / 4, header[0] & ~1 == Self.magic,
            header[2] == UInt32(PageAuthenticator.pageByteCount)
        else { return result }
        var checksum = Checksum(isBigEndian: header[0] & 1 == 1)
        checksum.add(header.bytes[..<24])
        guard checksum.matches(header[6], header[7]), var authenticator = try makeAuthenticator() else { return result }

        // Frames after the last commit count for nothing.
        var uncommitted: [VerificationFinding] = []
        var uncommittedCount = 0
        var position = Self.headerByteCount
        let frameByteCount = Self.frameHeaderByteCount + PageAuthenticator.pageByteCount
        while true {
            let bytes = try fileSystem.read(frameByteCount, from: file, at: position)
            let frame = Words(Array(bytes.prefix(Self.frameHeaderByteCount)))
            guard bytes.count == frameByteCount, frame[2] == header[4], frame[3] == header[5] else { break }
            let page = bytes[Self.frameHeaderByteCount...]
            checksum.add(bytes[..<8])
            checksum.add(page)
            guard checksum.matches(frame[4], frame[5]) else { break }
            uncommittedCount += 1
            let isAuthentic = try unsafe authenticator.isAuthentic(page.span.bytes, number: frame[0])
            if !isAuthentic {
                uncommitted.append(
                    VerificationFinding(
                        .page, "page \(frame[0]) in \(name)", "its code is not that of its bytes", page: Int(frame[0])))
            }
            if frame[1] != 0 {
                result.pageCount += uncommittedCount
                result.findings += uncommitted
                (uncommitted, uncommittedCount) = ([], 0)
            }
            position += frameByteCount
        }
        return result
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
