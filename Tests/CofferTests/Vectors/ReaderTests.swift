import Foundation
import TestSupport
import Testing

@testable import Coffer

/// Vectors/reader.py, and a Python that has what it needs: `COFFER_PYTHON`, which scripts/vectors makes.
enum Reader {
    static let python = ProcessInfo.processInfo.environment["COFFER_PYTHON"]
    static let script = StoreVector.folder.appending(path: "../reader.py").standardizedFileURL
}

/// Vectors/reader.py was written from docs/FORMAT.md alone. What it says of stores that this version writes has to be what
/// the library says.
@Suite(
    "A reader written from FORMAT.md alone", .timeLimit(.minutes(30)),
    .enabled(if: Reader.python != nil, "only scripts/vectors has a Python that can"))
struct ReaderTests {
    let stores = TestStores()

    init() throws { try FileManager.default.createDirectory(at: stores.directory, withIntermediateDirectories: true) }

    struct Answer {
        var output: Data
        var error: String
        var status: Int32
    }

    private func read(_ arguments: [String], key: StoreRecipe.Key?, with: Reading = .sqlcipher) throws -> Answer {
        let process = Process()
        process.executableURL = URL(filePath: try #require(Reader.python))
        process.arguments = [Reader.script.path] + arguments + with.arguments
        let keyFile = stores.directory.appending(path: UUID().uuidString)
        switch key {
        case .password(let password):
            try Data("\(password)\n".utf8).write(to: keyFile)
            process.arguments? += ["--password-file", keyFile.path]
        case .bytes:
            try Data(key?.keyBytes ?? []).write(to: keyFile)
            process.arguments? += ["--key-file", keyFile.path]
        case nil: break
        }
        // Files and not pipes: what is written is more than a pipe holds.
        let (output, error) = (keyFile.appendingPathExtension("out"), keyFile.appendingPathExtension("err"))
        for file in [output, error] { try Data().write(to: file) }
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = try FileHandle(forWritingTo: error)
        try process.run()
        process.waitUntilExit()
        defer { for file in [keyFile, output, error] { try? FileManager.default.removeItem(at: file) } }
        return try Answer(
            output: Data(contentsOf: output), error: String(decoding: Data(contentsOf: error), as: UTF8.self),
            status: process.terminationStatus)
    }

    enum Reading: String, CaseIterable, CustomTestStringConvertible {
        case sqlcipher, byHand
        var arguments: [String] { self == .byHand ? ["--without-sqlcipher"] : [] }
        var testDescription: String { rawValue }
    }

    @Test(
        "A reader by FORMAT.md alone says of each store what the library says, by each key, with or without SQLCipher",
        arguments: StoreRecipe.all.map(\.name), Reading.allCases)
    func says(name: String, with: Reading) throws {
        let recipe = try #require(StoreRecipe.all.first { $0.name == name })
        let vector = try recipe.write(to: stores.directory)
        let before = try stores.snapshot()
        for key in recipe.keys.isEmpty ? [nil] : recipe.keys.map(Optional.some) {
            let answer = try read(["describe", stores.directory.path + "/" + recipe.fileName], key: key, with: with)
            #expect(answer.error == "")
            let said = JSONValue.object(try StoreVector.json(answer.output))
            #expect(StoreDescription.difference(said, try #require(vector["holds"])) == nil, "said, and held")
        }
        #expect(try stores.snapshot() == before)
    }

    @Test(
        "A reader by FORMAT.md alone extracts attachments and blobs byte for byte, and lists documents",
        arguments: [nil, StoreRecipe.Key.bytes(7)])
    func extracts(key: StoreRecipe.Key?) throws {
        let database = try stores.open(key: key?.symmetricKey) { $0.keyedNames = key != nil }
        try StoreContent.fillWithAttachments(database)
        try database.document(withID: "gone").newRevision().save().deleteDocument()
        let blobs = try #require(try database["blobs"]?.currentRevision)
        let digest = try #require(try blobs.blob(forKey: "avatar")?.digest)
        let revision = try #require(try database["attachments"]?.currentRevision)
        let list = try database.allDocuments(withDeleted: true).map {
            "\($0.document.documentID)\t\($0.revisionID)\($0.isDeletion ? "\tdeleted" : "")\n"
        }
        let attachments = try revision.attachments.map { ($0.name, try $0.content) }
        try database.close()

        let store = stores.url().path
        #expect(try String(decoding: read(["list", store], key: key).output, as: UTF8.self) == list.joined())
        #expect(try read(["document", store, "attachments"], key: key).output == revision.json + Data("\n".utf8))
        for (name, content) in attachments {
            #expect(try read(["attachment", store, "attachments", name], key: key).output == content, "\(name)")
        }
        #expect(attachments.count == 5)
        #expect(try read(["blob", store, digest], key: key).output == StoreContent.bytes(16_385))
    }

    @Test("A reader by FORMAT.md alone refuses what the library refuses, with the same code and status")
    func refuses() throws {
        let key = StoreRecipe.Key.bytes(7)
        let database = try stores.open(key: key.symmetricKey)
        try StoreContent.fillWithAttachments(database)
        try stores.open("plain", key: nil).close()
        let store = stores.url().path

        func expect(_ code: CofferError.Code, _ arguments: [String], key: StoreRecipe.Key?) throws {
            let answer = try read(arguments, key: key)
            #expect(answer.error.hasSuffix(": \(code) (\(code.status))\n"), "\(answer.error)")
            #expect(answer.output.isEmpty && answer.status == 1)
        }
        try expect(.busy, ["list", store], key: key)
        try database.close()
        try expect(.wrongKey, ["list", store], key: .bytes(8))
        try expect(.wrongKey, ["list", store], key: .password("a password"))
        try expect(.keyRequired, ["list", store], key: nil)
        try expect(.notEncrypted, ["list", stores.url("plain").path], key: key)
        try expect(.databaseNotFound, ["list", store + "x"], key: key)
        try expect(.documentNotFound, ["document", store, "nobody"], key: key)
        try expect(.attachmentNotFound, ["attachment", store, "attachments", "none"], key: key)

        // Any byte of the file of an attachment: it alone is damaged then.
        let generation = try stores.generation().appending(path: "attachments")
        let files = try FileManager.default.contentsOfDirectory(
            at: generation, includingPropertiesForKeys: nil)
        let lengths = try files.map { try Data(contentsOf: $0).count }
        let largest = try #require(zip(files, lengths).max { $0.1 < $1.1 })
        let file = largest.0
        try file.patch { $0[$0.count - 1] ^= 1 }
        let digest =
            "sha1-"
            + Data(try #require([UInt8](hex: file.deletingPathExtension().lastPathComponent))).base64EncodedString()
        try expect(.damaged, ["blob", store, digest], key: key)
        try expect(.damaged, ["describe", store], key: key)
        #expect(try read(["list", store], key: key).error == "")

        try stores.url().appending(path: "MANIFEST").patch { $0[20] ^= 1 }
        try expect(.damaged, ["list", store], key: key)
        try FileManager.default.removeItem(at: stores.url().appending(path: "MANIFEST"))
        try expect(.notAStore, ["list", store], key: key)
    }
}

extension Database {
    fileprivate func allDocuments(withDeleted: Bool) throws -> [SavedRevision] {
        var options = AllDocumentsOptions()
        options.includesDeleted = withDeleted
        return try allDocuments(options).all
    }
}
