#if os(Linux)
import CofferSealing
import Foundation
import MemorySearch
import Testing

@testable import CofferSQLite

@Suite("Keys of sealed pages in memory")
struct SealedMemoryTests {
    @Test("Of a key, nothing is left in memory when its pages and their connections are gone")
    func keyInMemory() throws {
        let key = try SymmetricKey()
        let needle = Needle(key)
        let before = needle.occurrences()
        #expect(before >= 1, "the key itself")
        do {
            let folder = TemporaryFolder()
            let path = folder.file("db.sqlite3")
            #expect(FileManager.default.createFile(atPath: path, contents: nil))
            let pages = try SealedPages(
                path: path, subject: "test", key: key, binding: SealedFixture.binding, cacheByteCount: 1 << 20)
            try pages.writeEmptyDatabase()
            let connection = try Connection(
                path: path, subject: "test", access: .create, protection: .sealed(pages), cacheByteCount: 1 << 20)
            try connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 2)")
            #expect(needle.occurrences() > before)
            try connection.close()
        }
        #expect(needle.occurrences() == before)
    }
}
#endif
