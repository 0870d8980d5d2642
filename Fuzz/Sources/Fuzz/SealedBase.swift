@testable import CofferSQLite
@testable import CofferSealing
import Foundation

/// A file of sealed pages with a log of three commits, as it is stored and as it was before it was sealed. The key is known,
/// and the same in each process, so that seeds can be made elsewhere.
struct SealedBase {
    let file: Data
    let log: Data
    let pages: [[UInt8]]
    let header: [UInt8]
    let frames: [SealedPageCodec.Frame]
    /// The rows after each commit.
    let states: [[String]]

    /// Those of Vectors/sealed-pages, in which seeds are taken.
    private static let key: SymmetricKey = {
        do { return try SymmetricKey(data: Array(0x40..<0x60)) } catch { fatalError("\(error)") }
    }()
    private static let binding = SealedPageBinding(
        storeUUID: [
            0xf4, 0x7a, 0xc1, 0x0b, 0x58, 0xcc, 0x43, 0x72, 0xa5, 0x67, 0x0e, 0x02, 0xb2, 0xc3, 0xd4, 0x79,
        ], generation: 3, generationTag: 0x0123_4567_89ab_cdef)

    static func pages(at path: String) throws -> SealedPages {
        try SealedPages(path: path, subject: "sealed", key: key, binding: binding, cacheByteCount: 1 << 18)
    }

    init() throws {
        let path = BaseStore.directory.appending(path: "sealed.sqlite3").path
        try Data().write(to: URL(filePath: path))
        let pages = try Self.pages(at: path)
        try pages.writeEmptyDatabase()
        func connect(_ access: Connection.Access) throws -> Connection {
            try Connection(
                path: path, subject: "sealed", access: access, protection: .sealed(pages), cacheByteCount: 1 << 20)
        }
        let maker = try connect(.create)
        try maker.execute(
            """
            CREATE TABLE t (n INTEGER PRIMARY KEY, k TEXT, v);
            CREATE INDEX by_k ON t (k);
            CREATE TABLE keys (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
            """)
        for number in 1...30 {
            try maker.execute(
                assembled: """
                    INSERT INTO t VALUES (\(number), '\(["a", "b", "c"][number % 3])\(number)', zeroblob(\(number * 30)));
                    INSERT INTO keys VALUES ('k\(number)', 'value \(number)');
                    """)
        }
        try maker.switchToWriteAheadLog()
        var states = [try Self.rows(of: maker)]
        try maker.close()

        let connection = try connect(.readWrite)
        for sql in [
            "UPDATE t SET v = 'short' WHERE n > 25; DELETE FROM keys WHERE k > 'k4'",
            "INSERT INTO t VALUES (70, 'long', zeroblob(9000)); DELETE FROM t WHERE n < 5",
            "UPDATE t SET v = zeroblob(5000) WHERE n = 70; INSERT INTO keys VALUES ('last', 'of all')",
        ] {
            try connection.execute(assembled: "BEGIN; \(sql); COMMIT")
            states.append(try Self.rows(of: connection))
        }
        file = try Data(contentsOf: URL(filePath: path))
        log = try Data(contentsOf: URL(filePath: path + "-wal"))
        try connection.close()
        self.states = states

        var codec = try SealedPageCodec(key: Self.key, binding: Self.binding)
        var (opened, frames): ([[UInt8]], [SealedPageCodec.Frame]) = ([], [])
        for number in 1...file.count / 4096 {
            let page = Array(file[(number - 1) * 4096..<number * 4096])
            guard let page = try codec.openPage(UInt32(number), page) else { fatalError("page \(number)") }
            opened.append(page)
        }
        guard let header = try codec.openLogHeader(Array(log.prefix(72))) else { fatalError("header") }
        for index in 1...(log.count - 72) / 4128 {
            let frame = Array(log.dropFirst(72 + (index - 1) * 4128).prefix(4128))
            guard let frame = try codec.openFrame(UInt32(index), frame) else { fatalError("frame \(index)") }
            frames.append(frame)
        }
        (self.pages, self.header, self.frames) = (opened, header, frames)
    }

    static func rows(of connection: borrowing Connection) throws -> [String] {
        // By keys as well, so that what an index says is among it.
        let sql: [StaticString] = ["SELECT n, k, v FROM t ORDER BY n", "SELECT 0, k, v FROM keys ORDER BY k"]
        var rows: [String] = []
        for sql in sql {
            rows += try Statement(connection, sql).all {
                "\($0.integer(0)) \($0.text(1)) \($0.bytes(2).count) \($0.bytes(2).last ?? 0)"
            }
        }
        return rows
    }

    /// 4056 bytes, whatever is missing or too much.
    static func usable(_ page: some Sequence<UInt8>) -> [UInt8] {
        Array((Array(page) + [UInt8](repeating: 0, count: 4056)).prefix(4056))
    }

    // MARK: Sealing

    /// What is sealed is never looked at by anybody else, so the nonces need only differ.
    private func nonce(_ kind: UInt8, _ number: Int) -> [UInt8] {
        [UInt8](repeating: kind, count: 20) + (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }

    /// The file whose pages are these, one after another.
    func sealed(_ plaintext: [UInt8]) throws -> Data {
        let starts = stride(from: 0, to: plaintext.count, by: 4056)
        return try sealed(starts.map { Self.usable(plaintext[$0..<min($0 + 4056, plaintext.count)]) })
    }

    /// The file of these pages. Those that it has anyway are not sealed again.
    func sealed(_ pages: [[UInt8]]) throws -> Data {
        var codec = try SealedPageCodec(key: Self.key, binding: Self.binding)
        var file = Data()
        for (index, page) in pages.enumerated() {
            if index < self.pages.count, page == self.pages[index] {
                file += self.file[index * 4096..<(index + 1) * 4096]
            } else {
                file += try codec.sealPage(UInt32(index + 1), page, nonce: nonce(1, index))
            }
        }
        return file
    }

    /// The log of these frames, with sums and salts that fit. Those before the first that is another are not sealed again.
    func sealedLog(_ frames: [SealedPageCodec.Frame]) throws -> Data {
        var codec = try SealedPageCodec(key: Self.key, binding: Self.binding)
        let same = zip(frames, self.frames).prefix { $0 == $1 }.count
        var log = log.prefix(72 + same * 4128)
        let before = same == 0 ? header[24...] : frames[same - 1].header[16...]
        var sums = (Self.number(before), Self.number(before.dropFirst(4)))
        for (index, frame) in frames.enumerated().dropFirst(same) {
            let start = Array(frame.header.prefix(8))
            let summed = start + frame.page + [UInt8](repeating: 0, count: 40)
            Self.add(summed, to: &sums, isBigEndian: header[3] & 1 == 1)
            let sealed = SealedPageCodec.Frame(
                header: start + Array(header[16..<24]) + Self.bytes(sums.0) + Self.bytes(sums.1),
                checkpointSequence: frame.checkpointSequence, syncedFrameCount: frame.syncedFrameCount, page: frame.page
            )
            log += try codec.sealFrame(UInt32(index + 1), sealed, nonce: nonce(2, index))
        }
        return log
    }

    /// SQLite's: fileformat2.html, section 4.2.
    private static func add(_ data: [UInt8], to sums: inout (UInt32, UInt32), isBigEndian: Bool) {
        data.withUnsafeBytes { bytes in
            for at in stride(from: 0, to: bytes.count, by: 8) {
                let first = bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self)
                let second = bytes.loadUnaligned(fromByteOffset: at + 4, as: UInt32.self)
                sums.0 = sums.0 &+ (isBigEndian ? first.bigEndian : first.littleEndian) &+ sums.1
                sums.1 = sums.1 &+ (isBigEndian ? second.bigEndian : second.littleEndian) &+ sums.0
            }
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func bytes(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }
}
