package import CofferSealing
package import CofferVault

/// Checks the pages of a database file, and of its log, one by one and without SQLCipher: 3.4.1 has no call for that, and
/// what reads through a tree of pages stops at the first that is damaged.
///
/// A page that nobody has read since it was written is looked at like any other. Nothing is written.
package struct PageVerification {
    package let fileSystem: any FileSystem
    package let generation: Generation
    /// The database file.
    package let file: File
    /// Where pages aren't encrypted, they have no codes. All that shows without one is a page of zeros in the place of one that
    /// is in use.
    package let protection: DatabaseProtection
    package let monitor: WorkMonitor

    package init(
        fileSystem: any FileSystem, generation: Generation, file: File, protection: DatabaseProtection,
        monitor: WorkMonitor
    ) {
        self.fileSystem = fileSystem
        self.generation = generation
        self.file = file
        self.protection = protection
        self.monitor = monitor
    }

    private static let pageByteCount = PageAuthenticator.pageByteCount
    /// Pages that are read at once: 1 MiB.
    private static let batchSize = 256
    /// SQLite's page for locks, which holds byte 2^30 and is never written.
    private static let lockPage = (1 << 30) / pageByteCount + 1
    private static let sqliteHeader = Array("SQLite format 3\0".utf8)

    package struct Result {
        package var pageCount = 0
        package var findings: [Damage] = []
    }

    /// How many bytes there are to look at, the log's not counted.
    package var byteCount: Int {
        get throws(CofferError) { try fileSystem.status(of: file).byteCount }
    }

    /// - Parameter alone: runs what it is given while nobody copies pages from the log into the file, with the number of
    ///   frames that the log is known to have. A page that looks damaged may have been half written at that moment, and is
    ///   looked at again.
    package func run(
        alone: (_ body: (_ frameCount: Int) throws(CofferError) -> Void) throws(CofferError) -> Void
    ) throws(CofferError) -> Result {
        var result = Result()
        let byteCount = try byteCount
        var suspects = try suspectPages(byteCount: byteCount)
        try alone { (frameCount) throws(CofferError) in
            let log = try LogVerification(
                fileSystem: fileSystem, generation: generation, protection: protection, monitor: monitor
            ).run(frameCount: frameCount) { () throws(CofferError) in try authenticator() }
            let byteCount = try fileSystem.status(of: file).byteCount
            let pageCount = byteCount / Self.pageByteCount
            result.pageCount = pageCount + log.frameCount
            if byteCount == 0 {
                result.findings.append(Damage(.structure, Generation.databaseName, "it is empty"))
            } else if byteCount % Self.pageByteCount != 0 && log.pageCount == nil {
                result.findings.append(
                    Damage(
                        .structure, Generation.databaseName, "its \(byteCount) bytes are not a whole number of pages"))
            }
            let lost = try lostPages(in: &suspects, log, pageCount: pageCount)
            let damaged = try damagedPages(among: suspects.pages, log).filter { page in
                // A copying that was cut short may have torn a page that the log has still.
                log.offsets[page.number] == nil && Int(page.number) <= log.pageCount ?? .max
            }
            let damagedCount = lost.reduce(damaged.count) { $0 + $1.pages.count }
            let checkedCount = pageCount - (pageCount >= Self.lockPage ? 1 : 0)
            let isSaltDamaged = hasSalt && damagedCount > 1 && damagedCount == checkedCount
            // Without the salt every page fails the check, but one that is all zeros is damaged under any salt.
            for page in damaged where !isSaltDamaged || page.number == 1 || page.isZero {
                result.findings.append(
                    Damage(
                        .page, "page \(page.number) of \(Generation.databaseName)",
                        detail(page, isSaltDamaged: isSaltDamaged), page: Int(page.number)))
            }
            result.findings += lost.map { lost in
                Damage(
                    .page, "pages \(lost.pages.lowerBound) to \(lost.pages.upperBound) of \(Generation.databaseName)",
                    !isEncrypted ? ZeroPage.meaningOfManyMaps : ZeroPage.meaningOfManyWhereEncrypted,
                    page: lost.pages.lowerBound)
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
            let meaning = isEncrypted ? ZeroPage.meaningWhereEncrypted : ZeroPage.meaningWhereUsed
            guard page.number == 1, hasSalt else { return meaning }
            return "\(meaning). The salt is lost with it, and without the salt no other page can be checked"
        }
        if isSaltDamaged && page.number == 1 {
            return "its first 16 bytes, the salt, don't match the MACs of all pages"
        }
        return !isEncrypted ? "it is not an SQLite page" : "its MAC doesn't match its bytes"
    }

    private var isEncrypted: Bool { protection.isEncrypted }

    /// Whether the file begins with a salt, without which no page can be checked.
    private var hasSalt: Bool {
        if case .sqlCipher = protection { true } else { false }
    }

    private func salt() throws(CofferError) -> [UInt8]? { try bytes(PageAuthenticator.saltByteCount, at: 0) }

    private func proof() throws(CofferError) -> PageProof? {
        try PageProof.of(protection) { () throws(CofferError) in try salt() }
    }

    /// Of SQLCipher's pages; nil for others, or where the file is too short to say under which salt.
    private func authenticator() throws(CofferError) -> PageAuthenticator? {
        guard case .sqlCipher(let key) = protection, let salt = try salt(),
            salt.count == PageAuthenticator.saltByteCount
        else { return nil }
        return try PageAuthenticator(key: key, salt: salt)
    }

    /// Pages that look damaged to someone who doesn't keep others from writing them.
    private struct Suspects {
        var pages: [Int] = []
        /// Those in holes, which weren't looked at.
        var holes: [ClosedRange<Int>] = []
    }

    private var extents: PageExtents { PageExtents(fileSystem: fileSystem, file: file) }

    private func suspectPages(byteCount: Int) throws(CofferError) -> Suspects {
        let pageCount = byteCount / Self.pageByteCount
        var proof = try proof()
        var suspects = Suspects()
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Self.batchSize * Self.pageByteCount, alignment: 4096)
        defer { unsafe buffer.deallocate() }
        var first = 1
        while first <= pageCount {
            try monitor.checkCancelled()
            let extent = try extents.extent(from: first, through: pageCount)
            guard !extent.isHole else {
                suspects.holes.append(extent.pages)
                monitor.advance(byteCount: extent.pages.count * Self.pageByteCount)
                first = extent.pages.upperBound + 1
                continue
            }
            let last = min(first + Self.batchSize - 1, extent.pages.upperBound)
            defer { first = last + 1 }
            let pages = unsafe UnsafeMutableRawBufferPointer(
                rebasing: buffer[..<((last - first + 1) * Self.pageByteCount)])
            let count = try withoutDamage { () throws(CofferError) in
                try unsafe fileSystem.read(into: pages, from: file, at: (first - 1) * Self.pageByteCount)
            }
            guard let count else {
                suspects.pages += Array(first...last)
                continue
            }
            // It may have been cut meanwhile, by who gives free pages back.
            for number in first...last where (number - first + 1) * Self.pageByteCount <= count {
                let start = (number - first) * Self.pageByteCount
                let page = unsafe UnsafeRawBufferPointer(rebasing: buffer[start..<start + Self.pageByteCount])
                guard number != Self.lockPage else { continue }
                let isSuspect =
                    if !isEncrypted {
                        unsafe ZeroPage.isZero(page) || number == 1 && !page.starts(with: Self.sqliteHeader)
                    } else {
                        try unsafe proof?.proves(page, number: UInt32(clamping: number)) != true
                    }
                if isSuspect { suspects.pages.append(number) }
            }
            monitor.advance(byteCount: count)
        }
        return suspects
    }

    /// Pages in holes that are damaged, for a caller that keeps others from writing them. Where there are few in a row they
    /// become suspects like any other, and so do those that were written since.
    private func lostPages(
        in suspects: inout Suspects, _ log: LogVerification.Result, pageCount: Int
    ) throws(CofferError) -> [LostPages] {
        var lost: [LostPages] = []
        for hole in suspects.holes {
            var first = hole.lowerBound
            let end = min(hole.upperBound, pageCount, log.pageCount ?? .max)
            while first <= end {
                try monitor.checkCancelled()
                // What the first page is says more than that it is one of many.
                let extent = first == 1 ? (isHole: false, pages: 1...1) : try extents.extent(from: first, through: end)
                if !extent.isHole {
                    suspects.pages += Array(extent.pages)
                } else if !isEncrypted {
                    lost += try lostMaps(in: extent.pages, log, &suspects)
                } else {
                    for run in LostPages.of(extent.pages, without: log, lockPage: Self.lockPage) {
                        if run.pages.count > LostPages.namedLimit {
                            lost.append(run)
                        } else {
                            suspects.pages += Array(run.pages)
                        }
                    }
                }
                first = extent.pages.upperBound + 1
            }
        }
        suspects.holes = []
        suspects.pages.sort()
        return lost
    }

    /// Has those of `pages`, of an unencrypted store, looked at that may be in use: by their map, which is not in a hole, or
    /// as a map themselves. Returns many maps in a row as one.
    private func lostMaps(
        in pages: ClosedRange<Int>, _ log: LogVerification.Result, _ suspects: inout Suspects
    ) throws(CofferError) -> [LostPages] {
        var maps: [Int] = []
        // The last one that was found: the file system is asked once for each, and not for each map in it.
        var hole: ClosedRange<Int>?
        var first = pages.lowerBound
        while first <= pages.upperBound, let id = UInt32(exactly: first) {
            let map = PageMap.page(of: id, usableByteCount: Self.pageByteCount)
            let last = max(first, min(pages.upperBound, Int(map) + Self.pageByteCount / 5))
            if hole?.contains(Int(map)) != true {
                try monitor.checkCancelled()
                let extent = try extents.extent(from: Int(map), through: max(Int(map), pages.upperBound))
                hole = extent.isHole ? extent.pages : nil
            }
            if log.offsets[map] != nil || hole == nil {
                suspects.pages += Array(first...last)
            } else if pages.contains(Int(map)) {
                maps.append(Int(map))
            }
            first = last + 1
        }
        guard maps.count > LostPages.namedLimit, let start = maps.first, let end = maps.last else {
            suspects.pages += maps
            return []
        }
        return [LostPages(pages: start...end)]
    }

    /// Those of `numbers` that are damaged, for a caller that keeps others from writing them.
    private func damagedPages(
        among numbers: [Int], _ log: LogVerification.Result
    ) throws(CofferError) -> [DamagedPage] {
        guard !numbers.isEmpty else { return [] }
        var proof = try proof()
        var damaged: [DamagedPage] = []
        for number in numbers where number != Self.lockPage {
            let page = try bytes(Self.pageByteCount, at: (number - 1) * Self.pageByteCount)
            // Nobody needs what is behind the file's end.
            if page?.isEmpty == true { continue }
            let id = UInt32(clamping: number)
            let isZero = page.map { $0.count == Self.pageByteCount && ZeroPage.isZero($0) } ?? false
            if !isEncrypted {
                if isZero, number > 1, try !isUsedWithContent(id, log) { continue }
                if let page, !isZero, number > 1 || page.starts(with: Self.sqliteHeader) { continue }
            } else if let page, try unsafe proof?.proves(page.span.bytes, number: id) == true {
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
                    guard let log = try WriteAheadLog(fileSystem, generation, protection) else { return nil }
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
package enum ZeroPage {
    private static let causes =
        "it was never written, or was lost to the file system, to a copy with holes, or to an early version of Coffer"

    /// What it means in an encrypted store.
    package static let meaningWhereEncrypted = "it is all zeros, which an encrypted page never is: \(causes)"
    /// What it means in an unencrypted store, of a page that a table, an index or the map of pages needs.
    package static let meaningWhereUsed = "it is all zeros, which a page in use never is: \(causes)"
    /// What it means of many that are in one hole of the file.
    package static let meaningOfManyWhereEncrypted = "they are all zeros, which an encrypted page never is: \(causes)"
    package static let meaningOfManyMaps = "they are all zeros, which the maps of pages among them never are: \(causes)"

    /// Whether all of `bytes` are zero.
    package static func isZero(_ bytes: some Sequence<UInt8>) -> Bool { bytes.allSatisfy { $0 == 0 } }
}
