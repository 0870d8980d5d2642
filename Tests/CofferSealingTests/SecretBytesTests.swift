import Testing

@testable import CofferSealing

@Suite("Secret bytes")
struct SecretBytesTests {
    @Test(
        "Secret bytes are zero until filled, and exactly as many as asked for",
        arguments: [0, 1, 32, 4095, 4096, 4097, 20_000])
    func sizes(count: Int) {
        var secret = SecretBytes(byteCount: count)
        #expect(secret.byteCount == count)
        #expect(secret.withBytes { $0.count } == count)
        #expect(secret.withBytes { $0.allSatisfy { $0 == 0 } })
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &+ 1) }
        secret.withMutableBytes { $0.copyBytes(from: bytes) }
        #expect(secret.withBytes { Array($0) } == bytes)
        let filled = SecretBytes(byteCount: count) { $0.copyBytes(from: bytes) }
        #expect(filled.withBytes { Array($0) } == bytes)
    }

    @Test("Secret bytes pass on what fills, reads or writes them throws")
    func throwing() {
        struct Refusal: Error, Equatable {}
        #expect(throws: Refusal()) {
            _ = try SecretBytes(byteCount: 8) { bytes throws(Refusal) in
                bytes[0] = 1
                throw Refusal()
            }
        }
        var secret = SecretBytes(byteCount: 8)
        #expect(throws: Refusal()) { try secret.withMutableBytes { _ throws(Refusal) in throw Refusal() } }
    }

    @Test("Secret bytes don't share a page, so that unlocking one leaves the others locked")
    func pages() {
        let first = SecretBytes(byteCount: 32), second = SecretBytes(byteCount: 32)
        let starts = [
            first.withBytes { UInt(bitPattern: $0.baseAddress) }, second.withBytes { UInt(bitPattern: $0.baseAddress) },
        ]
        #expect(starts[0] / 4096 != starts[1] / 4096)
        #expect(starts.allSatisfy { $0.isMultiple(of: 4096) })
    }
}
