import CofferSealing
import Foundation
import Testing

@testable import CofferSQLite

@Suite("Which file has which sealed pages")
struct SealedRegistryTests {
    private func pages(
        _ fixture: SealedFixture, key: SymmetricKey? = nil, generation: UInt64 = 7
    ) throws -> SealedPages {
        let binding = SealedPageBinding(
            storeUUID: fixture.binding.storeUUID, generation: generation,
            generationTag: fixture.binding.generationTag)
        return try SealedPages(
            path: fixture.path, subject: "again", key: key ?? fixture.key, binding: binding, cacheByteCount: 1 << 20)
    }

    @Test("Pages that are made twice for a file are the same, and their connections see each other")
    func twice() throws {
        let fixture = try SealedFixture()
        let again = try pages(fixture)
        let writer = try fixture.connect()
        let reader = try fixture.connect(.readOnly, pages: again)
        for number in 1...20 {
            try writer.insert(number, "row")
            #expect(try reader.rows().count == number)
        }
        #expect(again.cachedByteCount == fixture.pages.cachedByteCount && again.cachedByteCount > 0)
        try reader.close()
        try writer.close()
    }

    @Test("Another key or binding for a file that is open is busy, and for one that is closed, damage")
    func anotherKey() throws {
        let fixture = try SealedFixture()
        let writer = try fixture.connect()
        #expect(throws: CofferError(.busy)) { _ = try pages(fixture, key: SymmetricKey()) }
        #expect(throws: CofferError(.busy)) { _ = try pages(fixture, generation: 8) }
        try writer.insert(1, "row")
        try writer.close()
        let other = try pages(fixture, generation: 8)
        #expect(throws: CofferError(.damaged)) { _ = try fixture.connect(pages: other) }
        // The older ones are of no use while the newer ones are there.
        #expect(throws: CofferError(.busy)) { _ = try fixture.connect() }
        _ = consume other
        #expect(try SealedFixtureAgain(fixture).rows() == ["1 row"])
    }

    /// The same file with new pages.
    private struct SealedFixtureAgain {
        let fixture: SealedFixture
        init(_ fixture: SealedFixture) { self.fixture = fixture }

        func rows() throws -> [String] {
            let pages = try SealedPages(
                path: fixture.path, subject: "test", key: fixture.key, binding: fixture.binding,
                cacheByteCount: 1 << 20)
            let connection = try fixture.connect(pages: pages)
            let rows = try connection.rows()
            try connection.close()
            return rows
        }
    }

    /// As after a failed write, when a connection is left as it is, and its store is replaced.
    @Test("A file that takes another's place has pages of its own, whatever is still open")
    func replaced() throws {
        let fixture = try SealedFixture()
        let old = try fixture.connect()
        try old.insert(1, "old")
        let other = try SealedFixture()
        try FileManager.default.removeItem(atPath: fixture.path)
        try FileManager.default.moveItem(atPath: fixture.logPath, toPath: fixture.folder.file("moved"))
        try FileManager.default.copyItem(atPath: other.path, toPath: fixture.path)
        let new = try SealedPages(
            path: fixture.path, subject: "new", key: other.key, binding: other.binding, cacheByteCount: 1 << 20)
        let connection = try fixture.connect(pages: new)
        #expect(try connection.rows() == [])
        try connection.insert(2, "new")
        #expect(try old.rows() == ["1 old"])
        #expect(try connection.rows() == ["2 new"])
        old.abandon()
        try connection.close()
    }

    /// They would share the index of another log otherwise, and pages that aren't the file's.
    @Test("No connection is opened to a copy that took the place of a file that others have open")
    func replacedByCopy() throws {
        let fixture = try SealedFixture()
        let image = fixture.image()
        let old = try fixture.connect()
        try old.insert(1, "old")
        for path in [fixture.path, fixture.logPath] {
            try FileManager.default.moveItem(atPath: path, toPath: path + ".moved")
        }
        try Data(image.file).write(to: URL(fileURLWithPath: fixture.path))
        #expect(throws: CofferError(.busy)) { _ = try fixture.connect() }
        #expect(try old.rows() == ["1 old"])
        // Pages made now are the copy's.
        let connection = try fixture.connect(pages: pages(fixture))
        #expect(try connection.rows() == [])
        try connection.close()
        old.abandon()
    }

    @Test("Pages that are made before their file, or before a copy takes its place, are the same as those made after")
    func madeBeforeFile() throws {
        let fixture = try SealedFixture()
        let image = fixture.image()
        try FileManager.default.removeItem(atPath: fixture.path)
        let before = try pages(fixture)
        for round in 1...2 {
            try Data(image.file).write(to: URL(fileURLWithPath: fixture.path), options: .atomic)
            let writer = try fixture.connect(pages: before)
            let other = try fixture.connect(pages: pages(fixture))
            try writer.insert(1, "round \(round)")
            #expect(try other.rows() == ["1 round \(round)"])
            try other.insert(2, "other")
            #expect(try writer.rows().count == 2)
            try other.close()
            try writer.close()
        }
    }

    @Test("A connection that closes late doesn't delete the log of the file that took its file's place")
    func lateClose() throws {
        let fixture = try SealedFixture()
        let old = try fixture.connect()
        try old.insert(1, "old")
        let other = try SealedFixture()
        try FileManager.default.removeItem(atPath: fixture.path)
        try FileManager.default.moveItem(atPath: fixture.logPath, toPath: fixture.folder.file("moved"))
        try FileManager.default.copyItem(atPath: other.path, toPath: fixture.path)
        let new = try SealedPages(
            path: fixture.path, subject: "new", key: other.key, binding: other.binding, cacheByteCount: 1 << 20)
        let connection = try fixture.connect(pages: new)
        try connection.insert(2, "new")
        try old.close()
        #expect(try Reopened(other.restored(fixture.image())) == .rows(["2 new"]))
        try connection.close()
        #expect(!FileManager.default.fileExists(atPath: fixture.logPath), "its own log it deletes")
    }

    @Test("A forked process seals nothing under the nonces of the session that it inherits")
    func forkedProcess() async throws {
        await #expect(processExitsWith: .success) {
            try Library.loadCode()
            guard forkedProcessSealsAlone(TemporaryFolder().file("db.sqlite3")) else { exit(1) }
        }
    }

    @Test("A file whose pages nobody has made, or that isn't empty, can't be opened, or be made empty")
    func unknown() throws {
        let fixture = try SealedFixture()
        #expect(throws: CofferError.self) { try fixture.pages.writeEmptyDatabase() }
        let path = fixture.folder.file("other.sqlite3")
        try FileManager.default.copyItem(atPath: fixture.path, toPath: path)
        #expect(throws: CofferError(.ioFailed)) {
            _ = try Connection(
                path: path, subject: "other", access: .readWrite, protection: .sealed(fixture.pages),
                cacheByteCount: 1 << 20)
        }
        let missing = try SealedPages(
            path: fixture.folder.file("missing.sqlite3"), subject: "missing", key: fixture.key,
            binding: fixture.binding, cacheByteCount: 0)
        #expect(throws: CofferError(.ioFailed)) { try missing.writeEmptyDatabase() }
        #expect(!FileManager.default.fileExists(atPath: missing.path))
        // SQLite would make a database without a reserve of it.
        let empty = fixture.folder.file("empty.sqlite3")
        #expect(FileManager.default.createFile(atPath: empty, contents: nil))
        let emptyPages = try SealedPages(
            path: empty, subject: "empty", key: fixture.key, binding: fixture.binding, cacheByteCount: 0)
        #expect(throws: CofferError(.ioFailed)) {
            let connection = try Connection(
                path: empty, subject: "empty", access: .create, protection: .sealed(emptyPages),
                cacheByteCount: 1 << 20)
            try connection.execute("PRAGMA user_version = 1")
        }
        let error = #expect(throws: CofferError.self) {
            _ = try SealedPages(
                path: path, subject: "password", key: SymmetricKey(password: "x"), binding: fixture.binding,
                cacheByteCount: 0)
        }
        #expect(error?.code == .invalidArgument)
    }
}
