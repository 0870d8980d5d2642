package import CofferSealing
package import CofferVault

/// The pages of a database that may be beyond opening, read without SQLCipher: from its file, and from its log as far as
/// commits go there. Nothing is written.
///
/// A page whose code is wrong is not handed out. Where the file's first 16 bytes are lost, no code can be checked: then the
/// pages are ``Protection/unproven``, and it is for who takes rows from them to find proof elsewhere.
package final class PageSource {
    /// What vouches for pages.
    package enum Protection {
        /// Nothing, as they aren't encrypted.
        case none
        /// Their codes.
        case codes
        /// Nothing, though they are encrypted: the salt that codes are checked with is lost.
        case unproven
    }

    /// Where a version of a page is.
    package struct Place: Hashable {
        package var isInLog = false
        package var offset: Int
    }

    package let protection: Protection
    /// Whether the file begins with another salt than the one of its pages.
    package let isSaltLost: Bool
    /// The bytes of a page that SQLite uses.
    package private(set) var usableByteCount: Int
    /// How many pages there are to look at: those that the last commit left, or the file has.
    package private(set) var pageCount = 0
    /// How many there were behind those.
    package private(set) var missingPageCount = 0
    private let filePageCount: Int

    /// Versions of pages that are newer than the file's.
    private var logged: [UInt32: Place] = [:]
    /// What commits left behind a frame that is damaged, where SQLite ends the log.
    package private(set) var late: [UInt32: Place] = [:]
    /// How many pages before those are lost.
    package private(set) var lostFrameCount = 0
    /// What is read in the place of pages' newest versions.
    package var substitutes: [UInt32: Place] = [:] {
        didSet { lastMap = nil }
    }

    private let fileSystem: any FileSystem
    private let file: File?
    private let log: WriteAheadLog?
    private let authenticator: PageAuthenticator?
    private var decryptor: PageDecryptor?
    private var codec: SealedPageCodec?
    /// The map that was read last.
    private var lastMap: (number: UInt32, bytes: [UInt8])?

    package static let pageByteCount = PageAuthenticator.pageByteCount
    /// SQLite's page for locks, which holds byte 2^30 and is never written.
    package static let lockPage = UInt32((1 << 30) / pageByteCount + 1)

    package init(
        _ fileSystem: any FileSystem, _ generation: Generation, _ protection: DatabaseProtection
    ) throws(CofferError) {
        self.fileSystem = fileSystem
        // Nothing but a file is followed or waited for.
        file = try? fileSystem.openFile(Generation.databaseName, in: generation.directory)
        log = (try? WriteAheadLog(fileSystem, generation, protection)) ?? nil
        let status = try file.map { (file) throws(CofferError) in try fileSystem.status(of: file) }
        filePageCount = status?.kind == .file ? (status?.byteCount ?? 0) / Self.pageByteCount : 0
        switch protection {
        case .none:
            (self.protection, usableByteCount) = (.none, Self.pageByteCount)
            isSaltLost = false
            authenticator = nil
            decryptor = nil
            codec = nil
        case .sqlCipher(let key):
            usableByteCount = PageDecryptor.usableByteCount
            decryptor = try PageDecryptor(key: key)
            codec = nil
            let salt = try Self.provenSalt(fileSystem, file, log, pageCount: filePageCount, key)
            authenticator = try salt.map { (salt) throws(CofferError) in
                try PageAuthenticator(key: key, salt: salt.bytes)
            }
            isSaltLost = salt?.isInFile != true
            self.protection = salt == nil ? .unproven : .codes
        case .sealed(let key, let binding):
            (self.protection, usableByteCount) = (.codes, SealedPageCodec.usableByteCount)
            isSaltLost = false
            authenticator = nil
            decryptor = nil
            codec = try SealedPageCodec(key: key, binding: binding)
        }
    }

    /// Whether there is a database file with at least a page.
    package var hasFile: Bool { filePageCount > 0 }

    package var byteCount: Int { pageCount * Self.pageByteCount }

    // MARK: The salt

    /// The salt under which pages have the right code, in the file or in a version of page 1 in the log; nil if
    /// there isn't one.
    private static func provenSalt(
        _ fileSystem: any FileSystem, _ file: File?, _ log: WriteAheadLog?, pageCount: Int, _ key: SymmetricKey
    ) throws(CofferError) -> (bytes: [UInt8], isInFile: Bool)? {
        var salts: [[UInt8]] = []
        if let file, pageCount > 0 {
            let start = try withoutDamage { () throws(CofferError) in
                try fileSystem.read(PageAuthenticator.saltByteCount, from: file, at: 0)
            }
            salts.append(start ?? [])
        } else {
            salts.append([])
        }
        _ = try withoutDamage { () throws(CofferError) in
            try log?.forEachFrame { (frame, page) in
                let salt = Array(page.prefix(PageAuthenticator.saltByteCount))
                if frame.isCurrent && frame.page == 1 && !salts.contains(salt) { salts.append(salt) }
                return salts.count < saltLimit
            }
        }
        for (index, salt) in salts.enumerated() where salt.count == PageAuthenticator.saltByteCount {
            let authenticator = try PageAuthenticator(key: key, salt: salt)
            if try proves(authenticator, fileSystem, file, log, pageCount: pageCount) { return (salt, index == 0) }
        }
        return nil
    }

    /// More different ones are not in any log: it costs a reading of all pages to find that one is wrong.
    private static let saltLimit = 8

    /// Whether any page has the right code: most often the first that is looked at.
    private static func proves(
        _ authenticator: borrowing PageAuthenticator, _ fileSystem: any FileSystem, _ file: File?,
        _ log: WriteAheadLog?,
        pageCount: Int
    ) throws(CofferError) -> Bool {
        if let file {
            for number in 1..<pageCount + 1 {
                let page = try withoutDamage { () throws(CofferError) in
                    try fileSystem.read(pageByteCount, from: file, at: (number - 1) * pageByteCount)
                }
                if let page, try unsafe authenticator.isAuthentic(page.span.bytes, number: UInt32(clamping: number)) {
                    return true
                }
            }
        }
        guard let log else { return false }
        var isProven = false
        _ = try withoutDamage { () throws(CofferError) in
            try log.forEachFrame { (frame, page) throws(CofferError) in
                isProven = try unsafe authenticator.isAuthentic(page.span.bytes, number: frame.page)
                return !isProven
            }
        }
        return isProven
    }

    // MARK: The log

    /// So many pages at most are missing between the end of the file and pages that the log has: 4 GiB.
    private static let longestGap = 1 << 20

    /// Finds out which pages the log has, and how many pages there are.
    package func readLog(_ monitor: WorkMonitor) throws(CofferError) {
        var (pending, pageCounts) = ([UInt32: Place](), (whole: UInt32(0), late: UInt32(0)))
        var (isBroken, lost, frameCount) = (log?.hasHeader == false, 0, 0)
        _ = try withoutDamage { () throws(CofferError) in
            try log?.forEachFrame { (frame, page) throws(CofferError) in
                try monitor.checkCancelled()
                frameCount += 1
                // Of an unproven page only the frame vouches; where a frame is damaged, the page may be whole.
                isBroken = isBroken || !frame.isIntact
                guard frame.isCurrent else {
                    // One that was never written, if a commit of this log follows; behind the log's end there are others.
                    lost += 1
                    return true
                }
                var isWhole = frame.isIntact || frame.isSealed
                if !isWhole {
                    isWhole = try unsafe authenticator?.isAuthentic(page.span.bytes, number: frame.page) ?? false
                }
                if isWhole { pending[frame.page] = Place(isInLog: true, offset: frame.offset) } else { lost += 1 }
                guard frame.isIntact, frame.pageCount != 0 else { return true }
                if isBroken {
                    late.merge(pending) { $1 }
                    lostFrameCount = lost
                    pageCounts.late = frame.pageCount
                } else {
                    logged.merge(pending) { $1 }
                    pageCounts.whole = frame.pageCount
                }
                pending = [:]
                return true
            }
        }
        // A file may have been cut; but what is missing before the log's pages is named page by page, so not without limit.
        let limit = filePageCount + frameCount + Self.longestGap
        let available = max(filePageCount, min(Int(logged.keys.max() ?? 0), limit))
        pageCount = available
        let stated = pageCounts.whole > 0 ? Int(pageCounts.whole) : try statedPageCount()
        pageCount = min(stated, available)
        missingPageCount = stated - pageCount
        if decryptor != nil, try leavesMoreUnused() { usableByteCount = Self.usableByteCountOfSQLCipher4 }
    }

    /// SQLCipher 4 begins with codes that are longer than the portable profile's, and SQLite gives back nothing that it once
    /// left to them: in a store that it made, pages end 32 bytes before the initialization vector, and 32 bytes are unused.
    private static let usableByteCountOfSQLCipher4 = PageDecryptor.usableByteCount - 32

    /// Whether pages end where those of a store of SQLCipher 4's making do: page 1 says so, and otherwise the first page that
    /// has a row where there would be none.
    private func leavesMoreUnused() throws(CofferError) -> Bool {
        let least = Self.usableByteCountOfSQLCipher4
        if let first = try page(1), first.bigEndian(2, at: 16) == Self.pageByteCount {
            return Int(first[20]) == Self.pageByteCount - least
        }
        for number in 2..<UInt32(clamping: max(2, pageCount + 1)) {
            guard let page = try page(number), let tree = TreePage(page, number: number), !tree.hasBrokenCells else {
                continue
            }
            if tree.cells.contains(where: { $0.overflow == nil && $0.local.upperBound > least }) { return false }
        }
        return true
    }

    /// What page 1 says, where its header was written with it: section 1.3.7. A file that was cut short has fewer pages than
    /// it says; what is behind the end that it says was given up.
    private func statedPageCount() throws(CofferError) -> Int {
        guard let first = try page(1), first.bigEndian(4, at: 24) == first.bigEndian(4, at: 92),
            case let count = first.bigEndian(4, at: 28), count > 0
        else { return filePageCount }
        return count
    }

    // MARK: Pages

    /// Where the newest version of a page is; nil if the file ends before it.
    package func place(of number: UInt32) -> Place? {
        if let place = substitutes[number] ?? logged[number] { return place }
        return placeInFile(number)
    }

    /// Where the file has the page.
    package func placeInFile(_ number: UInt32) -> Place? {
        number > 0 && number <= filePageCount ? Place(offset: Int(number - 1) * Self.pageByteCount) : nil
    }

    /// Whether the newest version of a page is all zeros.
    package func isZero(_ number: UInt32) throws(CofferError) -> Bool {
        guard let page = try storedPage(number) else { return false }
        return ZeroPage.isZero(page)
    }

    /// The bytes of a page that SQLite uses; nil if they are not what was written, or can't be read.
    package func page(_ number: UInt32) throws(CofferError) -> [UInt8]? {
        guard let page = try storedPage(number) else { return nil }
        guard protection != .none else { return page }
        if codec != nil { return try opened(page, number) }
        // Where no code can be checked, this can: no encrypted page is all zeros.
        guard !ZeroPage.isZero(page) else { return nil }
        if protection == .codes {
            guard try unsafe authenticator?.isAuthentic(page.span.bytes, number: number) == true else { return nil }
        }
        guard let decrypted = try decryptor?.decrypt(page, number: number) else { return nil }
        return decrypted.count == usableByteCount ? decrypted : Array(decrypted[..<usableByteCount])
    }

    /// A sealed page, be it one of the file or in a frame of the log.
    private func opened(_ stored: [UInt8], _ number: UInt32) throws(CofferError) -> [UInt8]? {
        guard let place = place(of: number), place.isInLog else {
            let page = try codec?.openPage(number, stored)
            return number == 1 ? page.flatMap { PageProof.isFirstPage($0) ? $0 : nil } : page
        }
        return try codec?.openFrame(WriteAheadLog.sealedFrameIndex(at: place.offset), stored)?.page
    }

    /// A page as it stands in the file or the log, of a sealed log the whole frame; nil if that ends before it, or can't be
    /// read.
    private func storedPage(_ number: UInt32) throws(CofferError) -> [UInt8]? {
        guard number > 0, number != Self.lockPage, let place = place(of: number),
            let file = place.isInLog ? log?.file : file
        else { return nil }
        let byteCount = place.isInLog && codec != nil ? SealedPageCodec.frameByteCount : Self.pageByteCount
        let page = try withoutDamage { () throws(CofferError) in
            try fileSystem.read(byteCount, from: file, at: place.offset)
        }
        return page?.count == byteCount ? page : nil
    }

    // MARK: What pages are for

    package func use(of number: UInt32) throws(CofferError) -> PageMap.Use {
        // Page 1 has no entry: it is the root of the table of tables.
        guard number > 1 else { return .root }
        let map = PageMap.page(of: number, usableByteCount: usableByteCount)
        guard number != map else { return .map }
        if lastMap?.number != map { lastMap = try page(map).flatMap { isMap($0, map) ? (map, $0) : nil } }
        guard let bytes = lastMap?.bytes, lastMap?.number == map else { return .unknown }
        return PageMap.use(of: number, in: bytes, at: map)
    }

    /// Whether a page may be the map at `number`. Its code proves it; without codes other bytes hardly look like a map.
    private func isMap(_ page: [UInt8], _ number: UInt32) -> Bool {
        let count = min(usableByteCount / 5, pageCount - Int(number))
        return protection == .codes || count <= 0 || (0..<count).allSatisfy { (1...5).contains(page[5 * $0]) }
    }
}

/// What SQLite's maps of pages say each page is for: sqlite.org/fileformat2.html, section 1.8.
package enum PageMap {
    /// What a page is for.
    package enum Use: Equatable {
        /// The first page of a table or index.
        case root
        case free
        /// A part of a long row: of the first the page that the row is in, else the part before.
        case overflow(parent: UInt32)
        /// A page of a table or index, below another.
        case tree(parent: UInt32)
        case map
        /// The page's map is lost.
        case unknown
    }

    /// The page that says what `number` is for. The first is page 2, and each is followed by the pages that it speaks of.
    package static func page(of number: UInt32, usableByteCount: Int) -> UInt32 {
        let step = UInt32(usableByteCount / 5 + 1)
        let map = (number - 2) / step * step + 2
        return map == PageSource.lockPage ? map + 1 : map
    }

    /// What the map at page `map`, whose bytes are `bytes`, says of a page that it speaks of.
    package static func use(of number: UInt32, in bytes: [UInt8], at map: UInt32) -> Use {
        let position = 5 * Int(number - map - 1)
        let parent = UInt32(truncatingIfNeeded: bytes.bigEndian(4, at: position + 1))
        return switch bytes[position] {
        case 1: .root
        case 2: .free
        case 3, 4: .overflow(parent: parent)
        case 5: .tree(parent: parent)
        default: .unknown
        }
    }
}
