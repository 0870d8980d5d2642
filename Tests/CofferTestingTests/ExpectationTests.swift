import Coffer
import CofferTesting
import Foundation
import Testing

@Suite("What an app's tests expect of its store")
struct ExpectationTests {
    let stores = TemporaryStores()
    static let marker = "a sentence that nobody else writes"
    static let password = SymmetricKey(password: "password123456")

    enum Protection: String, CaseIterable {
        case password, bytes, nothing

        func key() throws -> SymmetricKey? {
            switch self {
            case .password: ExpectationTests.password
            case .bytes: try SymmetricKey(data: Data(repeating: 7, count: 32))
            case .nothing: nil
            }
        }
    }

    func store(_ key: SymmetricKey?, named name: String = "notes") throws -> Database {
        let database = try stores.manager.database(named: name, encryptionKey: key)
        try database.save(json: Data(#"{"text":"\#(Self.marker)"}"#.utf8), withID: "note")
        return database
    }

    var url: URL { stores.url(ofDatabaseNamed: "notes") }

    @Test(
        "Every wrong key is a 401 and changes nothing, of a store that is closed and of one that is open",
        arguments: Protection.allCases)
    func wrongKeys(protection: Protection) throws {
        let key = try protection.key()
        let database = try store(key)
        try expectUnauthorized(at: url, key: key)
        try database.close()
        try expectUnauthorized(at: url, key: key)
        try expectUnauthorized(at: url, key: key) { key in
            var options = DatabaseOptions()
            options.encryptionKey = key
            _ = try stores.manager.openDatabase(named: "notes", options: options)
        }
        #expect(try stores.manager.database(named: "notes", encryptionKey: key)["note"]?["text"] != nil)
    }

    @Test("A former key counts as a wrong one once the key was changed, and as a failure before")
    func formerKeys() throws {
        let database = try store(Self.password)
        let next = try SymmetricKey()
        try database.addKey(next)
        let failure = failure { try expectUnauthorized(at: url, key: next, formerKeys: [Self.password]) }
        #expect(
            failure?.complaints == [
                "former key 1 opened it for writing", "former key 1 opened it for reading only",
            ])
        try database.changeEncryptionKey(to: next, droppingOtherKeys: true)
        try expectUnauthorized(at: url, key: next, formerKeys: [Self.password])
    }

    @Test("An expectation fails when the right key opens nothing, and when the app opens the store without a key")
    func controls() throws {
        try store(Self.password).close()
        let another = SymmetricKey(password: "not this one")
        #expect(failure { try expectUnauthorized(at: url, key: another) }?.complaints.count == 1)
        let careless = failure { try expectUnauthorized(at: url, key: Self.password) { _ in } }
        #expect(careless?.complaints.count ?? 0 > 10)
        #expect(careless?.complaints.allSatisfy { $0.hasSuffix("opened it") } == true)
        let wrongError = failure {
            try expectUnauthorized(at: url, key: Self.password) { if $0 != Self.password { throw CancellationError() } }
        }
        #expect(wrongError?.complaints.allSatisfy { $0.contains("not an error of Coffer") } == true)
        #expect(wrongError?.description.contains("password123456") == false)
    }

    @Test("An expectation fails when an attempt changes, adds or removes anything")
    func changes() throws {
        try store(Self.password).close()
        let note = url.appending(path: "note"), manifest = url.appending(path: "MANIFEST")
        try Data("1".utf8).write(to: note)
        var attempt = 0
        let failure = failure {
            try expectUnauthorized(at: url, key: Self.password) { key in
                attempt += 1
                if attempt == 1 {
                    try FileManager.default.removeItem(at: note)
                    try Data().write(to: url.appending(path: "new"))
                    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: manifest.path)
                }
                _ = try stores.manager.existingDatabase(named: "notes", encryptionKey: key)?.close()
            }
        }
        #expect(
            failure?.complaints == ["MANIFEST has other permissions or another owner", "new is new", "note is gone"])
    }

    @Test("An encrypted store shows nothing, open or closed, and an unencrypted one everything")
    func leaks() throws {
        for key in [Self.password, nil] {
            let name = key == nil ? "plain" : "notes"
            let database = try store(key, named: name)
            let url = stores.url(ofDatabaseNamed: name)
            for _ in 1...2 {
                if key == nil {
                    try expectReadable([Self.marker], in: url)
                    #expect(failure { try expectNothingReadable(of: [Self.marker], in: url) }?.complaints.count == 1)
                } else {
                    try expectNothingReadable(of: [Self.marker], in: url)
                    #expect(failure { try expectReadable([Self.marker], in: url) } != nil)
                }
                try database.close()
            }
        }
        let empty = Folder()
        #expect(failure { try expectNothingReadable(of: [Self.marker], in: empty.url) } != nil)
    }

    @Test("A store that must not change stays as it was, or its change is told before the body's own error")
    func unchanged() throws {
        try store(Self.password).close()
        #expect(try expectUnchanged(url) { 17 } == 17)
        #expect(throws: CancellationError.self) { try expectUnchanged(url) { throw CancellationError() } }
        let failure = failure {
            try expectUnchanged(url) {
                try Data("2".utf8).write(to: url.appending(path: "MANIFEST"))
                throw CancellationError()
            }
        }
        #expect(failure?.complaints == ["MANIFEST has 1 bytes and had 1024"])
    }

    @Test("Stores of a test are gone with it")
    func gone() throws {
        var own: TemporaryStores? = TemporaryStores()
        let folder = try #require(own?.directory)
        try own?.manager.database(named: "a/b", encryptionKey: Self.password).close()
        let url = try #require(own?.url(ofDatabaseNamed: "a/b"))
        #expect(FileManager.default.fileExists(atPath: url.path(percentEncoded: false)))
        own = nil
        #expect(!FileManager.default.fileExists(atPath: folder.path(percentEncoded: false)))
    }

    private func failure(_ body: () throws -> Void) -> ExpectationFailure? {
        do {
            try body()
            return nil
        } catch {
            #expect(error is ExpectationFailure, "\(error)")
            return error as? ExpectationFailure
        }
    }
}
