import Coffer
@testable import CofferCouchbaseLite
import CofferSQLite
import CofferSealing
import CofferTesting
import Foundation
import TestSupport
import Testing

/// Imports of stores that are encrypted, as each platform did it.
@Suite("Importing encrypted stores of Couchbase Lite") struct EncryptedSourceTests {
    private static let first = "1-" + String(repeating: "a", count: 32)
    private let password = SymmetricKey(password: "password123456")

    private func store(_ key: SymmetricKey?, blobKey: SymmetricKey?) throws -> (SourceStore, Data) {
        let source = try SourceStore(key: key)
        let content = Data(repeating: 0x5A, count: 48)
        try source.write(content, key: blobKey)
        try source.add(
            documents: [1: "a"],
            [
                .init(
                    sequence: 1, document: 1, id: Self.first,
                    json:
                        #"{"_attachments":{"f":{"stub":true,"digest":"\#(try SourceStore.digest(content))","length":48}},"word":"readable text in here"}"#
                )
            ])
        return (source, content)
    }

    @Test("The key derivation of iOS makes the known key of the documentation's password")
    func derivation() throws {
        let key = try CouchbaseLiteKeyDerivation.hmacSHA256.key(from: password)
        #expect(key.withBytes { Array($0).hex } == "f3d577b4aabbcaa4cae2029fc339055eb226f2a8f05d8c52c370bbb3df130a46")
    }

    @Test(
        "A password opens a store, whichever platform derived the key from it",
        arguments: CouchbaseLiteKeyDerivation.allCases)
    func passwords(_ derivation: CouchbaseLiteKeyDerivation) throws {
        let key = try derivation.key(from: password)
        let (source, content) = try store(key, blobKey: key)
        let before = try source.snapshot()
        let target = try Target()
        let (database, report) = try target.take(source, key: password, encryptionKey: password)
        #expect(report.isComplete && report.isSourceEncrypted, "\(report.problems)")
        #expect(try database.document(withID: "a").properties?["word"] == "readable text in here")
        #expect(try database.document(withID: "a").currentRevision?.attachment(named: "f")?.content == content)
        #expect(try source.snapshot() == before)
        try database.close()
    }

    @Test("A key of 32 bytes opens a store, even if an old bug left its attachments unencrypted")
    func bytes() throws {
        let key = try SymmetricKey()
        for blobKey in [key, nil] {
            let (source, content) = try store(key, blobKey: blobKey)
            let target = try Target()
            let (database, report) = try target.take(source, key: key)
            #expect(report.isComplete, "\(report.problems)")
            #expect(try database.document(withID: "a").currentRevision?.attachment(named: "f")?.content == content)
            try database.close()
        }
    }

    @Test("An import with a wrong, missing or unneeded key is a 401, and leaves nothing")
    func wrongKeys() throws {
        let key = try SymmetricKey()
        let (encrypted, _) = try store(key, blobKey: key)
        let (plain, _) = try store(nil, blobKey: nil)
        for (source, wrong, code) in [
            (encrypted, try SymmetricKey(), CofferError.Code.wrongKey), (encrypted, password, .wrongKey),
            (encrypted, nil, .keyRequired), (plain, key, .notEncrypted),
        ] as [(SourceStore, SymmetricKey?, CofferError.Code)] {
            let target = try Target()
            let error = #expect(throws: CofferError.self) { try target.take(source, key: wrong) }
            #expect(error?.code == code && error?.status == 401)
            #expect(target.names.isEmpty)
        }
    }

    @Test("An import tries only the key derivations that its options name")
    func namedDerivation() throws {
        let key = try CouchbaseLiteKeyDerivation.hmacSHA1With1024Rounds.key(from: password)
        let (source, _) = try store(key, blobKey: nil)
        var options = CouchbaseLiteImportOptions()
        options.keyDerivations = [.hmacSHA256, .hmacSHA1]
        let target = try Target()
        let error = #expect(throws: CofferError.self) { try target.take(source, key: password, options: options) }
        #expect(error?.code == .wrongKey)
        options.keyDerivations = [.hmacSHA1With1024Rounds]
        try target.take(source, key: password, options: options).0.close()
    }

    @Test("An import of an encrypted store and its write-ahead log leaves nothing readable on the disk")
    func nothingReadable() throws {
        let key = try SymmetricKey()
        let source = try SourceStore(key: key)
        let connection = try source.connect(.readWrite)
        try connection.switchToWriteAheadLog()
        try source.add(
            documents: [1: "a"],
            [.init(sequence: 1, document: 1, id: Self.first, json: #"{"word":"readable text in here"}"#)],
            to: connection)
        let copy = try SourceStore(key: key)
        for suffix in ["", "-wal"] {
            let data = try Data(contentsOf: URL(filePath: source.file.path(percentEncoded: false) + suffix))
            try data.write(to: URL(filePath: copy.file.path(percentEncoded: false) + suffix))
        }
        try connection.close()
        let target = try Target()
        let (database, report) = try target.take(copy, key: key, encryptionKey: key)
        #expect(report.documentCount == 1)
        try database.close()
        try expectNothingReadable(of: ["readable text in here"], in: target.manager.directory)
        #expect(target.names == ["people.coffer"])
    }
}
