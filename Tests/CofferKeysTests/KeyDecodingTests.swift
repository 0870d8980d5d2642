import Coffer
import Testing

@_spi(Tool) @testable import CofferKeys

@Suite("What the source of a key holds")
struct KeyDecodingTests {
    private func key(_ encoding: KeySource.Encoding, _ bytes: [UInt8]) throws -> SymmetricKey {
        var secret = KeyBytes()
        for byte in bytes { try secret.append(byte) }
        return try encoding.reading(from: secret).key
    }

    private func key(_ encoding: KeySource.Encoding, _ text: String) throws -> SymmetricKey {
        try key(encoding, Array(text.utf8))
    }

    @Test(
        "One line end after a password does not count, everything else does",
        arguments: [
            ("pass", "pass"), ("pass\n", "pass"), ("pass\r\n", "pass"), ("pass\n\n", "pass\n"), ("pass\r", "pass\r"),
            ("\npass", "\npass"), (" pass ", " pass "), ("pass\r\r\n", "pass\r"), ("a\u{0}b", "a\u{0}b"),
            ("pässwörd\n", "pässwörd"),
        ])
    func passwords(text: String, password: String) throws {
        #expect(try key(.password, text) == SymmetricKey(password: password))
    }

    @Test("A password of the longest length is taken, one byte more is not", arguments: [65_536, 65_537])
    func longest(byteCount: Int) throws {
        let text = String(repeating: "a", count: byteCount)
        if byteCount == 65_536 {
            #expect(try key(.password, text) == SymmetricKey(password: text))
        } else {
            #expect(throws: KeySourceError.self) { try key(.password, text) }
        }
    }

    @Test(
        "What is read of a key stays as its memory grows, and what is dropped of it is zero",
        arguments: [1, 4_095, 4_096, 4_097, 16_385, 65_536])
    func growing(byteCount: Int) throws {
        let bytes = (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        var secret = KeyBytes()
        for byte in bytes { try secret.append(byte) }
        #expect(secret.withBytes { [UInt8]($0) } == bytes)
        let copy = try bytes.withUnsafeBytes { try KeyBytes($0).withBytes { [UInt8]($0) } }
        #expect(copy == bytes)
        secret.dropLast(1)
        #expect(secret[byteCount - 1] == 0 && secret.byteCount == byteCount - 1)
    }

    @Test("An empty password is refused, whatever line end it has", arguments: ["", "\n", "\r\n"])
    func emptyPassword(text: String) {
        for encoding in KeySource.Encoding.allCases where encoding != .raw || text.isEmpty {
            let failure = #expect(throws: KeySourceError.self) { try key(encoding, text) }
            #expect(failure?.code == .unusable && failure?.status == 400)
        }
    }

    @Test("A password that is not UTF-8 is refused", arguments: [[0xFF], [0xC3], [0xED, 0xA0, 0x80], [0xC0, 0x80]])
    func notUTF8(bytes: [UInt8]) {
        #expect(throws: KeySourceError.self) { try key(.password, bytes) }
    }

    @Test("32 bytes are a key in each spelling")
    func spellings() throws {
        let bytes = (0..<32).map { UInt8(truncatingIfNeeded: $0 * 37 + 200) }
        let expected = try SymmetricKey(data: bytes)
        let hex = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        #expect(try key(.raw, bytes) == expected)
        #expect(try key(.hex, hex) == expected)
        #expect(try key(.hex, hex.uppercased() + "\r\n") == expected)
        #expect(try key(.base64, Self.base64(bytes)) == expected)
        #expect(try key(.base64, Self.base64(bytes) + "\n") == expected)
    }

    @Test("32 raw bytes may end in a line end of their own")
    func rawLineEnd() throws {
        let bytes = [UInt8](repeating: 10, count: 32)
        #expect(try key(.raw, bytes) == SymmetricKey(data: bytes))
    }

    @Test("Any other number of bytes than a key has is refused in each spelling", arguments: [1, 16, 31, 33, 64])
    func lengths(byteCount: Int) {
        let bytes = [UInt8](repeating: 0xA5, count: byteCount)
        #expect(throws: KeySourceError.self) { try key(.raw, bytes) }
        #expect(throws: KeySourceError.self) { try key(.hex, String(repeating: "a5", count: byteCount)) }
        #expect(throws: KeySourceError.self) { try key(.base64, Self.base64(bytes)) }
    }

    @Test("A key that is not hex or base64 is refused and not repeated")
    func malformed() throws {
        let hex = String(repeating: "a5", count: 32)
        for text in [
            String(hex.dropLast()), hex.dropLast() + "g", hex.dropLast() + " ", "0x" + hex.dropLast(2), hex + "\n\n",
        ] {
            let failure = #expect(throws: KeySourceError.self) { try key(.hex, String(text)) }
            #expect(failure?.message.contains("a5a5") == false)
        }
        let base64 = Self.base64([UInt8](repeating: 0xA5, count: 32))
        #expect(base64.hasSuffix("aU="))
        for text in [
            String(base64.dropLast()), base64.replacing("aU=", with: "aV="), base64.replacing("aU=", with: "a-="),
            "=" + base64.dropFirst(), base64 + "====",
        ] {
            let failure = #expect(throws: KeySourceError.self, "\(text)") { try key(.base64, text) }
            #expect(failure?.message.contains(base64.prefix(4)) == false)
        }
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var text = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for place in 0..<4 { text.append(place <= group.count ? digits[bits >> (18 - 6 * place) & 63] : "=") }
        }
        return text
    }
}
