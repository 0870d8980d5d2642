import Foundation
import Testing

@testable import Coffer

/// What went wrong in others and belongs to no other suite: docs/PRIOR-FAILURES.md tells where.
@Suite("What went wrong elsewhere")
struct PriorFailureTests {
    let stores = TestStores()

    @Test("A right key opens after a wrong one and a wrong one does not after a right one, however often")
    func alternating() throws {
        let database = try stores.open()
        try database.save(json: Data(#"{"n":1}"#.utf8), withID: "a")
        try database.close()
        for _ in 0..<10 {
            #expect(thrown { try stores.open(key: testKey(8)) }?.code == .wrongKey)
            let database = try stores.open()
            #expect(try database["a"]?["n"] == 1)
            #expect(thrown { try stores.open(key: testKey(8)) }?.code == .wrongKey)
            try database.close()
        }
    }

    @Test("A password that is written as SQLCipher writes raw keys is a password, and opens nothing but its own")
    func passwordLikeRawKey() throws {
        try stores.open().close()
        let digits = String(repeating: "07", count: 32)
        for password in ["x'\(digits)'", "X'\(digits)'", digits, "x'\(digits)\(String(repeating: "0", count: 32))'"] {
            let key = SymmetricKey(password: password)
            #expect(thrown { try stores.open(key: key) }?.code == .wrongKey)
            try stores.open("own", key: key).close()
            #expect(thrown { try stores.open("own") }?.code == .wrongKey)
            try stores.open("own", key: key).delete()
        }
    }

    @Test("A draft that waits for its save loses none of its contents to a compaction")
    func draftBesideCompaction() throws {
        let database = try stores.open()
        let file = stores.directory.appending(path: "source")
        let content = AttachmentTests.bytes(50_000)
        try content.write(to: file)
        let draft = try database.document(withID: "a").newRevision()
        try draft.setAttachment(named: "x", contentType: nil, contentsOf: file)
        let incoming = try stores.generation().appending(path: "incoming")
        #expect(try FileManager.default.contentsOfDirectory(atPath: incoming.path).count == 1)
        try database.compact()
        #expect(try draft.save().attachment(named: "x")?.content == content)
    }
}
