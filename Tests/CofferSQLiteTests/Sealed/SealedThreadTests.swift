import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import CofferSQLite

@Suite("Threads that share sealed pages")
struct SealedThreadTests {
    /// Runs the bodies at once, each on a thread of its own, and returns what they threw.
    private func run(_ bodies: [@Sendable () throws -> Void]) -> [any Error] {
        let errors = Lock<[any Error]>([])
        let group = DispatchGroup()
        for body in bodies {
            group.enter()
            Thread {
                do { try body() } catch { errors.withLock { $0.append(error) } }
                group.leave()
            }.start()
        }
        group.wait()
        return errors.withLock { $0 }
    }

    /// Every row of a transaction has its number, so a reader that sees two numbers saw half a commit. The cache is small, so
    /// that pages go and come back all the time.
    @Test(
        "Threads that read and write one sealed file see whole commits", arguments: [0, 300_000, 8 << 20])
    func wholeCommits(cacheByteCount: Int) throws {
        let fixture = try SealedFixture(cacheByteCount: cacheByteCount)
        let first = try fixture.connect()
        try first.execute("PRAGMA synchronous = NORMAL")
        for number in 0..<200 { try first.insert(number, "0000 " + String(repeating: "x", count: 1_000)) }
        try first.close()
        let isOver = Lock(false)
        let readCount = Lock(0)
        let writer: @Sendable () throws -> Void = {
            defer { isOver.withLock { $0 = true } }
            let connection = try fixture.connect(cacheByteCount: 100_000)
            try connection.execute("PRAGMA synchronous = NORMAL")
            let update = Statement(connection, "UPDATE t SET v = ?1")
            for round in 1...150 {
                let digits = String("\(10_000 + round)".suffix(4))
                try update.bind(1, digits + " " + String(repeating: "\(round % 10)", count: 900 + round))
                try connection.execute("BEGIN IMMEDIATE")
                try update.run()
                try connection.execute(round.isMultiple(of: 7) ? "ROLLBACK" : "COMMIT")
                if round.isMultiple(of: 9) {
                    _ = try connection.checkpoint(patience: .milliseconds(20), keepingLength: round.isMultiple(of: 2))
                }
                if round.isMultiple(of: 31) { fixture.pages.setCache(byteCount: cacheByteCount / (1 + round % 3)) }
            }
            try connection.close()
        }
        let reader: @Sendable () throws -> Void = {
            while !isOver.withLock({ $0 }) {
                let connection = try fixture.connect(.readOnly, cacheByteCount: 100_000)
                let read = Statement(connection, "SELECT substr(v, 1, 4), v FROM t ORDER BY n")
                for _ in 0..<20 {
                    try connection.execute("BEGIN")
                    let rows = try read.all { ($0.text(0), $0.text(1)) }
                    try connection.execute("COMMIT")
                    guard rows.count == 200, Set(rows.map(\.1)).count == 1 else {
                        throw CofferError(.damaged, "half a commit: \(Set(rows.map(\.0)))")
                    }
                    readCount.withLock { $0 += 1 }
                }
                try connection.close()
            }
        }
        #expect(run([writer, reader, reader, reader]).isEmpty)
        #expect(readCount.withLock { $0 } > 10)
        let last = try fixture.connect()
        #expect(try last.integrity() == "ok")
        try last.close()
        #expect(fixture.pages.cachedByteCount == 0)
    }

    @Test("Several connections write in turn, each behind what the other left")
    func writersInTurn() throws {
        let fixture = try SealedFixture()
        let writers: [@Sendable () throws -> Void] = (0..<3).map { (own: Int) in
            { @Sendable () throws -> Void in
                let connection = try fixture.connect()
                try connection.execute("PRAGMA synchronous = NORMAL")
                for number in 0..<40 {
                    try connection.execute("BEGIN IMMEDIATE")
                    try connection.insert(1_000 * own + number, String(repeating: "w\(own)", count: 300))
                    try connection.execute("COMMIT")
                    if number % 13 == own { _ = try connection.checkpoint(patience: .milliseconds(5)) }
                }
                try connection.close()
            }
        }
        #expect(run(writers).isEmpty)
        #expect(try fixture.rows().count == 120)
    }
}
