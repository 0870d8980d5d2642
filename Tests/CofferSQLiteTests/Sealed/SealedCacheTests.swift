import CofferSealing
import Foundation
import Testing

@testable import CofferSQLite

@Suite("The cache of sealed pages")
struct SealedCacheTests {
    private static func filled(_ cacheByteCount: Int, rowCount: Int = 500) throws -> SealedFixture {
        let fixture = try SealedFixture(cacheByteCount: cacheByteCount)
        let writer = try fixture.connect()
        try writer.execute("BEGIN")
        for number in 1...rowCount { try writer.insert(number, String(repeating: "\(number) ", count: 300)) }
        try writer.execute("COMMIT")
        _ = try writer.checkpoint(patience: .zero)
        try writer.close()
        return fixture
    }

    @Test("SQLite borrows pages: what one connection read, another finds, and neither keeps a copy")
    func shared() throws {
        let fixture = try Self.filled(16 << 20)
        // Of its own, each connection has room for 64 KiB.
        let first = try fixture.connect(.readOnly, cacheByteCount: 0)
        let second = try fixture.connect(.readOnly)
        #expect(try first.rows().count == 500)
        let filled = fixture.pages.cachedByteCount
        #expect(filled > 500 * 1_000)
        // With the file gone from under it, only what is cached can be read.
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: fixture.path))
        let bytes = fixture.image().file
        try file.seek(toOffset: 4096)
        try file.write(contentsOf: [UInt8](repeating: 0, count: bytes.count - 4096))
        #expect(try second.rows().count == 500)
        #expect(fixture.pages.cachedByteCount == filled)
        try first.close()
        try second.close()
        // Nothing outlasts the connections: a file that was changed meanwhile is seen.
        #expect(fixture.pages.cachedByteCount == 0)
        #expect(try Reopened(fixture, .readOnly) == .damaged)
    }

    @Test(
        "The cache of opened pages never takes more than its budget, which can change while pages are lent",
        arguments: [0, 1, 200_000])
    func budget(byteCount: Int) throws {
        let fixture = try Self.filled(byteCount)
        let connection = try fixture.connect(.readOnly)
        let atLeastOnePageEach = byteCount == 0 ? 0 : 16 * 4_200
        for _ in 0..<2 {
            #expect(try connection.rows().count == 500)
            #expect(fixture.pages.cachedByteCount <= max(byteCount, atLeastOnePageEach))
        }
        fixture.pages.setCache(byteCount: 8 << 20)
        let rows = Statement(connection, "SELECT n, v FROM t ORDER BY n")
        var count = 0
        while try rows.step() {
            count += 1
            #expect(rows.text(1).hasPrefix("\(rows.integer(0)) "))
            if count.isMultiple(of: 50) { fixture.pages.setCache(byteCount: count.isMultiple(of: 100) ? 0 : 1 << 20) }
        }
        #expect(count == 500)
        rows.reset()
        fixture.pages.setCache(byteCount: 0)
        #expect(fixture.pages.cachedByteCount == 0)
        try connection.close()
    }

    @Test("Frames leave the cache with their log, and pages with the end of the file")
    func gone() throws {
        let fixture = try Self.filled(16 << 20, rowCount: 1)
        let writer = try fixture.connect()
        for number in 2...200 { try writer.insert(number, String(repeating: "x", count: 1_000)) }
        let frames = fixture.pages.cachedByteCount
        #expect(frames > 200 * 4_096)
        #expect(try writer.checkpoint(patience: .zero, keepingLength: true))
        #expect(fixture.pages.cachedByteCount < frames / 10)
        #expect(try writer.rows().count == 200)
        let pages = fixture.pages.cachedByteCount
        #expect(pages > 200 * 1_000)
        try writer.execute("DELETE FROM t; PRAGMA incremental_vacuum")
        #expect(try writer.checkpoint(patience: .zero))
        #expect(fixture.pages.cachedByteCount < pages / 10)
        try writer.close()
    }

    @Test("What no SQLite does in a test's time holds too: lent pages that are dropped, and content that came too late")
    func probes() throws {
        for (name, probe) in CacheProbes.all { #expect(probe() == 1, "\(name)") }
    }

    @Test("A checkpoint that writes a page, or cuts it off, takes the old one out of the cache")
    func dropped() throws {
        let fixture = try Self.filled(16 << 20, rowCount: 200)
        let writer = try fixture.connect()
        let reader = try fixture.connect(.readOnly)
        for round in 0..<5 {
            #expect(try reader.rows().count == 200 - 30 * round)
            let update = Statement(writer, "UPDATE t SET v = ?1")
            try update.bind(1, "round \(round)" + String(repeating: ".", count: 700))
            try update.run()
            try writer.execute(assembled: "DELETE FROM t WHERE n > \(200 - 30 * (round + 1))")
            try writer.execute("PRAGMA incremental_vacuum")
            #expect(try writer.checkpoint(patience: .zero))
            let rows = try reader.rows()
            #expect(rows.count == 200 - 30 * (round + 1))
            #expect(rows.allSatisfy { $0.contains(" round \(round)") })
            #expect(try reader.integrity() == "ok")
        }
        try writer.close()
        try reader.close()
    }
}
