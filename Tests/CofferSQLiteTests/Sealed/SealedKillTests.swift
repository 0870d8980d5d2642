import CofferSealing
import Foundation
import Testing

@testable import CofferSQLite

@Suite("Processes killed while they write sealed pages", .serialized, .timeLimit(.minutes(10)))
struct SealedKillTests {
    private static func pages(_ path: String, _ key: [UInt8]) throws -> SealedPages {
        try SealedPages(
            path: path, subject: "test", key: SymmetricKey(data: key), binding: SealedFixture.binding,
            cacheByteCount: 200_000)
    }

    private static func connect(_ pages: SealedPages) throws -> Connection {
        try Connection(
            path: pages.path, subject: "test", access: .readWrite, protection: .sealed(pages), cacheByteCount: 1 << 20)
    }

    /// Adds transactions of rows that carry their transaction's number, some larger than the cache and some rolled back, and
    /// notes which ones were acknowledged, until the process is killed.
    private static func writeForever(_ path: String, _ key: [UInt8], journal: String) throws {
        let connection = try connect(pages(path, key))
        try connection.execute("PRAGMA cache_size = 10")
        let start = try Statement(connection, "SELECT max(n) / 1000 FROM t").first { $0.integer(0) } ?? 0
        for transaction in Int(start) + 1...Int.max {
            let rowCount = transaction.isMultiple(of: 5) ? 60 : 3
            try connection.execute("BEGIN")
            for row in 0..<rowCount {
                try connection.insert(1_000 * transaction + row, String(repeating: "\(transaction) ", count: 200))
            }
            let isGivenUp = transaction.isMultiple(of: 4)
            try connection.execute(isGivenUp ? "ROLLBACK" : "COMMIT")
            if !isGivenUp { try note("\(transaction) \(rowCount)", in: journal) }
            if transaction.isMultiple(of: 9) {
                _ = try connection.checkpoint(patience: .zero, keepingLength: transaction.isMultiple(of: 2))
            }
        }
    }

    private static func note(_ line: String, in journal: String) throws {
        let descriptor = open(journal, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        let bytes = Array((line + "\n").utf8)
        try #require(write(descriptor, bytes, bytes.count) == bytes.count)
    }

    @Test("Killed 25 times, what was acknowledged is there, whole, and nothing that was given up")
    func killed() async throws {
        let folder = TemporaryFolder()
        let (path, journal) = (folder.file("db.sqlite3"), folder.file("journal"))
        let key = try SymmetricKey().withBytes { Array($0) }
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        let created = try Self.pages(path, key)
        try created.writeEmptyDatabase()
        let schema = try Connection(
            path: path, subject: "test", access: .create, protection: .sealed(created), cacheByteCount: 1 << 20)
        try schema.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, v)")
        try schema.switchToWriteAheadLog()
        try schema.close()
        var last = 0
        for round in 0..<25 {
            let seconds = 0.02 + Double(round) * 0.011
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [
                    path = path as String, key = key as [UInt8], journal = journal as String,
                    seconds = seconds as Double
                ] in
                Thread {
                    Thread.sleep(forTimeInterval: seconds)
                    kill(getpid(), SIGKILL)
                }.start()
                try Self.writeForever(path, key, journal: journal)
            }
            let connection = try Self.connect(Self.pages(path, key))
            #expect(try connection.integrity() == "ok")
            let counts = try Statement(connection, "SELECT n / 1000, count(*), v FROM t GROUP BY n / 1000").all {
                ($0.integer(0), $0.integer(1), $0.text(2))
            }
            for (transaction, rowCount, text) in counts {
                #expect(rowCount == (transaction % 5 == 0 ? 60 : 3) && transaction % 4 != 0)
                #expect(text.hasPrefix("\(transaction) "))
            }
            let found = Set(counts.map { "\($0.0) \($0.1)" })
            let lines = (try? String(contentsOfFile: journal, encoding: .utf8)) ?? ""
            let acknowledged = Set(lines.split(separator: "\n").map(String.init))
            #expect(acknowledged.isSubset(of: found))
            // At most the one under way was not.
            #expect(found.count <= acknowledged.count + round + 1)
            last = counts.count
            try connection.close()
        }
        #expect(last > 25, "the processes lived long enough")
    }
}
