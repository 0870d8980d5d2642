import Foundation
import TestSupport
import Testing

@testable import CofferSealing

/// XAES-256-GCM against the figures of its specification, c2sp.org/XAES-256-GCM.
@Suite("XAES-256-GCM")
struct ExtendedNonceVectorTests {
    struct Example: Sendable, CustomTestStringConvertible {
        let keyByte: UInt8
        let additionalData: String
        let ciphertext: String

        var testDescription: String { "key of \(keyByte)" }

        static let published = [
            Example(
                keyByte: 1, additionalData: "",
                ciphertext: "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
            Example(
                keyByte: 3, additionalData: "c2sp.org/XAES-256-GCM",
                ciphertext: "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"),
        ]
    }

    @Test(
        "Published examples seal to the published bytes, open, and don't open with any bit changed",
        arguments: Example.published)
    func publishedExample(example: Example) throws {
        let key = try SymmetricKey(data: [UInt8](repeating: example.keyByte, count: 32))
        var cipher = try ExtendedNonceCipher(key: key)
        let nonce = Array("ABCDEFGHIJKLMNOPQRSTUVWX".utf8)
        let data = Array(example.additionalData.utf8)
        let plaintext = Array("XAES-256-GCM".utf8)
        let sealed = try cipher.seal(plaintext, nonce: nonce, additionalData: data)
        #expect(sealed.hex == example.ciphertext)
        #expect(try cipher.open(sealed[...], nonce: nonce, additionalData: data) == plaintext)
        for bit in 0..<8 * sealed.count {
            var changed = sealed
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(try cipher.open(changed[...], nonce: nonce, additionalData: data) == nil)
        }
        for bit in 0..<8 * nonce.count {
            var changed = nonce
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(try cipher.open(sealed[...], nonce: changed, additionalData: data) == nil)
        }
        #expect(try cipher.open(sealed[...], nonce: nonce, additionalData: data + [0]) == nil)
    }

    /// The specification's "accumulated randomized" test of 10,000 rounds.
    @Test("Ten thousand random messages under random keys seal to what the specification accumulates")
    func accumulatedRounds() throws {
        let roundCount = 10_000
        let random = try SystemLibraries.shake128([], byteCount: roundCount * (32 + 24 + 2 * 256))
        var position = 0
        func next(_ count: Int) -> [UInt8] {
            defer { position += count }
            return Array(random[position..<position + count])
        }
        var ciphertexts: [UInt8] = []
        for _ in 0..<roundCount {
            let key = try SymmetricKey(data: next(32))
            let nonce = next(24)
            let plaintext = next(Int(next(1)[0]))
            let data = next(Int(next(1)[0]))
            var cipher = try ExtendedNonceCipher(key: key)
            let sealed = try cipher.seal(plaintext, nonce: nonce, additionalData: data)
            try #require(try cipher.open(sealed[...], nonce: nonce, additionalData: data) == plaintext)
            ciphertexts += sealed
        }
        #expect(
            try SystemLibraries.shake128(ciphertexts, byteCount: 32).hex
                == "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939")
    }

    @Test("A cipher that has forgotten the key of a nonce derives it again")
    func manyPrefixes() throws {
        var cipher = try ExtendedNonceCipher(key: SymmetricKey())
        let nonces = (0..<10).map { [UInt8](repeating: UInt8($0), count: 24) }
        let sealed = try nonces.map { try cipher.seal([1, 2, 3], nonce: $0, additionalData: []) }
        for _ in 0..<3 {
            for (nonce, message) in zip(nonces, sealed) {
                #expect(try cipher.open(message[...], nonce: nonce, additionalData: []) == [1, 2, 3])
            }
        }
    }

    @Test("A password seals nothing")
    func password() {
        let error = #expect(throws: CofferError.self) { _ = try ExtendedNonceCipher(key: SymmetricKey(password: "x")) }
        #expect(error?.code == .invalidArgument)
    }
}
