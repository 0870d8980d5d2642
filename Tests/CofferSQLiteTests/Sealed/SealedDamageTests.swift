import CofferSealing
import Foundation
import Testing

@testable import CofferSQLite

@Suite("A damaged file of sealed pages")
struct SealedDamageTests {
    /// A file without a log, of a table with overflowing rows and an index.
    private static func file(_ text: String = "row") throws -> (SealedFixture, SealedFixture.Image, [String]) {
        let fixture = try SealedFixture()
        let writer = try fixture.connect()
        try writer.execute("CREATE INDEX t_by_v ON t (substr(v, 1, 20))")
        for number in 1...12 { try writer.insert(number, String(repeating: "\(text) \(number) ", count: 30)) }
        try writer.insert(13, String(repeating: text, count: 4_000))
        let rows = try writer.rows()
        try writer.close()
        let image = fixture.image()
        #expect(image.log == nil)
        return (fixture, image, rows)
    }

    /// Reads everything of the file at its path in every way, with a cache and without.
    private static func outcomes(_ fixture: SealedFixture) throws -> [Reopened] {
        try [Connection.Access.immutable, .readOnly].map { try Reopened(fixture, $0) }
    }

    @Test("Whichever byte of a file is changed, its page is damage: nothing else is ever read from it")
    func everyByte() throws {
        let (fixture, image, rows) = try Self.file()
        let copy = try fixture.restored(image)
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: copy.path))
        func outcome() throws -> Reopened { try Reopened(copy, .immutable) }
        #expect(try outcome() == .rows(rows))
        for page in 1...SealedBytes(image: image).pageCount {
            let start = (page - 1) * 4096
            // Nonce and tag whole, the ciphertext at intervals that meet every position of a block.
            for offset in Array(stride(from: 0, to: 4056, by: 61)) + Array(4056..<4096) {
                try file.seek(toOffset: UInt64(start + offset))
                try file.write(contentsOf: [image.file[start + offset] ^ 0x10])
                #expect(
                    try [.damaged, .damagedElsewhere(rows)].contains(outcome()), "page \(page), byte \(offset)")
                try file.seek(toOffset: UInt64(start + offset))
                try file.write(contentsOf: [image.file[start + offset]])
            }
        }
        #expect(try outcome() == .rows(rows))
    }

    @Test("A file that was cut anywhere is damage, and never fewer rows")
    func truncation() throws {
        let (fixture, image, rows) = try Self.file()
        let pageCount = SealedBytes(image: image).pageCount
        let borders = (1..<pageCount).flatMap { page in [-1, 0, 1].map { page * 4096 + $0 } }
        for end in [1, 99, 100, 101, 4095] + borders + [image.file.count - 1] {
            let cut = try fixture.restored(.init(file: Array(image.file[..<end]), log: nil))
            for outcome in try Self.outcomes(cut) {
                #expect([.damaged, .damagedElsewhere(rows)].contains(outcome), "\(end)")
            }
        }
    }

    /// SQLite takes pages behind the end for zeros, and those for the end of a value that overflows.
    @Test("A file that was cut is damage for who reads also where its log says how long it is")
    func truncationBehindLog() throws {
        let fixture = try SealedFixture()
        let writer = try fixture.connect()
        try writer.insert(1, "in the file")
        // The end of this value is the file's last page.
        try writer.insert(2, String(repeating: "end", count: 4_000))
        #expect(try writer.checkpoint(patience: .zero))
        try writer.execute("UPDATE t SET v = 'in the log' WHERE n = 1")
        let image = fixture.image()
        let rows = try writer.rows()
        try writer.close()
        for pageCount in 1...SealedBytes(image: image).pageCount {
            let file = Array(image.file[..<(pageCount * 4096)])
            let copy = try fixture.restored(.init(file: file, log: image.log))
            do {
                let connection = try copy.connect(.readOnly)
                let isWhole = try connection.rows() == rows
                #expect(isWhole, "\(pageCount) pages")
            } catch let error as CofferError {
                #expect(error.code == .damaged && file.count < image.file.count, "\(pageCount) pages: \(error)")
            }
        }
    }

    @Test("Pages that were swapped, doubled, zeroed, or come from another file, or from a log, are damage")
    func movedPages() throws {
        let (fixture, image, rows) = try Self.file()
        let (_, other, _) = try Self.file("other")
        let bytes = SealedBytes(image: image)
        func check(_ file: [UInt8], _ what: String) throws {
            for outcome in try Self.outcomes(fixture.restored(.init(file: file, log: nil))) {
                #expect([.damaged, .damagedElsewhere(rows)].contains(outcome), "\(what)")
            }
        }
        for page in 1...bytes.pageCount {
            let range = SealedBytes.pageRange(page)
            var changed = image.file
            changed.replaceSubrange(range, with: [UInt8](repeating: 0, count: 4096))
            try check(changed, "zeroed \(page)")
            changed = image.file
            changed.replaceSubrange(range, with: other.file[range])
            try check(changed, "of another file \(page)")
            changed = image.file
            changed.replaceSubrange(range, with: bytes.page(page % bytes.pageCount + 1))
            try check(changed, "another page \(page)")
        }
        // What is behind the last page that the header counts is SQLite's to ignore.
        #expect(try Reopened(fixture.restored(.init(file: image.file + image.file, log: nil))) == .rows(rows))
    }

    @Test("A header that says another page size or reserve, under the right key, is never written to")
    func lyingHeader() throws {
        let (fixture, image, _) = try Self.file()
        var codec = try fixture.codec()
        let page = try #require(try codec.openPage(1, SealedBytes(image: image).page(1)))
        for (offset, value) in [(16, 0x02), (16, 0x20), (20, 0), (20, 39), (20, 80), (21, 1)] as [(Int, UInt8)] {
            var changed = page
            changed[offset] = value
            var copy = image
            copy.file.replaceSubrange(
                0..<4096, with: try codec.sealPage(1, changed, nonce: [UInt8](repeating: value, count: 24)))
            let restored = try fixture.restored(copy)
            let error = #expect(throws: CofferError.self) {
                let connection = try restored.connect()
                try connection.insert(100, String(repeating: "x", count: 10_000))
                _ = try connection.checkpoint(patience: .zero)
            }
            #expect([.damaged, .ioFailed].contains(error?.code), "\(offset) \(value) \(String(describing: error))")
        }
    }

    @Test("A journal that somebody put beside the file isn't one")
    func journalBeside() throws {
        let (fixture, image, rows) = try Self.file()
        let copy = try fixture.restored(image)
        let journal = copy.path + "-journal"
        try Data([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7] + [UInt8](repeating: 1, count: 4_096))
            .write(to: URL(fileURLWithPath: journal))
        #expect(try Self.outcomes(copy) == [.rows(rows), .rows(rows)])
        #expect(try Reopened(copy) == .rows(rows))
        #expect(FileManager.default.fileExists(atPath: journal))
    }
}
