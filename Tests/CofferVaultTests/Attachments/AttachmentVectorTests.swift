import CofferSealing
import CofferVault
import Foundation
import TestSupport
import Testing

/// Files of Vectors/attachment-files, which an independent implementation made.
struct AttachmentVector: Decodable, Sendable, CustomTestStringConvertible {
    let comment, manifest, result, name, sha1, sha256, header, file: String
    let byteCount: Int

    var testDescription: String { comment }

    private struct File: Decodable {
        let vectors: [AttachmentVector]
    }

    static let all: [AttachmentVector] = {
        let file = ManifestVector.folder.appendingPathComponent("../attachment-files/files.json")
        return (try? JSONDecoder().decode(File.self, from: Data(contentsOf: file)))?.vectors ?? []
    }()

    var digest: ContentDigest {
        get throws {
            try ContentDigest(
                sha1: #require([UInt8](hex: sha1)), sha256: #require([UInt8](hex: sha256)), byteCount: byteCount)
        }
    }

    /// Makes a store at `path` of the vector's manifest, with the vector's file in it.
    func makeStore(at path: String) throws -> SymmetricKey? {
        let vector = try ManifestVector(named: manifest)
        let generation = try "\(path)/\(#require(vector.opened).generationName)"
        for name in ["attachments", "incoming"] {
            try FileManager.default.createDirectory(
                atPath: "\(generation)/\(name)", withIntermediateDirectories: true)
        }
        try Data(vector.bytes).write(to: URL(fileURLWithPath: path + "/MANIFEST"))
        writeBinding(vector.opened?.sequence ?? 0, at: generation + "/db.sqlite3")
        try Data(#require([UInt8](hex: file))).write(to: URL(fileURLWithPath: "\(generation)/attachments/\(name)"))
        return try vector.symmetricKey
    }
}

@Suite("Attachment files made by another implementation")
struct AttachmentVectorTests {
    @Test("Attachment files made by another implementation are all there")
    func count() {
        #expect(AttachmentVector.all.count == 14)
        #expect(AttachmentVector.all.filter { $0.result == "opens" }.count == 9)
    }

    @Test(
        "Attachment files made by another implementation open, or are damaged, as the vector says",
        arguments: AttachmentVector.all)
    func vector(vector: AttachmentVector) throws {
        let scratch = Scratch()
        let key = try vector.makeStore(at: scratch.store)
        let (store, attachments) = try openAttachments(at: scratch.store, key: key)
        defer { store.close() }
        #expect(try attachments.isPresent(vector.digest.sha1))
        #expect(try attachments.naming.name(of: vector.digest.sha1) == vector.name)
        #expect(try attachments.allNames() == [vector.name])
        let header = try #require([UInt8](hex: vector.header))
        guard vector.result == "opens" else {
            let error = #expect(throws: CofferError(.damaged)) {
                try attachments.open(vector.digest, header: header, subject: subject)
            }
            #expect(error?.subject == subject && error?.status == 500)
            return
        }
        let bytes = try attachments.open(vector.digest, header: header, subject: subject).wholeContent()
        #expect(try Digest.sha1(of: bytes) == vector.digest.sha1)
        #expect(try Digest.sha256(of: bytes) == vector.digest.sha256)
        // The same content, installed here, has the same name and length; never the same bytes where it is encrypted.
        let staged = try attachments.stage(bytes)
        #expect(try staged.digest == vector.digest)
        try attachments.install([staged])
        attachments.didCommit([staged])
        #expect(try attachments.allNames() == [vector.name])
        #expect((staged.header == header) == (key == nil))
    }
}
