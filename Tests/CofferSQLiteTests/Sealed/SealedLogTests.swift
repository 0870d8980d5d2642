import CofferSealing
import Foundation
import Testing

@testable import CofferSQLite

/// What reopening makes of a file and its log: rows, or damage, or rows of a file that has damage elsewhere.
enum Reopened: Equatable {
    case rows([String])
    case damaged
    case damagedElsewhere([String])

    init(_ fixture: SealedFixture, _ access: Connection.Access = .readWrite) throws {
        do throws(CofferError) {
            let connection = try Connection(
                path: fixture.path, subject: "copy", access: access, protection: .sealed(fixture.pages),
                cacheByteCount: 1 << 20)
            let rows = try connection.rows()
            let integrity = try connection.integrity()
            try connection.close()
            self = integrity == "ok" ? .rows(rows) : .damagedElsewhere(rows)
        } catch {
            guard error.code == .damaged else { throw error }
            self = .damaged
        }
    }
}

@Suite("The log of sealed pages, as a crash or damage leaves it")
struct SealedLogTests {
    /// A log of several transactions, with what had been committed when each of them ended.
    struct Transactions {
        let fixture: SealedFixture
        /// After each transaction, from the empty log on.
        var images: [SealedFixture.Image] = []
        var rows: [[String]] = []
        var frameCounts: [Int] = []

        var last: SealedFixture.Image { images[images.count - 1] }

        mutating func note(_ connection: borrowing Connection) throws {
            images.append(fixture.image())
            rows.append(try connection.rows())
            frameCounts.append(connection.logFrameCount)
        }
    }

    /// - Parameter isRestarted: whether the log's file has frames of an earlier log behind those that count.
    static func transactions(_ count: Int = 5, isRestarted: Bool = false) throws -> Transactions {
        var result = try Transactions(fixture: SealedFixture())
        let writer = try result.fixture.connect()
        if isRestarted {
            for number in 1...40 { try writer.insert(1_000 + number, String(repeating: "e", count: 500)) }
            #expect(try writer.checkpoint(patience: .zero, keepingLength: true))
        } else {
            try writer.insert(0, "in the file")
            #expect(try writer.checkpoint(patience: .zero))
        }
        try result.note(writer)
        for number in 1...count {
            try writer.execute("BEGIN")
            for part in 0..<2 * number { try writer.insert(10 * number + part, String(repeating: "v", count: 900)) }
            try writer.execute("COMMIT")
            try result.note(writer)
        }
        try writer.close()
        return result
    }

    @Test("A copy of the files after any commit has what was committed by then", arguments: [false, true])
    func crashAfterCommit(isRestarted: Bool) throws {
        let transactions = try Self.transactions(isRestarted: isRestarted)
        for (image, rows) in zip(transactions.images, transactions.rows) {
            #expect(try Reopened(transactions.fixture.restored(image)) == .rows(rows))
            #expect(try Reopened(transactions.fixture.restored(image), .readOnly) == .rows(rows))
        }
    }

    @Test("A log that ends within a transaction ends with the one before")
    func tornTail() throws {
        let transactions = try Self.transactions()
        let log = try #require(transactions.last.log)
        let borders = (0...(log.count - 72) / 4128).flatMap { frame in
            [-1, 0, 1, 24, 4127].map { 72 + frame * 4128 + $0 }
        }
        for end in [0, 1, 31, 32, 71] + borders where end <= log.count {
            var image = transactions.last
            image.log = Array(log[..<end])
            let frameCount = max(0, end - 72) / 4128
            let committed = try #require(transactions.frameCounts.lastIndex { $0 <= frameCount })
            #expect(try Reopened(transactions.fixture.restored(image)) == .rows(transactions.rows[committed]))
        }
    }

    @Test(
        "A damaged frame is damage, but for one of the last transaction, which ends the log", arguments: [false, true])
    func damagedFrame(isRestarted: Bool) throws {
        let transactions = try Self.transactions(isRestarted: isRestarted)
        let counts = transactions.frameCounts
        let lastBegin = counts[counts.count - 2]
        for index in 1...counts[counts.count - 1] {
            for offset in [0, 2_000, 4_087, 4_088, 4_111, 4_112, 4_127] {
                var image = transactions.last
                image.log?[SealedBytes.frameRange(index).lowerBound + offset] ^= 1
                let expected: Reopened =
                    index > lastBegin ? .rows(transactions.rows[transactions.rows.count - 2]) : .damaged
                #expect(try Reopened(transactions.fixture.restored(image)) == expected, "frame \(index), \(offset)")
            }
        }
    }

    @Test("A header that is lost is made again from the first frame, and without that, the log is damaged")
    func lostHeader() throws {
        let transactions = try Self.transactions()
        let everything = Reopened.rows(transactions.rows[transactions.rows.count - 1])
        for range in [0..<1, 0..<32, 0..<72, 40..<41, 71..<72] {
            var image = transactions.last
            for place in range { image.log?[place] ^= 0x55 }
            #expect(try Reopened(transactions.fixture.restored(image)) == everything)
            image.log?[80] ^= 1
            #expect(try Reopened(transactions.fixture.restored(image)) == .damaged)
        }
        // Of a log with one transaction nobody says that anything of it was on the disk.
        var image = transactions.images[1]
        for place in [3, 80] { image.log?[place] ^= 1 }
        #expect(try Reopened(transactions.fixture.restored(image)) == .rows(transactions.rows[0]))
    }

    @Test("An emptied log counts for nothing, whatever is behind its first bytes")
    func emptiedLog() throws {
        let fixture = try SealedFixture()
        let writer = try fixture.connect()
        for number in 1...20 { try writer.insert(number, String(repeating: "e", count: 900)) }
        #expect(try writer.checkpoint(patience: .zero, keepingLength: true))
        let rows = try writer.rows()
        let image = fixture.image()
        try writer.close()
        let log = try #require(image.log)
        #expect(log.count > 72 + 20 * 4128 && log.starts(with: Connection.emptiedLogHeader))
        #expect(Array(log[32..<72]) == [UInt8](repeating: 0, count: 40))
        var firstFrame = log
        firstFrame[80] ^= 1
        for changed in [log, firstFrame, log.enumerated().map { $0 < 72 || $0 % 50 > 0 ? $1 : ~$1 }] {
            let copy = try fixture.restored(.init(file: image.file, log: changed))
            #expect(try Reopened(copy) == .rows(rows))
        }
        // A log that is longer than that is cut.
        let other = try fixture.connect()
        try other.insert(21, "x")
        #expect(try other.checkpoint(patience: .zero))
        #expect(fixture.image().log == [])
        try other.close()
    }

    @Test("Writing goes on behind what recovery found, and is found again")
    func writingAfterRecovery() throws {
        let transactions = try Self.transactions()
        for cut in [0, 1, 4_000] {
            var image = transactions.last
            image.log?.removeLast(cut)
            let copy = try transactions.fixture.restored(image)
            let writer = try copy.connect()
            let before = try writer.rows()
            for number in 0..<5 { try writer.insert(5_000 + number, "after") }
            let crashed = copy.image()
            let again = try copy.restored(crashed, name: "again.sqlite3")
            #expect(try again.rows() == before + (0..<5).map { "\(5_000 + $0) after" })
            try writer.close()
        }
    }

    /// They may have come from memory that the system had not written: the process that wrote them was killed, say.
    @Test("What recovery read counts as synced only when a sync follows", arguments: [false, true])
    func recoveredFrames(isSynced: Bool) throws {
        let transactions = try Self.transactions()
        let copy = try transactions.fixture.restored(transactions.last)
        let writer = try copy.connect()
        if !isSynced { try writer.execute("PRAGMA synchronous = NORMAL") }
        try writer.insert(5_000, "after")
        try writer.insert(5_001, "after")
        var torn = copy.image()
        let (last, counts) = (transactions.rows.count - 1, transactions.frameCounts)
        torn.log?[SealedBytes.frameRange(counts[last]).lowerBound] ^= 1
        let expected = isSynced ? Reopened.damaged : .rows(transactions.rows[last - 1])
        #expect(try Reopened(copy.restored(torn, name: "torn.sqlite3")) == expected)
        try writer.close()
    }

    @Test("Frames that are dropped, doubled, swapped or of an earlier log never make other data")
    func movedFrames() throws {
        let transactions = try Self.transactions()
        let earlier = try Self.transactions()
        let log = try #require(transactions.last.log)
        let count = SealedBytes(image: transactions.last).frameCount
        let known = transactions.rows.map { Reopened.rows($0) } + [.damaged]
        func check(_ log: [UInt8], _ what: String) throws {
            let copy = try transactions.fixture.restored(.init(file: transactions.last.file, log: log))
            let result = try Reopened(copy)
            #expect(known.contains(result), "\(what)")
        }
        for index in 1...count {
            let range = SealedBytes.frameRange(index)
            var changed = log
            changed.removeSubrange(range)
            try check(changed, "dropped \(index)")
            changed = log
            changed.insert(contentsOf: log[range], at: range.upperBound)
            try check(changed, "doubled \(index)")
            if index < count {
                changed = log
                changed.replaceSubrange(range, with: log[SealedBytes.frameRange(index + 1)])
                changed.replaceSubrange(SealedBytes.frameRange(index + 1), with: log[range])
                try check(changed, "swapped \(index)")
            }
            changed = log
            if let other = earlier.last.log { changed.replaceSubrange(range, with: other[range]) }
            try check(changed, "of another file \(index)")
        }
        try check(log + log[72...], "appended")
        try check(Array(log[..<72]), "no frames")
    }

    @Test("A commit of a page far behind the end, under the right key, doesn't fill the disk")
    func farPage() throws {
        let transactions = try Self.transactions(2)
        var image = transactions.last
        var codec = try transactions.fixture.codec()
        let bytes = SealedBytes(image: image)
        let count = bytes.frameCount
        let header = try codec.openLogHeader(Array(bytes.log[..<72]))
        var sum = try SQLiteChecksum(ofLogHeader: #require(header))
        var last: SealedPageCodec.Frame?
        for index in 1...count {
            last = try codec.openFrame(UInt32(index), bytes.frame(index))
            if let last, index < count { sum.add(last) }
        }
        func far(_ checksum: [UInt8]) throws -> SealedPageCodec.Frame {
            let frame = try #require(last)
            let numbers: [UInt8] = [0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]
            return .init(
                header: numbers + frame.header[8..<16] + checksum, checkpointSequence: frame.checkpointSequence,
                syncedFrameCount: frame.syncedFrameCount, page: frame.page)
        }
        try sum.add(far([UInt8](repeating: 0, count: 8)))
        image.log?.replaceSubrange(
            SealedBytes.frameRange(count),
            with: try codec.sealFrame(UInt32(count), far(sum.bytes), nonce: [UInt8](repeating: 1, count: 24)))
        let copy = try transactions.fixture.restored(image)
        let writer = try copy.connect()
        #expect(throws: CofferError(.damaged)) { _ = try writer.checkpoint(patience: .zero) }
        writer.abandon()
        #expect(copy.image().file.count < 10 << 20)
    }
}
