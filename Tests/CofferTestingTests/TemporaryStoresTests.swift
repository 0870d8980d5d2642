import Coffer
import CofferTesting
import Foundation
import Testing

@Suite("A folder of stores for a test")
struct TemporaryStoresTests {
    @Test("A folder of stores for a test stays as long as anybody has a database of it, and goes away then")
    func lifetime() throws {
        var database: Database? = try TemporaryStores().manager.database(named: "people")
        let folder = try #require(database?.manager.directory.path(percentEncoded: false))
        try database?.save(["n": 1], withID: "a")
        try database?.compact()
        #expect(try database?["a"]?["n"] == 1)
        #expect(FileManager.default.fileExists(atPath: folder))
        database = nil
        #expect(!FileManager.default.fileExists(atPath: folder))
    }
}
