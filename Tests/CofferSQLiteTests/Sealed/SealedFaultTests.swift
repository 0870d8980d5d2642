import CofferSealing
import Foundation
import TestSupport
import Testing

@testable import CofferSQLite

@Suite("Sealed pages on files that fail", .serialized)
struct SealedFaultTests {
    /// Transactions that insert, replace and delete, some larger than the cache, some rolled back, with checkpoints between:
    /// the same each time, so that the calls they make are too.
    struct Work {
        private(set) var states: [[String]] = []
        /// How many transactions were acknowledged.
        private(set) var acknowledged = 0
        /// After how many operations each of them was.
        private(set) var operationCounts: [Int] = []

        init(before: [String]) { states = [before] }

        mutating func run(
            _ connection: borrowing Connection, keepingLength: Bool, syncsCommits: Bool = true
        ) throws(CofferError) {
            try connection.execute("PRAGMA cache_size = 10")
            if !syncsCommits { try connection.execute("PRAGMA synchronous = NORMAL") }
            var rows: [Int: String] = [:]
            for transaction in 1...7 {
                try connection.execute("BEGIN")
                let before = rows
                for row in 0..<(transaction.isMultiple(of: 3) ? 30 : 2) {
                    let put = Statement(connection, "INSERT OR REPLACE INTO t VALUES (?1, ?2)")
                    let number = (transaction * 7 + row * 3) % 40
                    let text = String(repeating: "\(transaction) ", count: 500)
                    try put.bind(1, Int64(number))
                    try put.bind(2, text)
                    try put.run()
                    rows[number] = text
                }
                if transaction == 4 {
                    rows = before
                    try connection.execute("ROLLBACK")
                    continue
                }
                states.append(rows.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" })
                try connection.execute("COMMIT")
                acknowledged += 1
                operationCounts.append(FaultyFiles.operationCount)
                if transaction == 2 || transaction == 5 {
                    _ = try connection.checkpoint(patience: .zero, keepingLength: keepingLength)
                }
            }
            guard try connection.rows() == states[acknowledged] else {
                throw CofferError(.damaged, "other rows than were written")
            }
        }
    }

    /// What may be found afterwards: all that was acknowledged, and perhaps the transaction that was not.
    private func check(_ found: Reopened, _ work: Work, _ what: String) {
        let possible = work.states[work.acknowledged...].prefix(2).map(Reopened.rows)
        #expect(possible.contains(found), "\(what), \(work.acknowledged) acknowledged")
    }

    @Test(
        "Whichever call fails, once or from then on, the error says so, and what was acknowledged is there",
        arguments: FaultyFiles.Fault.allCases, [false, true])
    func everyCall(fault: FaultyFiles.Fault, goesOn: Bool) throws {
        let vfs = try FaultyFiles.vfs()
        defer { FaultyFiles.reset() }
        let start = try SealedFixture()
        let image = start.image()
        func attempt(_ call: Int) throws -> Bool {
            let fixture = try start.restored(image, name: "faulty.sqlite3", cacheByteCount: 100_000, beneath: vfs)
            var work = Work(before: [])
            FaultyFiles.arm(call, fault, goesOn: goesOn)
            var failure: CofferError?
            do throws(CofferError) {
                let connection = try Connection(
                    path: fixture.path, subject: "test", access: .readWrite, protection: .sealed(fixture.pages),
                    cacheByteCount: 1 << 20)
                do throws(CofferError) {
                    try work.run(connection, keepingLength: true)
                    try connection.close()
                } catch {
                    failure = error
                    try? connection.close()
                }
            } catch { failure = error }
            let isReached = FaultyFiles.callCount >= call
            FaultyFiles.arm(0, fault, goesOn: false)
            if let failure {
                // Never damage, which a user would be told to salvage.
                #expect([.ioFailed, .noSpace].contains(failure.code), "call \(call): \(failure)")
                #expect(isReached, "\(failure)")
            }
            check(try Reopened(start.restored(fixture.image())), work, "call \(call), a copy")
            check(try Reopened(fixture), work, "call \(call)")
            return isReached
        }
        var call = 1
        while try attempt(call) { call += 1 }
        #expect(call > 100)
    }

    /// SQLite gives such a transaction up and writes over it, but its last frame was on the disk for a while.
    @Test("Frames of a transaction whose sync failed are not missed when others were written over them")
    func failedCommit() throws {
        let vfs = try FaultyFiles.vfs()
        defer { FaultyFiles.reset() }
        let start = try SealedFixture()
        let fixture = try start.restored(start.image(), name: "faulty.sqlite3", beneath: vfs)
        let writer = try fixture.connect()
        try writer.insert(1, "kept")
        for round in 0..<4 {
            // A reader of before keeps the log as it is, where the checkpoint syncs all of it.
            let reader = try fixture.connect(.readOnly)
            try reader.execute("BEGIN; SELECT * FROM t")
            try writer.insert(50 + round, "kept")
            let rows = try writer.rows()
            let before = writer.logFrameCount
            FaultyFiles.armSync()
            let error = #expect(throws: CofferError.self) {
                try writer.insert(100, String(repeating: "lost ", count: 5_000))
            }
            #expect(error?.code == .ioFailed)
            let isInTransaction = writer.isInTransaction
            #expect(!isInTransaction)
            if round.isMultiple(of: 2) { #expect(try !writer.checkpoint(patience: .zero)) }
            try reader.execute("COMMIT")
            try reader.close()
            #expect(try writer.rows() == rows)
            try writer.insert(round + 2, String(repeating: "kept ", count: 3_000))
            #expect(writer.logFrameCount > before + 3)
            #expect(try Reopened(start.restored(fixture.image())) == .rows(writer.rows()))
            // And a torn end is one, whatever stands behind it.
            var torn = fixture.image()
            torn.log?[SealedBytes.frameRange(before + 1).lowerBound] ^= 1
            #expect(try Reopened(start.restored(torn)) == .rows(rows))
        }
        try writer.close()
    }

    @Test("A sync that failed has put nothing on the disk that could be missed")
    func failedCheckpoint() throws {
        let vfs = try FaultyFiles.vfs()
        defer { FaultyFiles.reset() }
        let start = try SealedFixture()
        let fixture = try start.restored(start.image(), name: "faulty.sqlite3", beneath: vfs)
        let writer = try fixture.connect()
        try writer.execute("PRAGMA synchronous = NORMAL")
        for number in 1...5 { try writer.insert(number, "not synced") }
        FaultyFiles.armSync()
        let error = #expect(throws: CofferError.self) { _ = try writer.checkpoint(patience: .zero) }
        #expect(error?.code == .ioFailed)
        for number in 6...10 { try writer.insert(number, "not synced") }
        let rows = try writer.rows()
        for index in 1...10 {
            var torn = fixture.image()
            torn.log?[SealedBytes.frameRange(index).lowerBound] ^= 1
            #expect(try Reopened(start.restored(torn)) == .rows(Array(rows.prefix(index - 1))))
        }
        try writer.close()
    }

    @Test("Whichever call fails while a log is recovered, it is an error, and nothing is lost")
    func recovery() throws {
        let vfs = try FaultyFiles.vfs()
        defer { FaultyFiles.reset() }
        let transactions = try SealedLogTests.transactions()
        let rows = transactions.rows[transactions.rows.count - 1]
        for fault in FaultyFiles.Fault.allCases {
            var call = 1
            var isReached = true
            while isReached {
                let fixture = try transactions.fixture.restored(
                    transactions.last, name: "faulty.sqlite3", beneath: vfs)
                FaultyFiles.arm(call, fault, goesOn: false)
                do {
                    // SQLite may get over an error, and what it finds then must be all there is. `integrity_check` calls it
                    // an error of the file when a page can't be read.
                    let found = try Reopened(fixture)
                    #expect([.rows(rows), .damagedElsewhere(rows)].contains(found), "call \(call) \(fault)")
                } catch let error as CofferError {
                    #expect([.ioFailed, .noSpace].contains(error.code), "call \(call) \(fault): \(error)")
                }
                isReached = FaultyFiles.callCount >= call
                FaultyFiles.arm(0, fault, goesOn: false)
                #expect(try Reopened(fixture) == .rows(rows), "call \(call) \(fault)")
                call += 1
            }
            #expect(call > 20)
        }
    }
}
