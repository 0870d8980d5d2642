import Testing

@testable import CofferSealing

@Suite("Sealed pages are those of Vectors/sealed-pages")
struct SealedPageVectorTests {
    struct Vector: Decodable {
        let name: String, kind: Kind, number: UInt32, key: Hex, storeUUID: Hex, generation: UInt64, generationTag: Hex
        let sealed: Parts, opens: Opened?

        enum Kind: String, Decodable { case page, frame, logHeader }
    }

    /// What a vector says of a message that opens; which members there are depends on its kind.
    struct Opened: Decodable, Equatable {
        var plaintextSHA256: Hex?
        var header: Hex?
        var checkpointSequence: UInt32?
        var syncedFrameCount: UInt32?
        var pageSHA256: Hex?
    }

    private func codec(_ vector: Vector) throws -> SealedPageCodec {
        let tag = vector.generationTag.bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return try SealedPageCodec(
            key: SymmetricKey(data: vector.key.bytes),
            binding: SealedPageBinding(
                storeUUID: vector.storeUUID.bytes, generation: vector.generation, generationTag: tag))
    }

    private func opened(_ vector: Vector, _ message: [UInt8], with codec: inout SealedPageCodec) throws -> Opened? {
        switch vector.kind {
        case .page:
            guard let page = try codec.openPage(vector.number, message) else { return nil }
            #expect(page.dropFirst(SealedPageCodec.usableByteCount).allSatisfy { $0 == 0 }, "\(vector.name): reserve")
            return Opened(plaintextSHA256: try sha256(page.prefix(SealedPageCodec.usableByteCount)))
        case .frame:
            guard let frame = try codec.openFrame(vector.number, message) else { return nil }
            return Opened(
                header: Hex(frame.header), checkpointSequence: frame.checkpointSequence,
                syncedFrameCount: frame.syncedFrameCount,
                pageSHA256: try sha256(frame.page.prefix(SealedPageCodec.usableByteCount)))
        case .logHeader:
            return try codec.openLogHeader(message).map { Opened(header: Hex($0)) }
        }
    }

    private func sha256(_ bytes: ArraySlice<UInt8>) throws -> Hex {
        var digest = try StreamingDigest(.sha256)
        digest.update(Array(bytes))
        return Hex(digest.finalize())
    }

    @Test("Each message of Vectors/sealed-pages opens to what its vector says, or does not open")
    func messages() throws {
        let vectors = try VectorFiles.sealedPages("messages", as: Vector.self)
        #expect(vectors.count { $0.opens != nil } == 14)
        #expect(vectors.count { $0.opens == nil } == 46)
        for vector in vectors {
            var codec = try codec(vector)
            let opened = try opened(vector, vector.sealed.bytes, with: &codec)
            #expect(opened == vector.opens, "\(vector.name)")
        }
    }

    @Test("A sealed page with any one bit changed does not open")
    func everyBit() throws {
        let vectors = try VectorFiles.sealedPages("messages", as: Vector.self)
        for kind in [Vector.Kind.page, .frame, .logHeader] {
            let vector = try #require(vectors.first { $0.kind == kind && $0.opens != nil })
            var codec = try codec(vector)
            var message = vector.sealed.bytes
            for bit in 0..<message.count * 8 {
                message[bit / 8] ^= 1 << (bit % 8)
                if try opened(vector, message, with: &codec) != nil { Issue.record("\(vector.name): bit \(bit)") }
                message[bit / 8] ^= 1 << (bit % 8)
            }
            #expect(try opened(vector, message, with: &codec) == vector.opens)
        }
    }

    @Test("Sealed pages of different sessions open in any order")
    func sessions() throws {
        let vectors = try VectorFiles.sealedPages("messages", as: Vector.self)
            .filter { $0.opens != nil && $0.name.hasPrefix("p") }
        let first = try #require(vectors.first)
        var codec = try codec(first)
        for vector in vectors + vectors.reversed() where vector.key == first.key && vector.storeUUID == first.storeUUID
        {
            #expect(try opened(vector, vector.sealed.bytes, with: &codec) == vector.opens, "\(vector.name)")
        }
    }
}
