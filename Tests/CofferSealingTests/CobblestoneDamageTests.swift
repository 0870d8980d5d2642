import Foundation
import TestSupport
import Testing

@testable import CofferSealing

/// Whatever happens to a message's bytes: it is noticed where it is, and what opened before is what was sealed.
@Suite("A changed message")
struct CobblestoneDamageTests {
    let key: SymmetricKey
    let context = Array("coffer/v1/attachment\0".utf8)
    let plaintext = CobblestoneMessage.pattern(2 * 16384 + 37)
    let message: [UInt8]

    /// Whether to take minutes: every bit and every length instead of some.
    static let isExhaustive = ProcessInfo.processInfo.environment["COFFER_EXHAUSTIVE"] == "1"

    init() throws {
        key = try SymmetricKey()
        message = try CobblestoneMessage.seal(plaintext, key: key, context: context)
    }

    private func open(_ message: [UInt8]) throws -> CobblestoneMessage.Outcome {
        try CobblestoneMessage.open(message, key: key, context: context)
    }

    /// Chunk `index` is refused, and what opened before it is true.
    private func wrong(inChunk index: Int) -> CobblestoneMessage.Outcome {
        .wrongChunk(index: index, opened: Array(plaintext.prefix(index * 16384)))
    }

    /// Every bit of header and tags, the first and the last of each ciphertext, and 300 others.
    private func bitsToFlip() -> [Int] {
        if Self.isExhaustive { return Array(0..<8 * message.count) }
        var bits = Array(0..<8 * 56)
        for tagStart in [56 + 16384, 56 + 16400 + 16384, message.count - 16] {
            bits += 8 * tagStart..<8 * (tagStart + 16)
            bits += [8 * (tagStart - 1), 8 * tagStart - 1]
        }
        bits += [56, 56 + 16400, 56 + 2 * 16400].map { 8 * $0 }
        var generator = SeededNumbers(seed: 0xc0bb1e)
        for _ in 0..<300 { bits.append(Int.random(in: 0..<8 * message.count, using: &generator)) }
        return bits
    }

    /// The lengths around each boundary, and 300 others.
    private func countsToKeep() -> [Int] {
        if Self.isExhaustive { return Array(0..<message.count) }
        var counts = Array(0..<100)
        for boundary in [56 + 16400, 56 + 2 * 16400] { counts += boundary - 20...boundary + 20 }
        counts += message.count - 20..<message.count
        var generator = SeededNumbers(seed: 0xc0bb1e)
        for _ in 0..<300 { counts.append(Int.random(in: 0..<message.count, using: &generator)) }
        return counts
    }

    @Test("A changed message is refused whichever bit is flipped")
    func flippedBits() throws {
        for bit in bitsToFlip() {
            var changed = message
            changed[bit / 8] ^= 1 << (bit % 8)
            let outcome = try open(changed)
            let expected = bit < 8 * 56 ? .wrongHeader : wrong(inChunk: (bit / 8 - 56) / 16400)
            #expect(outcome == expected, "bit \(bit)")
        }
        let whole = CobblestoneMessage.Outcome.opened(plaintext), outcome = try open(message)
        #expect(outcome == whole)
        #expect(drainOpenSSLErrors().isEmpty)
    }

    @Test("A changed message is refused wherever it is cut, and never taken for a shorter one")
    func truncations() throws {
        for count in countsToKeep() {
            let start = Array(message.prefix(count))
            let outcome = try open(start)
            let (index, rest) = max(0, count - 56).quotientAndRemainder(dividingBy: 16400)
            let expected = rest < 16 ? .wrongLength : wrong(inChunk: index)
            #expect(outcome == expected, "\(count) bytes")
            // Who doesn't look at the length finds that there is no last chunk.
            let streamed = try CobblestoneMessage.openChunks(of: start, key: key, context: context)
            let expectedStream = count < 56 ? .wrongHeader : wrong(inChunk: index)
            #expect(streamed == expectedStream, "\(count) bytes")
        }
        #expect(drainOpenSSLErrors().isEmpty)
    }

    @Test(
        "A changed message is refused however much is appended",
        arguments: [1, 15, 16, 17, 16400 - 53, 16400, 2 * 16400])
    func appended(count: Int) throws {
        let hasLength = Cobblestone.plaintextByteCount(ofMessage: message.count + count) != nil
        let expected = hasLength ? wrong(inChunk: 2) : .wrongLength
        for appended in [
            [UInt8](repeating: 0, count: count), [UInt8](repeating: 0xff, count: count), message.suffix(count),
        ] {
            let outcome = try open(message + appended)
            #expect(outcome == expected)
        }
    }

    @Test("A changed message is refused in any other order of its chunks, with any of them missing or twice")
    func order() throws {
        let full = try CobblestoneMessage.seal(plaintext + plaintext, key: key, context: context)
        let chunks = (0..<5).map { CobblestoneMessage.chunk($0, of: full) }
        func outcome(_ indices: [Int]) throws -> CobblestoneMessage.Outcome {
            try open(full.prefix(56) + indices.flatMap { chunks[$0] })
        }
        let whole = CobblestoneMessage.Outcome.opened(plaintext + plaintext), inOrder = try outcome([0, 1, 2, 3, 4])
        #expect(inOrder == whole)
        for first in 0..<5 {
            for second in 0..<5 where second != first {
                for third in 0..<5 where third != second && [first, second, third] != [0, 1, 2] {
                    let outcome = try outcome([first, second, third, 3, 4])
                    guard case .wrongChunk(let index, let opened) = outcome else {
                        Issue.record("\(first) \(second) \(third): \(outcome.name)")
                        continue
                    }
                    #expect(index == [first, second, third].enumerated().first { $0 != $1 }?.offset)
                    #expect(Content(opened) == Content((plaintext + plaintext).prefix(index * 16384)))
                }
            }
            let kept = (0..<5).filter { $0 != first }
            let dropped = try outcome(kept)
            #expect(first == 4 ? dropped == .wrongLength : dropped.name == "wrongChunk \(first)")
        }
    }

    @Test("A changed message keeps the chunks readable that aren't changed, in any order, as often as asked")
    func randomAccess() throws {
        var changed = message
        changed[56 + 16400 + 9] ^= 1
        guard var decryptor = try CobblestoneDecryptor(key: key, context: context, header: Array(message.prefix(56)))
        else {
            Issue.record("its header is valid")
            return
        }
        var generator = SeededNumbers(seed: 0xc0bb1e)
        for _ in 0..<200 {
            let index = Int.random(in: 0..<3, using: &generator)
            let isIntact = Bool.random(using: &generator)
            let opened = try decryptor.open(
                CobblestoneMessage.chunk(index, of: isIntact ? message : changed), index: index)
            let sealed = Array(plaintext.dropFirst(index * 16384).prefix(16384))
            #expect(Content(opened) == Content(isIntact || index != 1 ? sealed : nil))
        }
    }

    @Test(
        "A changed message has no chunk of fewer than 16 or more than 16400 bytes",
        arguments: [0, 1, 15, 16, 16399, 16401, 32800])
    func chunkLengths(count: Int) throws {
        guard var decryptor = try CobblestoneDecryptor(key: key, context: context, header: Array(message.prefix(56)))
        else {
            Issue.record("its header is valid")
            return
        }
        let wrong = try decryptor.open(Array(message.dropFirst(56).prefix(count)), index: 0)
        #expect(Content(wrong) == Content(nil))
        let right = try decryptor.open(Array(message.dropFirst(56).prefix(16400)), index: 0)
        #expect(Content(right) == Content(plaintext.prefix(16384)))
    }
}
