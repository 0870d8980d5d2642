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
    /// Nil where the store isn't encrypted: pages have no codes there.
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
            let damaged = try suspectPages(among: suspects).filter { number in
                // A copying that was cut short may have torn a page that the log has still.
                !log.pages.contains(UInt32(clamping: number)) && number <= log.pageCount ?? .max
            }
            let checkedCount = pageCount - (pageCount >= Self.lockPage ? 1 : 0)
            let isSaltDamaged = damaged.count > 1 && damaged.count == checkedCount
            result.findings += (isSaltDamaged ? [1] : damaged).map { number in
                VerificationFinding(
                    .page, "page \(number) of \(Generation.databaseName)", words(isSaltDamaged), page: number)
            }
            result.findings += log.findings
        }
        return result
    }

    private func words(_ isSaltDamaged: Bool) -> String {
        if isSaltDamaged {
            return "its first 16 bytes, the salt, are not those that the codes of all pages were made with"
        }
        return key == nil ? "it is no page of SQLite's" : "its code is not that of its bytes"
    }

    /// Nil where pages have no codes, or the file is too short to say under which salt.
    private func authenticator() throws(CofferError) -> PageAuthenticator? {
        guard let key else { return nil }
        let salt = try bytes(PageAuthenticator.saltByteCount, at: 0)
        guard let salt, salt.count == PageAuthenticator.saltByteCount else { return nil }
        return try PageAuthenticator(key: key, salt: salt)
    }

    private func suspectPages(byteCount: Int) throws(CofferError) -> [Int] {
        let pageCount = byteCount / Self.pageByteCount
        guard let authenticator = try authenticator() else {
            let start = try bytes(Self.sqliteHeader.count, at: 0)
            return pageCount > 0 && start != Self.sqliteHeader ? [1] : []
        }
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
                if number != Self.lockPage,
                    try unsafe !authenticator.isAuthentic(page, number: UInt32(clamping: number))
                {
                    suspects.append(number)
                }
            }
            monitor.advance(byteCount: count)
        }
        return suspects
    }

    /// Those of `numbers` that are damaged, for who keeps others from writing them.
    private func suspectPages(among numbers: [Int]) throws(CofferError) -> [Int] {
        guard !numbers.isEmpty, let authenticator = try authenticator() else { return numbers }
        var suspects: [Int] = []
        for number in numbers {
            let page = try bytes(Self.pageByteCount, at: (number - 1) * Self.pageByteCount)
            // Nobody needs what is behind the file's end.
            if page?.isEmpty == true { continue }
            if let page, try unsafe authenticator.isAuthentic(page.span.bytes, number: UInt32(clamping: number)) {
                continue
            }
            if number != Self.lockPage { suspects.append(number) }
        }
        return suspects
    }

    /// Nil where the disk doesn't give them back.
    private func bytes(_ count: Int, at offset: Int) throws(CofferError) -> [UInt8]? {
        try withoutDamage { () throws(CofferError) in try fileSystem.read(count, from: file, at: offset) }
    }
}
