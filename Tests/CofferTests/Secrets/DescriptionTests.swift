import Foundation
import TestSupport
import Testing

@testable import Coffer

/// Everything public is printed, reflected and dumped, and none of it says what a document holds or what opens a store.
@Suite("What is printed")
struct DescriptionTests {
    let stores = TestStores()
    static let canary = "canary-of-the-content"
    static let keyBytes = (0..<32).map { UInt8($0 * 7 + 3) }
    static let password = "canary-of-the-password"

    /// How `value` is shown, in every way.
    static func texts(_ value: Any) -> [String] {
        var dumped = ""
        dump(value, to: &dumped)
        return ["\(value)", String(reflecting: value), dumped, "\([value])", "\(Optional(value) as Any)"]
    }

    /// Whether `text` holds `bytes`: as text, hex, base64, or one number after another.
    static func mentions(_ text: String, _ bytes: [UInt8]) -> Bool {
        let data = Data(bytes)
        let forms = [
            String(decoding: bytes, as: UTF8.self), data.base64EncodedString(),
            bytes.hex,
        ]
        if forms.contains(where: { text.lowercased().contains($0.lowercased()) }) { return true }
        let numbers = text.split { !$0.isNumber }.compactMap { UInt8($0) }
        return Data(numbers).range(of: data) != nil
    }

    static func leaks(_ value: Any) -> [String] {
        let secrets = [("content", Array(canary.utf8)), ("key", keyBytes), ("password", Array(password.utf8))]
        return texts(value).flatMap { text in
            secrets.compactMap { mentions(text, $0.1) ? "\(type(of: value)) says the \($0.0)" : nil }
        }
    }

    @Test("The search of printed texts finds what it looks for")
    func control() throws {
        #expect(Self.leaks(["text": Self.canary]).count == 5)
        #expect(Self.leaks(Self.keyBytes).count == 5)
        #expect(Self.leaks(Array(Self.canary.utf8)).count == 5)
        #expect(Self.leaks(Self.password).count == 5)
        // Content that was asked for.
        #expect(!Self.leaks(["text": .string(Self.canary)] as JSONObject).isEmpty)
    }

    @Test(
        "Printed options, databases, documents, revisions, attachments and blobs show no content and no key")
    func everything() throws {
        let key = try SymmetricKey(data: Self.keyBytes), password = SymmetricKey(password: Self.password)
        var options = DatabaseOptions()
        options.create = true
        options.encryptionKey = key
        let database = try stores.manager.openDatabase(named: "db", options: options)
        try database.addKey(password, label: "a label")
        let draft = try database.document(withID: "document").newRevision()
        draft["text"] = .string(Self.canary)
        draft["blob"] = .blob(Blob(contentType: nil, data: Data(Self.canary.utf8)))
        draft.setAttachment(named: "attachment", contentType: nil, content: Data(Self.canary.utf8))
        let unsavedTexts = Self.leaks(draft)
        let saved = try draft.save()
        let loaded = try #require(try database["document"]?.currentRevision)
        _ = try loaded.properties
        let attachment = try #require(try loaded.attachment(named: "attachment"))
        _ = try attachment.content
        let mutable = MutableDocument(id: "mutable", ["text": .string(Self.canary)])
        let proposals = Proposals()
        database.setValidation(named: "look") { proposals.leaks += Self.leaks($0) }
        let changes = Notes()
        let token = database.addChangeListener { changes.leaks += Self.leaks($0) }
        try database.saveDocument(mutable)
        let existing = try database.putExistingRevision(
            json: Data(
                #"{"_id":"document","_rev":"2-b","_revisions":{"start":2,"ids":["b","a"]},"t":"\#(Self.canary)"}"#.utf8)
        )

        let values: [Any] = [
            key, password, options, stores.manager, database, database.storage.manifest, draft, saved, loaded,
            saved.document, attachment, try #require(try attachment.chunks), mutable,
            Blob(data: Data(Self.canary.utf8)),
            try #require(try loaded.blob(forKey: "blob")), try database.keys, existing,
            database.allDocuments(AllDocumentsOptions()), try database.changes(since: 0).all, database.changes,
            token,
            try database.compact(), try stores.manager.storeInfo(named: "db"),
            try database.changeEncryptionKey(to: password, droppingOtherKeys: true),
            try database.backup(to: stores.directory.appending(path: "b.coffer"), encryptionKey: key),
        ]
        #expect(values.flatMap(Self.leaks) == [])
        #expect(unsavedTexts == [])
        try database.close()
        #expect(proposals.leaks == [])
        #expect(changes.leaks == [])
        #expect(proposals.count > 0)
    }

    @Test("Printed errors show no content and no key, whatever they are about")
    func errors() throws {
        struct Other: Codable { var text: Int }
        let canary = Self.canary
        let key = try SymmetricKey(data: Self.keyBytes)
        let database = try stores.open(key: key)
        try database.save(json: Data(#"{"text":"\#(canary)"}"#.utf8), withID: "document")
        database.setValidation(named: "none") { if $0.documentID == "refused" { try $0.reject("not this one") } }
        let attempts: [(String, () throws -> Any)] = [
            ("no JSON", { try database.save(json: Data(#"{"text":"\#(canary)"#.utf8)) }),
            ("two members", { try database.save(json: Data(#"{"\#(canary)":1,"\#(canary)":2}"#.utf8)) }),
            ("a number", { try database.save(json: Data(#"{"\#(canary)":1e999}"#.utf8)) }),
            ("a reserved member", { try database.save(json: Data(#"{"_x":"\#(canary)"}"#.utf8)) }),
            ("a conflict", { try database.save(json: Data(#"{"text":"\#(canary)"}"#.utf8), withID: "document") }),
            ("refused", { try database.save(json: Data(#"{"text":"\#(canary)"}"#.utf8), withID: "refused") }),
            ("another type", { try database.document(withID: "document").decode(Other.self) }),
            ("attachments", { try database.save(json: Data(#"{"_attachments":{"a":"\#(canary)"}}"#.utf8)) }),
            ("a local document", { try database.saveLocalDocument(["_id": .string(canary)], withID: "x") }),
            ("a wrong key", { try stores.open(key: SymmetricKey(password: Self.password)) }),
            ("an empty key", { try stores.open(key: SymmetricKey(password: "")) }),
            ("a short key", { try SymmetricKey(data: Array(Self.keyBytes.dropLast())) }),
            ("a zero in it", { try stores.open(key: SymmetricKey(password: Self.password + "\0")) }),
            ("a key twice", { try database.addKey(key) }),
            ("its own key", { try database.backup(to: stores.directory, encryptionKey: key) }),
        ]
        for (name, attempt) in attempts {
            do {
                _ = try attempt()
                Issue.record("\(name) was no error")
            } catch {
                #expect(Self.leaks(error) == [], "\(name)")
                #expect(Self.leaks((error as? CofferError)?.cause as Any) == [], "\(name)")
                #expect(!Self.mentions(error.localizedDescription, Array(canary.utf8)), "\(name)")
            }
        }
    }
}

/// What a validation saw.
private final class Proposals: @unchecked Sendable {
    var leaks: [String] = [] { didSet { count += 1 } }
    private(set) var count = 0
}

/// What a listener heard.
private final class Notes: @unchecked Sendable {
    var leaks: [String] = []
}
