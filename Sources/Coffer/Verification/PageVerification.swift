internal import CofferSealing
internal import CofferVault

/// Checks the pages of a database file, and of its log, one by one and without SQLCipher: 3.4.1 has no call for that, and
/// what reads through a tree of pages stops at the first that is damaged.
///
/// A page that nobody has read since it was written is looked at like any other. Nothing is written.
struct PageVerification {
    let fileSystem: any FileSystem
    let generation: Generation
    /// Nil where the store isn't encrypted: pages have no codes there.
    let key: SymmetricKey?
    let monitor: VerificationMonitor

    private static let pageByteCount = PageAuthenticator.pageByteCount
    /// Pages that are read at once: 1 MiB.
    private static let batchSize = 256
    /// SQLite's page for locks, which holds byte 2^30 and is never written.
    private static let lockPage = (1 << 30) / pageByteCount + 1

    struct Result {
        var pageCount = 0
        var findings: [VerificationFinding] = []
    }

    /// - Parameter alone: runs what it is given while nobody copies pages from the log into the file: a page that looks
    ///   damaged may have been half written at that moment, and is looked at again.
    func run(
        alone: (_ body: () throws(CofferError) -> Void) throws(CofferError) -> Void
    ) throws(CofferError) -> Result {
        var result = Result()
        let file = try fileSystem.openFile(Generation.databaseName, in: generation.directory)
        let byteCount = try fileSystem.status(of: file).byteCount
        monitor.begin(.pages, byteCount: byteCount)
        guard byteCount > 0 else {
            result.findings.append(
                VerificationFinding(.structure, Generation.databaseName, "it is empty"))
            return result
        }
        var suspects = try suspectPages(of: file, byteCount: byteCount)
        result.pageCount = byteCount / Self.pageByteCount
        if !suspects.isEmpty || byteCount % Self.pageByteCount != 0 {
            try alone { () throws(CofferError) in
                suspects = try suspectPages(of: file, among: suspects)
                let byteCount = try fileSystem.status(of: file).byteCount
                if byteCount % Self.pageByteCount != 0 {
                    result.findings.append(
                        VerificationFinding(
                            .structure, Generation.databaseName,
                            "it has \(byteCount) bytes, which are no whole pages"))
                }
            }
        }
        let isSaltDamaged = suspects.count > 1 && suspects.count == result.pageCount
        result.findings += (isSaltDamaged ? [1] : suspects).map { number in
            VerificationFinding(
                .page, "page \(number) of \(Generation.databaseName)", words(isSaltDamaged), page: number)
        }
        try alone { () throws(CofferError) in
            let log = try LogVerification(fileSystem: fileSystem, generation: generation).run(authenticator: {
                () throws(CofferError) in try authenticator(of: file)
            })
            result.pageCount += log.pageCount
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
    private func authenticator(of file: File) throws(CofferError) -> PageAuthenticator? {
        guard let key else { return nil }
        let salt = try fileSystem.read(PageAuthenticator.saltByteCount, from: file, at: 0)
        guard salt.count == PageAuthenticator.saltByteCount else { return nil }
        return try PageAuthenticator(key: key, salt: salt)
    }

    private func suspectPages(of file: File, byteCount: Int) throws(CofferError) -> [Int] {
        guard var authenticator = try authenticator(of: file) else {
            let start = try fileSystem.read(Self.sqliteHeader.count, from: file, at: 0)
            return start == Self.sqliteHeader ? [] : [1]
        }
        var suspects: [Int] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Self.batchSize * Self.pageByteCount, alignment: 4096)
        defer { unsafe buffer.deallocate() }
        let pageCount = byteCount / Self.pageByteCount
        var number = 1
        while number <= pageCount {
            try monitor.checkCancelled()
            let count = try unsafe fileSystem.read(into: buffer, from: file, at: (number - 1) * Self.pageByteCount)
            // Cut meanwhile, by who gives free pages back.
            guard count >= Self.pageByteCount else { break }
            for index in 0..<count / Self.pageByteCount where number + index <= pageCount {
                let page = unsafe UnsafeRawBufferPointer(
                    rebasing: buffer[index * Self.pageByteCount..<(index + 1) * Self.pageByteCount])
                if number + index != Self.lockPage,
                    try unsafe !authenticator.isAuthentic(page, number: UInt32(clamping: number + index))
                {
                    suspects.append(number + index)
                }
            }
            monitor.advance(byteCount: count)
            number += count / Self.pageByteCount
        }
        return suspects
    }

    /// Those of `numbers` that are damaged, for who keeps others from writing them.
    private func suspectPages(of file: File, among numbers: [Int]) throws(CofferError) -> [Int] {
        guard var authenticator = try authenticator(of: file) else { return numbers }
        var suspects: [Int] = []
        for number in numbers {
            let page = try fileSystem.read(
                Self.pageByteCount, from: file, at: (number - 1) * Self.pageByteCount)
            // Nobody needs what is behind the file's end.
            if page.isEmpty { continue }
            let isAuthentic = try unsafe authenticator.isAuthentic(page.span.bytes, number: UInt32(clamping: number))
            if !isAuthentic { suspects.append(number) }
        }
        return suspects
    }

    private static let sqliteHeader = Array("SQLite format 3\0".utf8)
}
