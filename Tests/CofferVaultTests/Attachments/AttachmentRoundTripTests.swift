import CofferSealing
import CofferVault
import Foundation
import Testing

/// Around each boundary of the format: chunks of 16384 bytes, written and read 64 at a time.
private let sizes = [
    0, 1, 2, 100, 16383, 16384, 16385, 32767, 32768, 32769, 1_048_575, 1_048_576, 1_048_577, 3_333_333,
]

@Suite("An attachment's content")
struct AttachmentRoundTripTests {
    @Test("is read as it was written, whole, in pieces and by range", arguments: [true, false], sizes)
    func roundTrip(isEncrypted: Bool, size: Int) throws {
        let fixture = try AttachmentFixture(isEncrypted: isEncrypted)
        let bytes = content(size)
        let saved = try fixture.save(bytes)
        #expect(saved.digest.byteCount == size)
        #expect(saved.digest.sha1 == Digest.sha1(of: bytes))
        #expect(saved.digest.sha256 == Digest.sha256(of: bytes))
        #expect(saved.isEncrypted == isEncrypted && saved.header.count == (isEncrypted ? 56 : 0))

        let reader = try fixture.open(saved)
        #expect(reader.byteCount == size)
        #expect(try reader.wholeContent() == bytes)
        for pieces in [1000, 16384, 16385, 100_000, 2_000_000] {
            #expect(try read(reader, pieces: pieces) == bytes, "in pieces of \(pieces)")
        }
        for bound in [0, 1, 16383, 16384, 16385, 32768, size / 2, size - 1, size] where (0...size).contains(bound) {
            #expect(try reader.bytes(in: 0..<bound) == Array(bytes[..<bound]))
            #expect(try reader.bytes(in: bound..<size) == Array(bytes[bound...]))
            let end = min(size, bound + 1)
            #expect(try reader.bytes(in: bound..<end) == Array(bytes[bound..<end]))
        }
    }
}
