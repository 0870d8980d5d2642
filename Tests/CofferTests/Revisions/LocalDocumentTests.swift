import Foundation
import Testing

@testable import Coffer
@testable import CofferSQLite

@Suite("Local documents")
struct LocalDocumentTests {
    let stores = TestStores()

    @Test("Local documents are saved over each other and deleted, with the prefix of their ids or without it")
    func roundTrip() async throws {
        let database = try stores.open()
        #expect(try database.localDocument(withID: "a") == nil)
        try await database.saveLocalDocument(["n": 1, "old": true], withID: "a")
        try await database.saveLocalDocument(["n": 2], withID: "_local/a")
        try await database.saveLocalDocument([:], withID: "A")
        #expect(try database.localDocument(withID: "a") == ["n": 2])
        #expect(try database.localDocument(withID: "_local/a") == ["n": 2])
        #expect(try database.localDocument(withID: "A") == [:])
        #expect(try database.localDocumentGeneration(withID: "a") == 2)
        try await database.close()

        let again = try stores.open()
        #expect(try again.localDocument(withID: "a") == ["n": 2])
        try await again.deleteLocalDocument(withID: "a")
        #expect(try again.localDocument(withID: "a") == nil)
        #expect(try again.localDocument(withID: "A") == [:])
        await #expect(throws: CofferError(.documentNotFound)) { try await again.deleteLocalDocument(withID: "a") }
        try await again.saveLocalDocument(["n": 3], withID: "a")
        #expect(try again.localDocumentGeneration(withID: "a") == 1)
    }

    @Test("Local documents are in no listing, count, sequence or change, and share no names with documents")
    func apart() async throws {
        let database = try stores.open()
        let changes = database.changes
        try await database.saveLocalDocument(["n": 1], withID: "a")
        try await database.save(json: json(2), withID: "a")
        try await database.deleteLocalDocument(withID: "a")
        #expect(try database["a"]?["n"] == 2)
        #expect(try database.documentCount == 1 && database.lastSequenceNumber == 1)
        #expect(try database.documentIDs() == ["a"])
        #expect(thrown { try database["_local/a"] }?.code == .invalidDocumentID)
        try await database.close()
        var told: [[String]] = []
        for await commit in changes { told.append(commit.ids) }
        #expect(told == [["a"]])
    }

    @Test("Local documents are part of transactions")
    func transactions() throws {
        let database = try stores.open()
        try database.saveLocalDocument(["n": 1], withID: "a")
        try? database.inTransaction {
            try database.saveLocalDocument(["n": 2], withID: "a")
            try database.saveLocalDocument(["n": 2], withID: "b")
            #expect(try database.localDocument(withID: "a") == ["n": 2])
            throw CancellationError()
        }
        #expect(try database.localDocument(withID: "a") == ["n": 1])
        #expect(try database.localDocument(withID: "b") == nil)
    }

    @Test(
        "Local documents of any length come back as they were, under the longest id too",
        arguments: [0, 2_000, 2_100, 4_000, 70_000])
    func lengths(count: Int) throws {
        let database = try stores.open()
        let id = String(repeating: "x", count: 893)
        let properties: JSONObject = [
            "text": .string(String(repeating: "t", count: count)), "big": .number(.init(Int64.max)),
        ]
        try database.saveLocalDocument(properties, withID: id)
        #expect(try database.localDocument(withID: id) == properties)
        try database.close()
        #expect(try stores.open().localDocument(withID: id) == properties)
    }

    @Test("Local documents with a bad id or bad properties are a 400, and nothing is saved")
    func bad() throws {
        let database = try stores.open()
        for id in ["", "_local/", String(repeating: "x", count: 894)] {
            #expect(thrown { try database.saveLocalDocument([:], withID: id) }?.code == .invalidDocumentID)
            #expect(thrown { try database.localDocument(withID: id) }?.code == .invalidDocumentID)
            #expect(thrown { try database.deleteLocalDocument(withID: id) }?.code == .invalidDocumentID)
        }
        let bad: [JSONObject] = [
            ["_id": "a"], ["_rev": "1-a"], ["_deleted": true], ["_attachments": [:]], ["_x": 1],
            ["a": .number(.init(Double.nan))], ["a": Blob(contentType: nil, data: Data([1])).jsonValue],
            ["a": ["@type": "blob", "digest": "sha1-gOHUOBmIMoDCrMuGyaLWzf1hQTE=", "length": 27]],
        ]
        for properties in bad {
            #expect(thrown { try database.saveLocalDocument(properties, withID: "a") }?.code == .invalidJSON)
        }
        #expect(try database.localDocument(withID: "a") == nil)
        try database.close()
        #expect(thrown { try database.localDocument(withID: "a") }?.code == .closed)
        let reader = try stores.open { $0.readOnly = true }
        #expect(try reader.localDocument(withID: "a") == nil)
        #expect(thrown { try reader.saveLocalDocument([:], withID: "a") }?.status == 403)
        #expect(thrown { try reader.deleteLocalDocument(withID: "a") }?.status == 403)
    }

    /// The last overflow page of a row is not covered by SQLCipher's check: its damage shows as zeros.
    @Test("Local documents that are damaged where SQLCipher does not look are noticed")
    func damage() throws {
        let database = try stores.open(key: nil)
        let marker = "the-end-of-the-long-one"
        try database.saveLocalDocument(
            ["a": .string(String(repeating: "x", count: 9_000)), "b": .string(marker)], withID: "a")
        try database.close()
        try stores.databaseFile().patch { data in
            let range = try #require(data.range(of: Data(marker.utf8)))
            data[range.lowerBound] ^= 1
        }
        #expect(thrown { try stores.open(key: nil).localDocument(withID: "a") }?.code == .damaged)
        let result = try stores.manager.verifyDatabase(named: "db", level: .documents)
        #expect(result.findings.map(\.documentID) == ["_local/a"])
    }
}
