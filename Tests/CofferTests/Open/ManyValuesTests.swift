import CofferModel
import Foundation
import Testing

@testable import Coffer

/// A document has so many values at most, however it comes in; those that are stored with more stay what they are.
@Suite("Documents with too many values") struct ManyValuesTests {
    let stores = TestStores()
    let database: Database

    init() throws { database = try stores.open() }

    /// With the object and the array, one value too many.
    private static let count = JSONLimits.valueCount - 1
    private static let json = Data("{\"a\":[\(String(repeating: "0,", count: count - 1))0]}".utf8)
    private static let properties: JSONObject = ["a": .array(Array(repeating: 0, count: count))]

    @Test("No entry takes a document with more values than the limit")
    func entries() async throws {
        let database = database
        let history = [try #require(RevisionID("1-a"))]
        let draft = try database.document(withID: "d").newRevision()
        draft.properties = Self.properties
        let mutable = MutableDocument(id: "d")
        mutable.properties = Self.properties
        let entries: [() async throws -> Void] = [
            { try database.save(json: Self.json, withID: "d") },
            { try await database.save(json: Self.json, withID: "d") },
            { try database.save(["a": Array(repeating: 0, count: Self.count)], withID: "d") },
            { try draft.save() },
            { try database.saveDocument(mutable) },
            { try database.saveLocalDocument(Self.properties, withID: "d") },
            { try database.putExistingRevision(Self.properties, withID: "d", history: history) },
            { try database.putExistingRevision(json: Self.json, withID: "d", history: history) },
        ]
        for (place, entry) in entries.enumerated() {
            let error = await #expect(throws: CofferError.self, "\(place)") { try await entry() }
            #expect(error?.code == .invalidJSON && error?.detail?.contains("values") == true, "\(place)")
        }
        #expect(try database.documentCount == 0)
        #expect(try database.localDocument(withID: "d") == nil)
    }

    @Test("A document with too many values that is stored already is read, verified, copied and deleted")
    func stored() throws {
        let body = try DocumentBody(json: [UInt8](Self.json), valueLimit: JSONLimits.storedValueCount).body
        let saved = try PreparedRevision(database.document(withID: "d"), parent: .none, body: body).save()
        #expect(try saved.properties["a"]?.arrayValue?.count == Self.count)
        #expect(try saved.decode([String: [Int]].self)["a"]?.count == Self.count)
        #expect(try database.verify().isSound)
        _ = try database.backup(to: stores.directory.appending(path: "copy.coffer"), encryptionKey: nil)
        #expect(try saved.deleteDocument().isDeletion)
    }
}
