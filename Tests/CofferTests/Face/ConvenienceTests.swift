import Foundation
import Testing

@testable import Coffer

@Suite("What is written first by who is new here")
struct ConvenienceTests {
    let stores = TestStores()

    @Test(
        "A database name says beforehand whether a database can have it", arguments: ["a", "shop/orders", "x9_$()+-"])
    func validNames(name: String) { #expect(Database.isValidName(name)) }

    @Test("A name that no database can have is known as one", arguments: ["", "A", "1a", "a b", "ä", "a.b"])
    func invalidNames(name: String) throws {
        #expect(!Database.isValidName(name))
        #expect(thrown { try stores.manager.database(named: name) }?.status == 400)
    }

    @Test("A database name is shorter than 240 bytes")
    func longNames() {
        #expect(Database.isValidName(String(repeating: "a", count: 239)))
        #expect(!Database.isValidName(String(repeating: "a", count: 240)))
    }

    @Test("A database says where its store is")
    func url() throws {
        let database = try stores.open("shop/orders")
        #expect(database.url.lastPathComponent == "shop:orders.coffer")
        let manifest = database.url.appending(path: "MANIFEST").path(percentEncoded: false)
        #expect(FileManager.default.fileExists(atPath: manifest))
        #expect(Manager.defaultDirectory.lastPathComponent == "Coffer")
        #expect(Manager.shared.directory.path == Manager.defaultDirectory.path)
    }

    @Test("What an alert shows of an error is its description, with the status")
    func localizedErrors() throws {
        try stores.open().close()
        let error = try #require(thrown { try stores.manager.openDatabase(named: "db") })
        #expect(error.localizedDescription == error.description)
        #expect(error.localizedDescription.hasSuffix("(401)"))
    }

    @Test("A dictionary makes a document")
    func dictionary() throws {
        let properties: [String: JSONValue] = ["name": "Ada", "age": 36]
        let document = MutableDocument(id: "ada", properties)
        #expect(document["name"] == "Ada" && document["age"] == 36)
        let database = try stores.open()
        try database.saveDocument(document)
        #expect(try database["ada"]?["age"] == 36)
    }

    @Test("A property that may be missing is emitted as it is, and options take one key as any value")
    func views() throws {
        let database = try stores.open()
        try database.save(["city": "Oslo"], withID: "a")
        try database.save(["city": "Rome"], withID: "b")
        try database.save(["town": "none"], withID: "c")
        let view = database.view(named: "cities")
        try view.setMap(version: "1") { revision, emit in emit(try revision["city"], 1) }
        #expect(try view.rows().all.map(\.key) == [.null, "Oslo", "Rome"])
        let city = "Rome"
        #expect(try view.rows(ViewOptions(key: city)).all.map(\.documentID) == ["b"])
        #expect(try view.rows(ViewOptions(from: "A", through: "P")).all.map(\.documentID) == ["a"])
    }

    @Test("Rows are counted, and the first is had, without taking all")
    func rows() throws {
        let database = try stores.open()
        #expect(try database.allDocuments().first == nil)
        #expect(try database.allDocuments().count == 0)
        try database.inTransaction {
            for number in 100..<400 { try database.save(json: json(number), withID: "d\(number)") }
        }
        #expect(try database.allDocuments().first?.documentID == "d100")
        #expect(try database.allDocuments().count == 300)
    }

    @Test("A key change of a small store says at its end that all is done")
    func progress() async throws {
        let database = try await Task { try stores.open() }.value
        try await database.save(json: json(1), withID: "a")
        let last = Shared<CopyProgress?>(nil)
        try await database.changeEncryptionKey(to: testKey(9)) { last.value = $0 }
        let end = try #require(last.value)
        #expect(end.phase == .database)
        #expect(end.totalByteCount > 0 && end.completedByteCount == end.totalByteCount)
    }
}
