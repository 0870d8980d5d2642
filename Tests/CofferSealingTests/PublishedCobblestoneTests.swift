import Foundation
import Testing

@testable import CofferSealing

/// Where their file is; some stand in PublishedExampleTests, which always run.
@Suite(
    "Published vectors of Cobblestone-256 hold",
    .enabled(if: VectorFiles.shared != nil, "\(VectorFiles.sharedMissing)"),
    .enabled(if: SystemLibraries.canInflate, "no zlib on this system, and the vectors are compressed"))
struct PublishedCobblestoneTests {
    struct File: Decodable {
        struct Group: Decodable { let tests: [Vector] }
        let testGroups: [Group]
        let numberOfTests: Int
    }

    struct Vector: Decodable {
        let tcId: Int, comment: String, key: Hex, ctx: Hex, ct: Hex, result: String, flags: Set<String>
        let aeadKey: Hex?, baseNonce: Hex?, msgLength: Int?, msgSha512: Hex?
    }

    static func vectors() throws -> [Vector] {
        let file = try VectorFiles.shared("c2sp_chunked_encryption_aes_256_gcm_test.json", as: File.self)
        let vectors = file.testGroups.flatMap(\.tests)
        #expect(vectors.count == file.numberOfTests && vectors.count == 35)
        return vectors
    }

    @Test("All published valid messages of Cobblestone-256 open to what they say")
    func valid() throws {
        let vectors = try Self.vectors().filter { $0.result == "valid" }
        #expect(vectors.count == 10)
        for vector in vectors {
            let message = try SystemLibraries.inflate(vector.ct.bytes)
            let key = try SymmetricKey(data: vector.key.bytes)
            let plaintextByteCount = Cobblestone.plaintextByteCount(ofMessage: message.count)
            #expect(plaintextByteCount == vector.msgLength, "test \(vector.tcId)")
            let outcome = try CobblestoneMessage.open(message, key: key, context: vector.ctx.bytes)
            guard case .opened(let plaintext) = outcome else {
                Issue.record("test \(vector.tcId), \(vector.comment): \(outcome.name)")
                continue
            }
            #expect(plaintext.count == vector.msgLength, "test \(vector.tcId)")
            #expect(SystemLibraries.sha512(plaintext) == vector.msgSha512?.bytes, "test \(vector.tcId)")
            // And back: the same message under the same salt.
            let again = try CobblestoneMessage.seal(
                plaintext, key: key, context: vector.ctx.bytes, salt: Array(message.prefix(24)))
            #expect(Content(again) == Content(message), "test \(vector.tcId)")
        }
    }

    @Test("All published invalid messages of Cobblestone-256 are refused where they are wrong, after no more than that")
    func invalid() throws {
        let vectors = try Self.vectors().filter { $0.result == "invalid" }
        #expect(vectors.count == 25)
        for vector in vectors {
            let message = try SystemLibraries.inflate(vector.ct.bytes)
            guard vector.key.bytes.count == 32 else {
                #expect(vector.flags.contains("InvalidKeySize"))
                #expect(throws: CofferError(.invalidKey)) { try SymmetricKey(data: vector.key.bytes) }
                continue
            }
            let key = try SymmetricKey(data: vector.key.bytes)
            let outcome = try CobblestoneMessage.open(message, key: key, context: vector.ctx.bytes)
            if case .opened = outcome { Issue.record("test \(vector.tcId), \(vector.comment): it opened") }
            let streamed = try CobblestoneMessage.openChunks(of: message, key: key, context: vector.ctx.bytes)
            if vector.flags.contains("HeaderFailure") {
                #expect(streamed == .wrongHeader, "test \(vector.tcId)")
            } else {
                try expectPrefix(of: vector, from: streamed)
                try expectLastChunk(of: vector, message, key)
            }
        }
    }

    /// A reader that doesn't look at the length first sees no more than the longest valid prefix.
    private func expectPrefix(of vector: Vector, from outcome: CobblestoneMessage.Outcome) throws {
        guard case .wrongChunk(let index, let opened) = outcome else {
            Issue.record("test \(vector.tcId), \(vector.comment): \(outcome.name)")
            return
        }
        #expect(opened.count == vector.msgLength ?? 0, "test \(vector.tcId)")
        #expect(opened.count == index * Cobblestone.chunkByteCount, "test \(vector.tcId)")
        guard vector.flags.contains("PartialPlaintext") else { return }
        #expect(SystemLibraries.sha512(opened) == vector.msgSha512?.bytes, "test \(vector.tcId)")
    }

    /// A reader that proves the length by the last chunk is told the truth about that.
    private func expectLastChunk(of vector: Vector, _ message: [UInt8], _ key: SymmetricKey) throws {
        let header = Array(message.prefix(56))
        guard var decryptor = try CobblestoneDecryptor(key: key, context: vector.ctx.bytes, header: header) else {
            Issue.record("test \(vector.tcId): its header is valid")
            return
        }
        let length = Cobblestone.plaintextByteCount(ofMessage: message.count)
        let last =
            try length.map {
                try decryptor.open(
                    CobblestoneMessage.chunk($0 / 16384, of: message), index: $0 / 16384)
            } ?? nil
        #expect((last != nil) == vector.flags.contains("ValidFinalChunk"), "test \(vector.tcId)")
    }
}
