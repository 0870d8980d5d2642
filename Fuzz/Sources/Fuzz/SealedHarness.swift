@testable import CofferSQLite
@testable import CofferSealing
import Foundation

/// A file of sealed pages and its log, opened under the right key: as any bytes, with changes to what is stored, and with
/// changes to what was sealed, so that SQLite itself meets hostile pages. What is read is what a commit left, or damage;
/// hostile pages may say anything, but they end no process and are never a wrong key.
enum SealedHarness {
    private static let base: SealedBase = {
        do { return try SealedBase() } catch { fatalError("\(error)") }
    }()

    @Sendable static func run(_ input: [UInt8]) throws {
        var choices = Choices(input[...])
        let kind = choices.byte()
        let access: Connection.Access = [.readWrite, .readOnly, .readWrite, .immutable][Int(kind >> 2) % 4]
        switch kind % 4 {
        case 0:
            let (file, log) = changed(1 + Int(kind >> 5), &choices)
            for rows in try read(file, access == .immutable ? Data() : log, access) {
                expect(base.states.contains(rows), "rows that no commit left")
            }
        case 1:
            let (file, log) = try hostile(1 + Int(kind >> 5), &choices)
            try use(file, log, access)
        case 2:
            try use(base.sealed(choices.rest), base.log, access)
        default:
            let count = choices.number()
            let file = Data(choices.take(count))
            try use(file, Data(choices.rest), access)
        }
    }

    // MARK: Changing

    private static func changed(_ count: Int, _ choices: inout Choices) -> (file: Data, log: Data) {
        var (file, log) = (base.file, base.log)
        for _ in 0..<count {
            if choices.byte() % 2 == 0 {
                Change(&choices, size: file.count, unit: 4096, start: 0).apply(to: &file)
            } else {
                Change(&choices, size: log.count, unit: 4128, start: 72).apply(to: &log)
            }
        }
        return (file, log)
    }

    /// What is sealed is changed, and sealed again; the log's sums are made to fit, so that SQLite takes the frames.
    private static func hostile(_ count: Int, _ choices: inout Choices) throws -> (file: Data, log: Data) {
        var pages = base.pages.map { Data($0) }
        var frames = base.frames
        for _ in 0..<count {
            switch choices.byte() % 4 {
            case 0, 1:
                let index = choices.number(below: pages.count)
                Change(&choices, size: 4056, unit: 64, start: 0).apply(to: &pages[index])
            case 2:
                let index = choices.number(below: frames.count)
                var page = Data(frames[index].page)
                Change(&choices, size: 4056, unit: 64, start: 0).apply(to: &page)
                frames[index] = frames[index].with(page: SealedBase.usable(page))
            default:
                let index = choices.number(below: frames.count)
                var header = Data(frames[index].header)
                Change(&choices, size: 24, unit: 4, start: 0).apply(to: &header)
                frames[index] = frames[index].with(header: Array((header + Data(count: 24)).prefix(24)))
            }
        }
        return try (base.sealed(pages.map { SealedBase.usable($0) }), base.sealedLog(frames))
    }

    // MARK: Reading

    private static let path = BaseStore.directory.appending(path: "hostile.sqlite3").path

    private static func open(_ file: Data, _ log: Data, _ access: Connection.Access) throws -> Connection {
        try file.write(to: URL(filePath: path))
        try? FileManager.default.removeItem(atPath: path + "-wal")
        if !log.isEmpty { try log.write(to: URL(filePath: path + "-wal")) }
        return try Connection(
            path: path, subject: "hostile", access: access, protection: .sealed(SealedBase.pages(at: path)),
            cacheByteCount: 1 << 16)
    }

    /// What each of some statements finds, as long as nothing is damaged.
    private static func read(_ file: Data, _ log: Data, _ access: Connection.Access) throws -> [[String]] {
        var found: [[String]] = []
        attempt {
            let connection = try open(file, log, access)
            defer { attempt { try connection.close() } }
            for _ in 0..<2 { attempt { found.append(try SealedBase.rows(of: connection)) } }
        }
        return found
    }

    private static func use(_ file: Data, _ log: Data, _ access: Connection.Access) throws {
        attempt {
            let connection = try open(file, log, access)
            defer { attempt { try connection.close() } }
            for sql in uses { attempt { _ = try Statement(connection, sql).all { $0.bytes(0).count } } }
            guard access == .readWrite else { return }
            for sql in changes { attempt { try connection.execute(sql) } }
            attempt { _ = try SealedBase.rows(of: connection) }
        }
    }

    private static let uses: [StaticString] = [
        "SELECT v FROM t ORDER BY n LIMIT 2000", "SELECT v FROM t ORDER BY n DESC LIMIT 2000",
        "SELECT v FROM t INDEXED BY by_k WHERE k > 'b' LIMIT 2000", "SELECT v FROM keys ORDER BY k LIMIT 2000",
        "SELECT sql FROM sqlite_master LIMIT 100", "PRAGMA integrity_check(20)", "PRAGMA quick_check(20)",
    ]

    private static let changes: [StaticString] = [
        "INSERT INTO t (k, v) VALUES ('new', zeroblob(9000))",
        "UPDATE t SET v = zeroblob(5000), k = 'other' WHERE n = 3",
        "DELETE FROM t WHERE n = 2", "DELETE FROM keys WHERE k > 'k5'", "INSERT INTO keys VALUES ('new', 'value')",
        "PRAGMA incremental_vacuum(2)", "PRAGMA wal_checkpoint(TRUNCATE)", "UPDATE t SET v = 'short'",
    ]

    private static func attempt(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            guard let error = error as? CofferError else { fatalError("not one of ours: \(error)") }
            expect(error.status != 401 && error.code != .busy && error.code != .noSpace, "\(error)")
        }
    }
}

extension SealedPageCodec.Frame {
    fileprivate func with(header: [UInt8]? = nil, page: [UInt8]? = nil) -> Self {
        Self(
            header: header ?? self.header, checkpointSequence: checkpointSequence, syncedFrameCount: syncedFrameCount,
            page: page ?? self.page)
    }
}
