internal import CofferSealing
internal import CofferVault

/// Checks the pages of a database file, and of its log, one by one and without SQLCipher: 3.4.1 has no call for that, and
/// what reads through a tree of pages stops at the first that is damaged.
///
/// A page that nobody has read since it was written is looked at like any other. Nothing is written.
struct PageVerification {
    let fileSystem: any FileSystem
    let generation: Generation
    /// The database file.
    let file: File
    /// Nil where the store isn't encrypted: pages have no codes there. All that shows without one is a page of zeros in the
    /// place of one that is in use.
    let key: SymmetricKey?
    let monitor: VerificationMonitor

    private static let pageByteCount = PageAuthenticator.pageByteCount
    /// Pages that are read at once: 1 MiB.
    private static let batchSize = 256
    /// SQLite's page for locks, which holds byte 2^30 and is never written.
    private static let lockPage = (1 << 30) / pageByteCount + 1
    private static let sqliteHeader = Array("SQLite format 3\0".utf8)

    struct Result {
        var pageCount = 0
        var findings: [VerificationFinding] = []
    }

    /// - Parameter alone: runs what it is given while nobody copies pages from the log into the file, with the number of
    ///   frames that the log is known to have. A page that looks damaged may have been half written at that moment, and is
    ///   looked at again.
    func run(
        alone: (_ body: (_ frameCount: Int) throws(CofferError) -> Void) throws(CofferError) -> Void
    ) throws(CofferError) -> Result {
        var result = Result()
        let byteCount = try fileSystem.status(of: file).byteCount
        monitor.begin(.pages, byteCount: byteCount)
        let suspects = try suspectPages(byteCount: byteCount)
        try alone { (frameCount) throws(CofferError) in
            let log = try LogVerification(fileSystem: fileSystem, generation: generation, monitor: monitor).run(
                frameCount: frameCount
            ) { () throws(CofferError) in try authenticator() }
            let byteCount = try fileSystem.status(of: file).byteCount
            let pageCount = byteCount / Self.pageByteCount
            result.pageCount = pageCount + log.frameCount
            if byteCount == 0 {
                result.findings.append(VerificationFinding(.structure, Generation.databaseName, "it is empty"))
            } else if byteCount % Self.pageByteCount != 0 && log.pageCount == nil {
                result.findings.append(
                    VerificationFinding(
                        .structure, Generation.databaseName, "it has \(byteCount) bytes, which are no whole pages"))
            }
            let damaged = try damagedPages(among: suspects, log).filter { page in
                // A copying that was cut short may have torn a page that the log has still.
                log.offsets[page.number] == nil && Int(page.number) <= log.pageCount ?? .max
            }
            let checkedCount = pageCount - (pageCount >= Self.lockPage ? 1 : 0)
            let isSaltDamaged = key != nil && damaged.count > 1 && damaged.count == checkedCount
            // Without the salt every page fails the check, but one that is all zeros is damaged under any salt.
            for page in damaged where !isSaltDamaged || page.number == 1 || page.isZero {
                result.findings.append(
                    VerificationFinding(
                        .page, "page \(page.number) of \(Generation.databaseName)",
                        detail(page, isSaltDamaged: isSaltDamaged), page: Int(page.number)))
            }
            result.findings += log.findings
        }
        return result
    }

    /// A page that is not what was written.
    private struct DamagedPage {
        let number: UInt32
        let isZero: Bool
    }

    private func detail(_ page: DamagedPage, isSaltDamaged: Bool) -> String {
        if page.isZero {
            let meaning = key == nil ? ZeroPage.meaningWhereUsed : ZeroPage.meaningWhereEncrypted
            guard page.number == 1, key != nil else { return meaning }
            return "\(meaning). With it the salt is lost, without which no other page can be checked"
        }
        if isSaltDamaged && page.number == 1 {
            return "its first 16 bytes, the salt, are not those that the codes of all pages were made with"
        }
        return key == nil ? "it is not a page of SQLite's" : "its code is not that of its bytes"
    }

    /// Nil where pages have no codes, or the file is too short to say under which salt.
    private func authenticator() throws(CofferError) -> PageAuthenticator? {
        guard let key else { return nil }
        let salt = try bytes(PageAuthenticator.saltByteCount, at: 0)
        guard let salt, salt.count == PageAuthenticator.saltByteCount else { return nil }
        return try PageAuthenticator(key: key, salt: salt)
    }

    /// Pages that look damaged to someone who doesn't keep others from writing them.
    private func suspectPages(byteCount: Int) throws(CofferError) -> [Int] {
        let pageCount = byteCount / Self.pageByteCount
        let authenticator = try authenticator()
        var suspects: [Int] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Self.batchSize * Self.pageByteCount, alignment: 4096)
        defer { unsafe buffer.deallocate() }
        for first in stride(from: 1, through: pageCount, by: Self.batchSize) {
            try monitor.checkCancelled()
            let last = min(first + Self.batchSize - 1, pageCount)
            let count = try withoutDamage { () throws(CofferError) in
                try unsafe fileSystem.read(into: buffer, from: file, at: (first - 1) * Self.pageByteCount)
            }
            guard let count else {
                suspects += Array(first...last)
                continue
            }
            // It may have been cut meanwhile, by who gives free pages back.
            for number in first...last where (number - first + 1) * Self.pageByteCount <= count {
                let start = (number - first) * Self.pageByteCount
                let page = unsafe UnsafeRawBufferPointer(rebasing: buffer[start..<start + Self.pageByteCount])
                guard number != Self.lockPage else { continue }
                let isSuspect =
                    if key == nil {
                        unsafe ZeroPage.isZero(page) || number == 1 && !page.starts(with: Self.sqliteHeader)
                    } else {
                        try unsafe authenticator?.isAuthentic(page, number: UInt32(clamping: number)) != true
                    }
                if isSuspect { suspects.append(number) }
            }
            monitor.advance(byteCount: count)
        }
        return suspects
    }

    /// Those of `numbers` that are damaged, for a caller that keeps others from writing them.
    private func damagedPages(
        among numbers: [Int], _ log: LogVerification.Result
    ) throws(CofferError) -> [DamagedPage] {
        guard !numbers.isEmpty else { return [] }
        let authenticator = try authenticator()
        var damaged: [DamagedPage] = []
        for number in numbers where number != Self.lockPage {
            let page = try bytes(Self.pageByteCount, at: (number - 1) * Self.pageByteCount)
            // Nobody needs what is behind the file's end.
            if page?.isEmpty == true { continue }
            let id = UInt32(clamping: number)
            let isZero = page.map { $0.count == Self.pageByteCount && ZeroPage.isZero($0) } ?? false
            if key == nil {
                if isZero, number > 1, try !isUsedWithContent(id, log) { continue }
                if let page, !isZero, number > 1 || page.starts(with: Self.sqliteHeader) { continue }
            } else if let page, try unsafe authenticator?.isAuthentic(page.span.bytes, number: id) == true {
                continue
            }
            damaged.append(DamagedPage(number: id, isZero: isZero))
        }
        return damaged
    }

    /// Whether a page of an unencrypted store can't be all zeros and sound. A free page may be, and the end of a long row:
    /// what the row should hold is for its own check to say.
    private func isUsedWithContent(_ number: UInt32, _ log: LogVerification.Result) throws(CofferError) -> Bool {
        let map = PageMap.page(of: number, usableByteCount: Self.pageByteCount)
        if number == map { return true }
        let bytes =
            if let logged = log.offsets[map] {
                try withoutDamage { () throws(CofferError) -> [UInt8]? in
                    guard let log = try WriteAheadLog(fileSystem, generation) else { return nil }
                    return try fileSystem.read(Self.pageByteCount, from: log.file, at: logged)
                } ?? nil
            } else {
                try self.bytes(Self.pageByteCount, at: (Int(map) - 1) * Self.pageByteCount)
            }
        guard let bytes, bytes.count == Self.pageByteCount else { return false }
        switch PageMap.use(of: number, in: bytes, at: map) {
        case .root, .tree: return true
        case .free, .overflow, .map, .unknown: return false
        }
    }

    /// Nil where the disk doesn't give them back.
    private func bytes(_ count: Int, at offset: Int) throws(CofferError) -> [UInt8]? {
        try withoutDamage { () throws(CofferError) in try fileSystem.read(count, from: file, at: offset) }
    }
}

/// A page that is all zeros.
enum ZeroPage {
    private static let causes =
        "it was never written, or was lost to the file system, to a copy with holes, or to an early version of Coffer"

    /// What it means in an encrypted store.
    static let meaningWhereEncrypted = "it is all zeros, which an encrypted page never is: \(causes)"
    /// What it means in an unencrypted store, of a page that a table, an index or the map of pages needs.
    static let meaningWhereUsed = "it is all zeros, which a page in use never is: \(causes)"

    /// Whether all of `bytes` are zero.
    static func isZero(_ bytes: some Sequence<UInt8>) -> Bool { bytes.allSatisfy { $0 == 0 } }
}
