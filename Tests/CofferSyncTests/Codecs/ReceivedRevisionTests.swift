import Coffer
import CofferModel
import CofferTesting
import Testing

@testable import CofferSync

@Suite("Revisions that are received as text")
struct ReceivedRevisionTests {
    private let stores = TemporaryStores()

    /// What others may send, with or without a look into it here.
    static let texts = [
        #"{"_id":"a","_rev":"1-a"}"#,
        #" { "z" : [ 1.0, -0, 1e2, 12345678901234567890, { } ], "_rev" : "2-b", "a":"\u00e9\/\ud83d\ude00", "_id" : "a" } "#,
        #"{"_id":"a","_rev":"3-c","_revisions":{"start":3,"ids":["c","b","a"]},"é":1,"e\u0301":2,"\u0001":3}"#,
        #"{"_deleted":true,"_id":"a","_rev":"2-d","_revisions":{"ids":["d","c"],"start":2}}"#,
        #"{"_deleted":false,"_id":"a","_rev":"1-a","_attachments":{}}"#,
        #"{"_id":"a","_rev":"1-a","text":"\"_attachments\":{","n":{"_attachments":{"x":1},"_id":5}}"#,
        #"{"_attachments":{"f":{"data":"aGVsbG8=","content_type":"text/plain"}},"_id":"a","_rev":"1-a"}"#,
        #"{"_id":"a","_rev":"1-a","b":{"@type":"blob","digest":"sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00=","length":5}}"#,
        #"{"_id":"a","_rev":"1-a","_local_seq":5}"#,
        #"{"_id":"a","_rev":"1-a","_unheard":5}"#,
        #"{"_id":"a","_rev":"1-a","_deleted":"yes"}"#,
        #"{"_id":"a","_rev":"2-a","_revisions":{"start":3,"ids":["a"]}}"#,
        #"{"_id":"a","_rev":"no"}"#,
        #"{"_id":5,"_rev":"1-a"}"#,
        #"{"_id":"","_rev":"1-a"}"#,
        #"{"_id":"_design/x","_rev":"1-a","views":{"v":{"map":"function(doc) { emit(doc._id) }"}}}"#,
        #"{"_id":"_x","_rev":"1-a"}"#,
        #"{"a":1}"#,
        "{}",
    ]

    @Test(
        "A revision is taken over or refused in the same way, whether it is received as text or as values",
        arguments: texts)
    func same(_ text: String) throws {
        let checked = try #require(try CheckedJSON(Array(text.utf8), valueLimit: 1_000))
        let members = try #require(try checked.value().objectValue)
        #expect(
            try outcome("text") { try ReceivedRevision(checked.root) }
                == outcome("values") { ReceivedRevision(members) })
    }

    @Test("Only what has attachments or blobs, or what no revision here has, is read as values")
    func kept() throws {
        let kept = try Self.texts.map { text in
            let checked = try #require(try CheckedJSON(Array(text.utf8), valueLimit: 1_000))
            return try ReceivedRevision(checked.root).content != nil
        }
        #expect(kept.filter(\.self).count == 11, "\(kept)")
        #expect(kept[0] && kept[1] && kept[2] && kept[3])
    }

    @Test("What is not an object is no revision", arguments: ["[]", "5", "\"a\"", "null"])
    func others(_ text: String) throws {
        let checked = try #require(try CheckedJSON(Array(text.utf8), valueLimit: 1_000))
        let error = #expect(throws: SyncError.self) { try ReceivedRevision(checked.root) }
        #expect(error?.status == 502)
    }

    /// What the database holds then, or why it refused.
    private func outcome(_ name: String, _ received: () throws -> ReceivedRevision) throws -> String {
        let database = try stores.manager.patientDatabase(named: name)
        do {
            let result = try IncomingRevision(received()).save(in: database, contents: [:])
            let json = String(decoding: try result.revision.json, as: UTF8.self)
            let leaves = try database.document(withID: result.revision.documentID).leafRevisions
            return "\(result.revision.documentID) \(leaves.map { "\($0.revisionID) \($0.isDeletion)" }) \(json)"
        } catch let error as SyncError {
            return "\(error.status) \(error)"
        } catch let error as CofferError {
            return "\(error.status) \(error.detail ?? "")"
        }
    }
}
