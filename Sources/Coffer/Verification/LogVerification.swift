internal import CofferSealing
internal import CofferVault

/// Checks the pages in a write-ahead log, as sqlite.org/fileformat2.html section 4 has it.
///
/// Where the log's own checksums end, SQLite ends it, as after a crash. Of a log that a killed process left nobody knows
/// whether it had more; of one that this process writes it is known. Checked is every page before that: whoever can make
/// checksums right has no key for the page's code.
struct LogVerification {
    let fileSystem: any FileSystem
    let generation: Generation
    let monitor: VerificationMonitor

    private static let name = Generation.databaseName + "-wal"
    private static let headerByteCount = 32
    private static let frameHeaderByteCount = 24
    private static let magic: UInt32 = 0x377f_0682

    struct Result {
        /// Frames up to the last commit.
        var frameCount = 0
        /// The pages that a commit has put there, each with the right code.
        var pages: Set<UInt32> = []
        /// How many pages the database has after the last commit; nil when there is none in the log.
        var pageCount: Int?
        var findings: [VerificationFinding] = []
    }

    /// - Parameters:
    ///   - frameCount: how many the log is known to have at least.
    ///   - makeAuthenticator: for the pages of the file that the log belongs to; nil where they have no codes.
    func run(
        frameCount: Int, authenticator makeAuthenticator: () throws(CofferError) -> PageAuthenticator?
    ) throws(CofferError) -> Result {
        var result = Result()
        let isReadable: Void? = try withoutDamage { () throws(CofferError) in
            try read(makeAuthenticator(), &result)
        }
        if isReadable == nil {
            result.findings.append(VerificationFinding(.structure, Self.name, "it can't be read to its end"))
        } else if result.frameCount < frameCount {
            result.findings.append(
                VerificationFinding(
                    .structure, Self.name,
                    "it ends after \(result.frameCount) pages, and \(frameCount) were committed to it"))
        }
        return result
    }

    private func read(
        _ authenticator: consuming PageAuthenticator?, _ result: inout Result
    ) throws(CofferError) {
        guard let status = try fileSystem.status(of: Self.name, in: generation.directory), status.byteCount > 0 else {
            return
        }
        let file = try fileSystem.openFile(Self.name, in: generation.directory)
        let header = Words(try fileSystem.read(Self.headerByteCount, from: file, at: 0))
        guard header.count == Self.headerByteCount / 4, header[0] & ~1 == Self.magic,
            header[2] == UInt32(PageAuthenticator.pageByteCount)
        else { return }
        var checksum = Checksum(isBigEndian: header[0] & 1 == 1)
        checksum.add(header.bytes[..<24])
        guard checksum.matches(header[6], header[7]) else { return }

        // Frames after the last commit count for nothing.
        var pending = Result()
        var position = Self.headerByteCount
        let frameByteCount = Self.frameHeaderByteCount + PageAuthenticator.pageByteCount
        while true {
            try monitor.checkCancelled()
            let bytes = try fileSystem.read(frameByteCount, from: file, at: position)
            let frame = Words(Array(bytes.prefix(Self.frameHeaderByteCount)))
            guard bytes.count == frameByteCount, frame[2] == header[4], frame[3] == header[5] else { break }
            let page = bytes[Self.frameHeaderByteCount...]
            checksum.add(bytes[..<8])
            checksum.add(page)
            guard checksum.matches(frame[4], frame[5]) else { break }
            pending.frameCount += 1
            if try unsafe authenticator?.isAuthentic(page.span.bytes, number: frame[0]) ?? true {
                pending.pages.insert(frame[0])
            } else {
                pending.pages.remove(frame[0])
                pending.findings.append(
                    VerificationFinding(
                        .page, "page \(frame[0]) in \(Self.name)", "its code is not that of its bytes",
                        page: Int(frame[0])))
            }
            if frame[1] != 0 {
                result.frameCount += pending.frameCount
                result.pages.formUnion(pending.pages)
                result.findings += pending.findings
                result.pageCount = Int(frame[1])
                pending = Result()
            }
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
