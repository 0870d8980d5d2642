import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import CofferSQLite

/// Transactions that are larger than the cache, so that SQLite writes frames before they end, some of them again in place,
/// and all checksums behind them at the end (walRewriteChecksums in SQLite's wal.c).
@Suite("Transactions of sealed pages that outgrow the cache")
struct SealedSpillTests {
    private static func text(_ random: inout SeededNumbers) -> String {
        String(repeating: String(random.next()), count: 1 + random.below(100))
    }

    @Test("Random transactions, committed or rolled back, are in any copy of the files as far as they were committed")
    func randomTransactions() throws {
        let fixture = try SealedFixture(cacheByteCount: 100_000)
        let writer = try fixture.connect()
        try writer.execute("PRAGMA cache_size = 10")
        var random = SeededNumbers(seed: 27)
        var committed: [Int: String] = [:]
        func expected() -> [String] { committed.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" } }
        var rewrittenCount = 0
        for round in 0..<60 {
            var rows = committed
            try writer.execute("BEGIN")
            for step in 0..<random.below(60) {
                let number = random.below(200)
                let text = Self.text(&random)
                let put = Statement(writer, "INSERT OR REPLACE INTO t VALUES (?1, ?2)")
                try put.bind(1, Int64(number))
                try put.bind(2, text)
                try put.run()
                rows[number] = text
                if step.isMultiple(of: 20) {
                    // In the middle, nothing of the transaction counts.
                    #expect(try fixture.restored(fixture.image()).rows() == expected())
                }
            }
            let before = SealedBytes(image: fixture.image())
            if random.isOne(in: 3) {
                try writer.execute("ROLLBACK")
            } else {
                try writer.execute("COMMIT")
                committed = rows
                let after = SealedBytes(image: fixture.image())
                if after.frameCount >= before.frameCount && before.frameCount > 0 {
                    rewrittenCount += (1...before.frameCount).count { before.frame($0) != after.frame($0) }
                }
            }
            #expect(try writer.rows() == expected())
            let copy = try fixture.restored(fixture.image())
            #expect(try Reopened(copy) == .rows(expected()))
            if round.isMultiple(of: 13) { #expect(try writer.checkpoint(patience: .zero, keepingLength: round > 20)) }
        }
        // Otherwise the test tests less than it says.
        #expect(rewrittenCount > 50, "frames that a commit rewrote")
        try writer.close()
        #expect(try fixture.rows() == expected())
    }

    @Test("Leftovers of a transaction that was rolled back never count, whichever commit they stand behind")
    func leftovers() throws {
        let fixture = try SealedFixture()
        let writer = try fixture.connect()
        try writer.execute("PRAGMA cache_size = 10")
        for round in 0..<10 {
            try writer.execute("BEGIN")
            for number in 0..<60 { try writer.insert(1_000 + number, String(repeating: "lost", count: 500)) }
            try writer.execute("ROLLBACK")
            try writer.insert(round, "kept")
            let rows = (0...round).map { "\($0) kept" }
            #expect(try Reopened(fixture.restored(fixture.image())) == .rows(rows))
        }
        try writer.close()
        #expect(try fixture.rows() == (0..<10).map { "\($0) kept" })
    }

    @Test("A frame that was written again in place doesn't count in its earlier form")
    func earlierForm() throws {
        let fixture = try SealedFixture()
        let writer = try fixture.connect()
        try writer.execute("PRAGMA cache_size = 10")
        try writer.insert(0, "before")
        try writer.execute("BEGIN")
        var images: [SealedFixture.Image] = []
        for round in 0..<6 {
            for number in 1...40 {
                let put = Statement(writer, "INSERT OR REPLACE INTO t VALUES (?1, ?2)")
                try put.bind(1, Int64(number))
                try put.bind(2, String(repeating: "\(round)", count: 1_500))
                try put.run()
            }
            images.append(fixture.image())
        }
        try writer.execute("COMMIT")
        let last = fixture.image()
        let rows = try writer.rows()
        // A second transaction, so that what happens to the first one is damage and not a torn end.
        try writer.insert(100, "after")
        let more = fixture.image()
        try writer.close()
        var replacedCount = 0
        for image in images {
            let (old, new) = (SealedBytes(image: image), SealedBytes(image: last))
            for index in 1...old.frameCount where old.frame(index) != new.frame(index) {
                replacedCount += 1
                guard replacedCount < 60 else { break }
                var torn = last
                torn.log?.replaceSubrange(SealedBytes.frameRange(index), with: old.frame(index))
                #expect(try Reopened(fixture.restored(torn)) == .rows(["0 before"]))
                var damaged = more
                damaged.log?.replaceSubrange(SealedBytes.frameRange(index), with: old.frame(index))
                #expect(try Reopened(fixture.restored(damaged)) == .damaged)
            }
        }
        #expect(replacedCount > 5)
        #expect(rows.count == 41)
    }

    /// SQLite reads some of them again, in that transaction or a later one, before it has written them anywhere.
    @Test("Pages that a transaction took and gave back are not missed", arguments: [7, 9, 22, 24])
    func takenAndGivenBack(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        let fixture = try SealedFixture()
        let writer = try fixture.connect()
        try writer.execute("PRAGMA secure_delete = OFF")
        if seed.isMultiple(of: 2) { try writer.execute("PRAGMA cache_size = 10") }
        for round in 0..<40 {
            try writer.execute("BEGIN")
            for _ in 0..<random.below(8) {
                switch random.below(8) {
                case 0: try writer.execute("DELETE FROM t WHERE n % 3 = 1")
                case 1:
                    try writer.execute("SAVEPOINT s; INSERT INTO t SELECT max(n) + 1, zeroblob(200000) FROM t")
                    try writer.execute("DELETE FROM t WHERE n % 2 = 0; ROLLBACK TO s; RELEASE s")
                case 2: try writer.execute("PRAGMA incremental_vacuum(20)")
                case 3: try writer.execute("DELETE FROM t")
                case 4: try writer.execute("CREATE TABLE u (v); INSERT INTO u VALUES (zeroblob(90000)); DROP TABLE u")
                default:
                    let number = 1_000 * round + random.below(1_000) + 100_000 * random.below(50)
                    let put = Statement(writer, "INSERT OR REPLACE INTO t VALUES (?1, zeroblob(?2))")
                    try put.bind(1, Int64(number))
                    try put.bind(2, Int64(random.below(60_000)))
                    try put.run()
                }
            }
            try writer.execute(random.isOne(in: 4) ? "ROLLBACK" : "COMMIT")
            let integrity = try writer.integrity()
            #expect(integrity == "ok")
            if random.isOne(in: 9) { #expect(try writer.checkpoint(patience: .zero)) }
        }
        try writer.close()
    }
}
