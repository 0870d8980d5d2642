import Coffer
import CofferTesting
import Foundation
import RotationJob
import Testing

@Suite("A rotation of all databases in a folder")
struct RotationJobTests {
    let stores = TemporaryStores()
    let oldKey: SymmetricKey
    let newKey: SymmetricKey

    init() throws {
        oldKey = try SymmetricKey()
        newKey = try SymmetricKey()
    }

    private func make(_ name: String, key: SymmetricKey?) throws {
        let database = try stores.manager.database(named: name, encryptionKey: key)
        let draft = try database.document(withID: "a").newRevision()
        draft["text"] = "kept"
        draft.setAttachment(named: "scan", contentType: "text/plain", content: Data("kept too".utf8))
        try draft.save()
        try database.close()
    }

    private func run() throws -> (outcomes: [String: RotationJob.Outcome], isDone: Bool) {
        var outcomes: [String: RotationJob.Outcome] = [:]
        let job = RotationJob(manager: stores.manager, oldKey: oldKey, newKey: newKey)
        let isDone = try job.run { outcomes[$0] = $1 }
        return (outcomes, isDone)
    }

    @Test("The new key of a rotation opens each database, and every other key is a 401")
    func rotated() throws {
        for name in ["one", "two"] { try make(name, key: oldKey) }
        let (outcomes, isDone) = try run()
        let rotated = RotationJob.Outcome.rotated(documentCount: 1, attachmentCount: 1)
        #expect(outcomes == ["one": rotated, "two": rotated])
        #expect(isDone)
        for name in ["one", "two"] {
            try expectUnauthorized(
                at: stores.url(ofDatabaseNamed: name), key: newKey, formerKeys: [oldKey])
            let database = try stores.manager.database(named: name, encryptionKey: newKey)
            #expect(try database["a"]?["text"] == "kept")
        }
    }

    @Test("A second run of the rotation finds that the first has done it")
    func again() throws {
        try make("one", key: oldKey)
        _ = try run()
        let (outcomes, isDone) = try run()
        #expect(outcomes == ["one": .alreadyRotated])
        #expect(isDone)
    }

    @Test(
        "Another key, and no encryption, are a 401 that changes nothing and keeps no other database from the rotation")
    func others() throws {
        let anotherKey = try SymmetricKey()
        try make("another", key: anotherKey)
        try make("mine", key: oldKey)
        try make("plain", key: nil)
        let (outcomes, isDone) = try run()
        #expect(outcomes["another"] == .unauthorized)
        #expect(outcomes["plain"] == .unauthorized)
        #expect(outcomes["mine"] == .rotated(documentCount: 1, attachmentCount: 1))
        #expect(!isDone)
        #expect(try stores.manager.database(named: "another", encryptionKey: anotherKey)["a"]?["text"] == "kept")
        #expect(try stores.manager.database(named: "plain")["a"]?["text"] == "kept")
    }
}
