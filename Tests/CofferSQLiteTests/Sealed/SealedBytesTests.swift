import CofferSealing
import Foundation
import Testing

@testable import CofferSQLite

@Suite("The bytes of sealed pages")
struct SealedBytesTests {
    private static let canary = "canary-of-a-row"
    private static let text = String(repeating: canary, count: 60)

    /// A file and a log with rows in both, some longer than a page.
    private func filled() throws -> (SealedFixture, SealedFixture.Image) {
        let fixture = try SealedFixture()
        let writer = try fixture.connect()
        for number in 1...30 { try writer.insert(number, Self.text) }
        try writer.insert(31, String(repeating: Self.canary, count: 1_000))
        _ = try writer.checkpoint(patience: .zero)
        for number in 32...40 { try writer.insert(number, Self.text) }
        let image = fixture.image()
        try writer.close()
        return (fixture, image)
    }

    @Test("Every page of a file opens alone, and is what SQLite made")
    func pages() throws {
        let (fixture, image) = try filled()
        let bytes = SealedBytes(image: image)
        var codec = try fixture.codec()
        #expect(image.file.count.isMultiple(of: 4096) && bytes.pageCount > 5)
        let first = try #require(try codec.openPage(1, bytes.page(1)))
        #expect(first.starts(with: Array("SQLite format 3\0".utf8)))
        #expect(first[16] == 0x10 && first[17] == 0 && first[20] == 40)
        #expect(number(first[28...]) == UInt32(bytes.pageCount))
        #expect(number(first[52...]) > 0 && number(first[64...]) == 1, "auto_vacuum is incremental")
        for page in 2...bytes.pageCount {
            #expect(try codec.openPage(UInt32(page), bytes.page(page)) != nil)
            #expect(try codec.openPage(UInt32(page) + 1, bytes.page(page)) == nil)
            #expect(try codec.openFrame(UInt32(page), bytes.page(page) + [UInt8](repeating: 0, count: 32)) == nil)
        }
    }

    @Test(
        "Pages that SQLite leaves out of a file are sealed zeros, also where the file was longer once",
        arguments: [false, true])
    func holes(wasLonger: Bool) throws {
        let fixture = try SealedFixture(schema: false)
        let connection = try fixture.connect(.create)
        try connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, v); CREATE TABLE other (v)")
        if wasLonger {
            for number in 1...200 { try connection.insert(number, String(repeating: "y", count: 3_000)) }
            #expect(try connection.checkpoint(patience: .zero))
            try connection.execute("DELETE FROM t; PRAGMA incremental_vacuum")
            #expect(try connection.checkpoint(patience: .zero))
            #expect(SealedBytes(image: fixture.image()).pageCount < 10)
        }
        // The pages of rows that are deleted before they are written are free, and SQLite doesn't write them.
        try connection.execute("PRAGMA secure_delete = OFF")
        try connection.execute("BEGIN")
        for number in 1...100 { try connection.insert(number, String(repeating: "x", count: 3_000)) }
        try connection.execute("INSERT INTO other VALUES (zeroblob(9000)); DELETE FROM t; COMMIT")
        try connection.close()
        let bytes = SealedBytes(image: fixture.image())
        var codec = try fixture.codec()
        let zeros = [UInt8](repeating: 0, count: 4056)
        var zeroCount = 0
        for page in 1...bytes.pageCount {
            let opened = try codec.openPage(UInt32(page), bytes.page(page))
            #expect(opened != nil, "page \(page)")
            if opened == zeros { zeroCount += 1 }
        }
        #expect(zeroCount > 50)
    }

    /// As where SQLite is built to map files, or told to lengthen them in large pieces.
    @Test("What SQLite says of a file's size in advance makes no pages that aren't sealed")
    func sizeHint() throws {
        let folder = TemporaryFolder()
        let path = folder.file("db.sqlite3")
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        try Library.loadCode()
        #expect(sizeHintChangesNothing(path))
    }

    @Test("Every frame of a log opens alone, and says what SQLite's own log would, and what was synced")
    func frames() throws {
        let (fixture, image) = try filled()
        let bytes = SealedBytes(image: image)
        var codec = try fixture.codec()
        let header = try #require(try codec.openLogHeader(Array(bytes.log[..<72])))
        #expect(number(header) & ~1 == 0x377f_0682 && number(header[4...]) == 3_007_000)
        #expect(number(header[8...]) == 4096)
        #expect(bytes.log.count == 72 + bytes.frameCount * 4128 && bytes.frameCount >= 9)
        var (ended, sum) = (0, SQLiteChecksum(ofLogHeader: header))
        #expect(sum.bytes == Array(header[24...]))
        for index in 1...bytes.frameCount {
            let frame = try #require(try codec.openFrame(UInt32(index), bytes.frame(index)))
            #expect(Array(frame.header[8..<16]) == Array(header[16..<24]), "salts")
            #expect(frame.checkpointSequence == number(header[12...]))
            #expect(frame.syncedFrameCount == UInt32(ended))
            sum.add(frame)
            #expect(sum.bytes == Array(frame.header[16...]))
            #expect(try codec.openFrame(UInt32(index) + 1, bytes.frame(index)) == nil)
            if number(frame.header[4...]) != 0 { ended = index }
        }
        #expect(ended == bytes.frameCount)
    }

    @Test("Nothing of a row is in any file, though it is in what the files' pages open to")
    func canary() throws {
        let (fixture, image) = try filled()
        let bytes = SealedBytes(image: image)
        var codec = try fixture.codec()
        let canary = Data(Self.canary.utf8)
        for name in try fixture.folder.names() {
            let content = try Data(contentsOf: URL(fileURLWithPath: fixture.folder.file(name)))
            #expect(content.range(of: canary) == nil, "\(name)")
            #expect(content.range(of: Data("CREATE TABLE".utf8)) == nil, "\(name)")
        }
        #expect(Data(image.file + bytes.log).range(of: canary) == nil)
        let opened = try (1...bytes.pageCount).flatMap { try codec.openPage(UInt32($0), bytes.page($0)) ?? [] }
        #expect(Data(opened).range(of: canary) != nil)
        #expect(Data(opened).range(of: Data("CREATE TABLE".utf8)) != nil)
        let frames = try (1...bytes.frameCount).flatMap { try codec.openFrame(UInt32($0), bytes.frame($0))?.page ?? [] }
        #expect(Data(frames).range(of: canary) != nil)
    }

    @Test("No nonce is used twice: not by rewritten pages and frames, not by several connections, not after reopening")
    func nonces() throws {
        let fixture = try SealedFixture()
        var seen: [[UInt8]: [UInt8]] = [:]
        var repeatedCount = 0
        func look() {
            for (nonce, message) in SealedBytes(image: fixture.image()).messages {
                if seen.updateValue(message, forKey: nonce) ?? message != message { repeatedCount += 1 }
            }
        }
        for session in 1...3 {
            let pages = try SealedPages(
                path: fixture.path, subject: "test", key: fixture.key, binding: fixture.binding, cacheByteCount: 0)
            let first = try fixture.connect(cacheByteCount: 1, pages: pages)
            let second = try fixture.connect(pages: pages)
            for round in 1...10 {
                try first.insert(1_000 * session + 2 * round, Self.text)
                look()
                try second.insert(1_000 * session + 2 * round + 1, Self.text)
                look()
                if round.isMultiple(of: 4) { _ = try first.checkpoint(patience: .zero, keepingLength: round == 4) }
                look()
            }
            try first.close()
            try second.close()
        }
        #expect(repeatedCount == 0)
        #expect(seen.count > 60)
        let prefixes = Set(seen.keys.map { Array($0[..<12]) })
        #expect(prefixes.count == 1, "the fixture keeps the session alive")
        let other = try #require(SealedBytes(image: SealedFixture().image()).messages.first)
        #expect(!prefixes.contains(Array(other.nonce[..<12])))
    }

    @Test("A file whose pages were sealed by another implementation reads as before")
    func sealedElsewhere() throws {
        let (fixture, image) = try filled()
        let bytes = SealedBytes(image: image)
        var codec = try fixture.codec()
        var nonce = [UInt8](repeating: 0, count: 24)
        func next() -> [UInt8] {
            nonce[23] += 1
            return nonce
        }
        var copy = SealedFixture.Image(file: [], log: [])
        for page in 1...bytes.pageCount {
            let opened = try #require(try codec.openPage(UInt32(page), bytes.page(page)))
            copy.file += try codec.sealPage(UInt32(page), opened, nonce: next())
        }
        let header = try #require(try codec.openLogHeader(Array(bytes.log[..<72])))
        copy.log = try codec.sealLogHeader(header, nonce: next())
        for index in 1...bytes.frameCount {
            let opened = try #require(try codec.openFrame(UInt32(index), bytes.frame(index)))
            copy.log? += try codec.sealFrame(UInt32(index), opened, nonce: next())
        }
        let restored = try fixture.restored(copy)
        #expect(try restored.rows() == fixture.rows())
        #expect(try restored.rows().count == 40)
    }

    @Test("Another key, store, generation or tag opens nothing, and the file stays as it was")
    func anotherBinding() throws {
        let (fixture, _) = try filled()
        let own = fixture.binding
        let others = [
            (try SymmetricKey(), own),
            (fixture.key, SealedPageBinding(storeUUID: Array(2...17), generation: 7, generationTag: own.generationTag)),
            (fixture.key, SealedPageBinding(storeUUID: own.storeUUID, generation: 8, generationTag: own.generationTag)),
            (fixture.key, SealedPageBinding(storeUUID: own.storeUUID, generation: 7, generationTag: 1)),
        ]
        let before = fixture.image()
        for (index, (key, binding)) in others.enumerated() {
            let copy = fixture.folder.file("other\(index).sqlite3")
            try FileManager.default.copyItem(atPath: fixture.path, toPath: copy)
            let pages = try SealedPages(
                path: copy, subject: "other", key: key, binding: binding, cacheByteCount: 1 << 20)
            for access in [Connection.Access.readWrite, .readOnly, .immutable] {
                let error = #expect(throws: CofferError.self) {
                    _ = try Connection(
                        path: copy, subject: "other", access: access, protection: .sealed(pages),
                        cacheByteCount: 1 << 20)
                }
                #expect(error?.code == .damaged)
            }
            #expect(FileManager.default.contents(atPath: copy).map { [UInt8]($0) } == before.file)
        }
    }
}

/// SQLite's checksum of a log (sqlite.org/fileformat2.html, section 4.2).
struct SQLiteChecksum {
    private var sums: (UInt32, UInt32) = (0, 0)
    private let isBigEndian: Bool

    init(ofLogHeader header: [UInt8]) {
        isBigEndian = header[3] & 1 == 1
        add(header[..<24])
    }

    mutating func add(_ frame: SealedPageCodec.Frame) {
        add(frame.header[..<8])
        add(frame.page[...])
        add([UInt8](repeating: 0, count: 40)[...])
    }

    private mutating func add(_ bytes: ArraySlice<UInt8>) {
        for start in stride(from: bytes.startIndex, to: bytes.endIndex, by: 8) {
            sums.0 &+= word(bytes[start...]) &+ sums.1
            sums.1 &+= word(bytes[(start + 4)...]) &+ sums.0
        }
    }

    private func word(_ bytes: ArraySlice<UInt8>) -> UInt32 { isBigEndian ? number(bytes) : number(bytes).byteSwapped }

    var bytes: [UInt8] { [sums.0, sums.1].flatMap { sum in withUnsafeBytes(of: sum.bigEndian, Array.init) } }
}
