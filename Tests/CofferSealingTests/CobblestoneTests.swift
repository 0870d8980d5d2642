import Testing

@testable import CofferSealing

@Suite("Cobblestone-256")
struct CobblestoneTests {
    let key = SymmetricKey()
    let context = Array("coffer/v1/attachment\0".utf8)

    static let sizes = [
        0, 1, 15, 16, 16383, 16384, 16385, 2 * 16384 - 1, 2 * 16384, 2 * 16384 + 1, 5 * 16384, 5 * 16384 + 7,
    ]

    @Test("what was sealed opens, and has the length that the format says", arguments: sizes)
    func roundTrip(count: Int) throws {
        let plaintext = CobblestoneMessage.pattern(count)
        let message = try CobblestoneMessage.seal(plaintext, key: key, context: context)
        #expect(message.count == Cobblestone.messageByteCount(ofPlaintext: count))
        #expect(Cobblestone.plaintextByteCount(ofMessage: message.count) == count)
        #expect(try CobblestoneMessage.open(message, key: key, context: context) == .opened(plaintext))
    }
}
