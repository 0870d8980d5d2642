import CofferSealing
import Foundation
import TestSupport
import Testing

@Suite("Digests")
struct DigestTests {
    /// FIPS 180-4's examples and the empty message.
    static let known: [(message: String, sha1: String, sha256: String)] = [
        (
            "", "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        ),
        (
            "abc", "a9993e364706816aba3e25717850c26c9cd0d89d",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        ),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (
            String(repeating: "a", count: 1_000_000), "34aa973cd4c4daa4f61eeb2bdbad27316534016f",
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        ),
    ]

    @Test("Digests of the standard's examples are the standard's, at once and in a stream")
    func knownAnswers() throws {
        for (text, sha1, sha256) in Self.known {
            let message = Array(text.utf8)
            #expect(try Digest.sha1(of: message).hex == sha1)
            #expect(try Digest.sha256(of: message).hex == sha256)
            #expect(try Digest.sha256Value(of: message).bytes.hex == sha256)
            #expect(try Digest.sha1(of: message.span.bytes).hex == sha1)
            #expect(try Digest.sha256(of: message.span.bytes).hex == sha256)
            var first = try StreamingDigest(.sha1), second = try StreamingDigest(.sha256)
            first.update(message)
            second.update(message)
            #expect(first.finalize().hex == sha1)
            #expect(second.finalize().hex == sha256)
        }
    }

    @Test("Hex digits are written in lower case and read in either, and nothing else is one")
    func hexadecimalDigits() {
        #expect(hexadecimal([0x00, 0x0f, 0xa0, 0xff]) == "000fa0ff" && hexadecimal([UInt8]()).isEmpty)
        #expect(hexadecimal(0x0123_4567_89ab_cdef as UInt64) == "0123456789abcdef")
        for byte in UInt8.min...UInt8.max {
            let digit =
                Unicode.Scalar(byte).properties.isASCIIHexDigit ? Character(Unicode.Scalar(byte)).hexDigitValue : nil
            #expect(byte.hexDigitValue.map(Int.init) == digit)
            #expect(byte.isLowerCaseHexDigit == "0123456789abcdef".utf8.contains(byte))
        }
    }

    @Test("Digests of RFC 1321's examples are the RFC's")
    func md5() throws {
        for (text, expected) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"), ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        ] {
            var digest = try StreamingDigest(.md5)
            digest.update(Array(text.utf8))
            #expect(digest.finalize().hex == expected)
        }
    }

    @Test(
        "Digests don't depend on where the message is cut",
        arguments: [0, 1, 55, 56, 63, 64, 65, 127, 128, 129, 499, 500])
    func pieces(cut: Int) throws {
        let message = (0..<500).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        var digest = try StreamingDigest(.sha256)
        digest.update(message.span.extracting(0..<cut))
        digest.update([])
        digest.update(message.span.extracting(cut..<500))
        #expect(try digest.finalize() == Digest.sha256(of: message))
    }

    @Test("Digests start over after each result and each reset")
    func reuse() throws {
        for algorithm in [DigestAlgorithm.md5, .sha1, .sha256] {
            var digest = try StreamingDigest(algorithm)
            digest.update([1, 2, 3])
            let first = digest.finalize()
            #expect(first.count == algorithm.byteCount)
            digest.update([1, 2, 3])
            #expect(digest.finalize() == first)
            digest.update([9, 9])
            digest.reset()
            digest.update([1, 2])
            digest.update([3])
            #expect(digest.finalize() == first)
            #expect(digest.finalize() != first)
        }
    }

    @Test("Digests are the same whichever way they are taken out")
    func results() throws {
        var digest = try StreamingDigest(.sha256)
        digest.update([4])
        let value = digest.finalizeSHA256()
        digest.update([4])
        var written = [UInt8](repeating: 0, count: 32)
        written.withUnsafeMutableBytes { digest.finalize(into: $0) }
        #expect(value.bytes == written)
        #expect(try value == Digest.sha256Value(of: [4]))
        #expect(try value != Digest.sha256Value(of: [5]))
        #expect(value.first16 == Array(written.prefix(16)))
        #expect(value.withBytes { Array($0) } == written)
        #expect(value.word0 == written[0..<8].reduce(0) { $0 << 8 | UInt64($1) })
        #expect(value.word3 == written[24..<32].reduce(0) { $0 << 8 | UInt64($1) })
    }

    @Test("Digests know their first 16 bytes, and no others")
    func prefix() throws {
        let value = try Digest.sha256Value(of: [4])
        func starts(with bytes: [UInt8]) -> Bool { value.startsWithFirst16(bytes.span.bytes) }
        #expect(starts(with: value.first16))
        for count in [0, 1, 8, 15, 17, 32] { #expect(!starts(with: Array(value.bytes.prefix(count)))) }
        for bit in 0..<128 {
            var changed = value.first16
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(!starts(with: changed))
        }
    }

    @Test("Digests are taken on many threads at once")
    func threads() async throws {
        let messages = (0..<64).map { [UInt8](repeating: UInt8($0), count: 1000 + $0) }
        let expected = try messages.map { try Digest.sha256(of: $0) }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    var digest = try StreamingDigest(.sha256)
                    return zip(messages, expected).allSatisfy { message, expected in
                        digest.update(message)
                        return digest.finalize() == expected
                    }
                }
            }
            for try await allMatch in group { #expect(allMatch) }
        }
    }
}
