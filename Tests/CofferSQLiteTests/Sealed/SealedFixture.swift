import CofferSealing
import Foundation
import Testing

@testable import CofferSQLite

/// A database file with sealed pages in a folder of its own, and what its tests do with it.
struct SealedFixture {
    let folder: TemporaryFolder
    let path: String
    let key: SymmetricKey
    let binding: SealedPageBinding
    let pages: SealedPages

    var logPath: String { path + "-wal" }

    static let binding = SealedPageBinding(
        storeUUID: Array(1...16), generation: 7, generationTag: 0x0123_4567_89ab_cdef)

    /// A new file with a table `t (n INTEGER PRIMARY KEY, v)`.
    init(cacheByteCount: Int = 1 << 20, beneath: String? = nil, schema: Bool = true) throws {
        folder = TemporaryFolder()
        path = folder.file("db.sqlite3")
        key = try SymmetricKey()
        binding = Self.binding
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        pages = try SealedPages(
            path: path, subject: "test", key: key, binding: binding, cacheByteCount: cacheByteCount, beneath: beneath)
        try pages.writeEmptyDatabase()
        guard schema else { return }
        let connection = try connect(.create)
        try connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, v)")
        try connection.switchToWriteAheadLog()
        try connection.close()
    }

    /// The file at another path, as it was copied there, with pages of its own.
    private init(_ other: SealedFixture, name: String, cacheByteCount: Int, beneath: String?) throws {
        folder = other.folder
        path = other.folder.file(name)
        (key, binding) = (other.key, other.binding)
        pages = try SealedPages(
            path: path, subject: "copy", key: key, binding: binding, cacheByteCount: cacheByteCount, beneath: beneath)
    }

    func connect(
        _ access: Connection.Access = .readWrite, cacheByteCount: Int = 1 << 20, pages: SealedPages? = nil
    ) throws -> Connection {
        try Connection(
            path: path, subject: "test", access: access, protection: .sealed(pages ?? self.pages),
            cacheByteCount: cacheByteCount)
    }

    // MARK: Images

    /// What a crash would leave now.
    struct Image: Equatable {
        var file: [UInt8]
        var log: [UInt8]?
    }

    func image() -> Image {
        Image(
            file: FileManager.default.contents(atPath: path).map { [UInt8]($0) } ?? [],
            log: FileManager.default.contents(atPath: logPath).map { [UInt8]($0) })
    }

    /// A file elsewhere in the folder that is `image`.
    func restored(
        _ image: Image, name: String = "copy.sqlite3", cacheByteCount: Int = 1 << 20, beneath: String? = nil
    ) throws -> SealedFixture {
        let copy = folder.file(name)
        try Data(image.file).write(to: URL(fileURLWithPath: copy))
        if let log = image.log {
            try Data(log).write(to: URL(fileURLWithPath: copy + "-wal"))
        } else {
            try? FileManager.default.removeItem(atPath: copy + "-wal")
        }
        return try SealedFixture(self, name: name, cacheByteCount: cacheByteCount, beneath: beneath)
    }

    // MARK: Contents

    /// All rows, in order, by a connection of its own.
    func rows(_ access: Connection.Access = .readWrite) throws -> [String] {
        let connection = try connect(access)
        let rows = try connection.rows()
        try connection.close()
        return rows
    }
}

extension Connection {
    func rows() throws(CofferError) -> [String] {
        try Statement(self, "SELECT n, v FROM t ORDER BY n").all { "\($0.integer(0)) \($0.text(1))" }
    }

    func insert(_ number: Int, _ text: String) throws(CofferError) {
        let insert = Statement(self, "INSERT INTO t VALUES (?1, ?2)")
        try insert.bind(1, Int64(number))
        try insert.bind(2, text)
        try insert.run()
    }

    /// What `PRAGMA integrity_check` says, which is "ok" of a healthy file.
    func integrity() throws(CofferError) -> String {
        try Statement(self, "PRAGMA integrity_check").all { $0.text(0) }.joined(separator: "; ")
    }
}
