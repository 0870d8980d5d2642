import TestSupport
import Testing

@testable import CofferSealing

@Suite("Messages are the ones in Vectors/attachments")
struct CobblestoneVectorTests {
    struct SealVector: Decodable {
        let name: String, key: Hex, context: Hex, salt: Hex, commitment: Hex, lastTag: Hex
        let plaintextByteCount: Int, plaintextSHA256: Hex, messageByteCount: Int, messageSHA256: Hex
    }

    @Test("Sealing a pattern gives the message with this SHA-256, which opens again")
    func seal() throws {
        let vectors = try VectorFiles.attachments("seal", as: SealVector.self)
        #expect(vectors.count == 15)
        for vector in vectors {
            let key = try SymmetricKey(data: vector.key.bytes)
            let plaintext = CobblestoneMessage.pattern(vector.plaintextByteCount)
            #expect(try digest(plaintext) == vector.plaintextSHA256.bytes, "\(vector.name)")
            let message = try CobblestoneMessage.seal(
                plaintext, key: key, context: vector.context.bytes, salt: vector.salt.bytes)
            #expect(Array(message[24..<56]) == vector.commitment.bytes, "\(vector.name)")
            #expect(message.suffix(16) == vector.lastTag.bytes[...], "\(vector.name)")
            #expect(message.count == vector.messageByteCount, "\(vector.name)")
            #expect(try digest(message) == vector.messageSHA256.bytes, "\(vector.name)")
            let outcome = try CobblestoneMessage.open(message, key: key, context: vector.context.bytes)
            #expect(outcome == .opened(plaintext), "\(vector.name)")
        }
    }

    struct ValidVector: Decodable {
        let name: String, key: Hex, context: Hex, message: Parts, plaintextByteCount: Int, plaintextSHA256: Hex
    }

    @Test("A valid message of the vectors opens, and sealing what it holds gives it again")
    func valid() throws {
        let vectors = try VectorFiles.attachments("valid", as: ValidVector.self)
        #expect(vectors.count == 10)
        for vector in vectors {
            let key = try SymmetricKey(data: vector.key.bytes)
            let message = vector.message.bytes
            #expect(Cobblestone.plaintextByteCount(ofMessage: message.count) == vector.plaintextByteCount)
            let outcome = try CobblestoneMessage.open(message, key: key, context: vector.context.bytes)
            guard case .opened(let plaintext) = outcome else {
                Issue.record("\(vector.name): \(outcome.name)")
                continue
            }
            #expect(plaintext.count == vector.plaintextByteCount, "\(vector.name)")
            #expect(try digest(plaintext) == vector.plaintextSHA256.bytes, "\(vector.name)")
            let again = try CobblestoneMessage.seal(
                plaintext, key: key, context: vector.context.bytes, salt: Array(message.prefix(24)))
            #expect(Content(again) == Content(message), "\(vector.name)")
        }
    }

    struct InvalidVector: Decodable {
        let name: String, outcome: String, key: Hex, context: Hex, messageByteCount: Int, message: Parts
    }

    @Test(
        "An invalid message of the vectors is refused for the reason that it says, and everything before it is opened")
    func invalid() throws {
        let vectors = try VectorFiles.attachments("invalid", as: InvalidVector.self)
        #expect(vectors.count == 56)
        for vector in vectors {
            let message = vector.message.bytes
            #expect(message.count == vector.messageByteCount, "\(vector.name)")
            let outcome = try CobblestoneMessage.open(
                message, key: SymmetricKey(data: vector.key.bytes), context: vector.context.bytes)
            #expect(outcome.name == vector.outcome, "\(vector.name)")
            if case .wrongChunk(let index, let opened) = outcome {
                #expect(opened.count == index * 16384, "\(vector.name)")
            }
        }
        #expect(drainOpenSSLErrors().isEmpty)
    }

    struct ChunkVector: Decodable {
        let name: String, key: Hex, context: Hex, header: Hex, index: Int, plaintext: Hex, sealed: Hex
    }

    @Test("A chunk of any index up to the last one possible is sealed and opened under its own nonce")
    func chunks() throws {
        let vectors = try VectorFiles.attachments("chunks", as: ChunkVector.self)
        #expect(vectors.count == 14 && vectors.last?.index == Cobblestone.maximumChunkCount - 1)
        for vector in vectors {
            let key = try SymmetricKey(data: vector.key.bytes)
            let (context, header) = (vector.context.bytes, vector.header.bytes)
            var encryptor = try CobblestoneEncryptor(key: key, context: context, salt: Array(header.prefix(24)))
            encryptor.nextIndex = vector.index
            #expect(encryptor.header == header, "\(vector.name)")
            #expect(try encryptor.seal(vector.plaintext.bytes, isLast: true) == vector.sealed.bytes, "\(vector.name)")
            guard var decryptor = try CobblestoneDecryptor(key: key, context: context, header: header) else {
                Issue.record("\(vector.name): its header is valid")
                continue
            }
            for other in vectors {
                let opened = try decryptor.open(vector.sealed.bytes, index: other.index)
                #expect(opened == (other.index == vector.index ? vector.plaintext.bytes : nil), "\(vector.name)")
            }
        }
    }

    private func digest(_ bytes: [UInt8]) throws -> [UInt8] {
        var digest = try StreamingDigest(.sha256)
        digest.update(bytes)
        return digest.finalize()
    }
}

/// Bytes that a JSON file spells as an array of hex strings, where `01*16384` is byte 01 repeated 16384 times.
struct Parts: Decodable {
    let bytes: [UInt8]

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        bytes = try container.decode([String].self).flatMap { part in
            let factors = part.split(separator: "*", omittingEmptySubsequences: false)
            guard let bytes = [UInt8](hex: String(factors[0])), let count = factors.count == 1 ? 1 : Int(factors[1])
            else { throw DecodingError.dataCorruptedError(in: container, debugDescription: "not hex") }
            return count == 1 ? bytes : [UInt8](repeating: bytes[0], count: count)
        }
    }
}
