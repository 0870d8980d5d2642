import Coffer
import Testing

@testable import CofferTool

@Suite("Naming the source of a key")
struct KeySourceTests {
    @Test(
        "a source is named by its kind and what it is called there",
        arguments: [
            ("prompt", KeySource.Origin.prompt), ("stdin", .standardInput), ("file:k", .file("k")),
            ("file:a:b+c", .file("a:b+c")), ("env:KEY", .environment("KEY")), ("fd:3", .descriptor(3)),
            ("fd:0", .descriptor(0)), ("cmd:echo a:b", .command("echo a:b")),
        ])
    func origins(text: String, origin: KeySource.Origin) throws {
        #expect(try KeySource(text) == KeySource(encoding: .password, origin: origin))
        #expect(try KeySource("hex+" + text) == KeySource(encoding: .hex, origin: origin))
        #expect(try KeySource("base64+" + text) == KeySource(encoding: .base64, origin: origin))
        #expect(try KeySource("raw+" + text) == KeySource(encoding: .raw, origin: origin))
    }

    @Test(
        "anything else is refused without being repeated",
        arguments: [
            "", "hunter2", "pass:hunter2", "file:", "file", "env:", "cmd:", "fd:", "fd:1", "fd:2", "fd:-1", "fd:x",
            "fd:3x",
            "prompt:hunter2", "stdin:hunter2", "hex+hex+stdin", "Hex+stdin", "b64+stdin", "hex+", "hex+hunter2",
            "file hunter2", " stdin",
        ])
    func refusals(text: String) {
        let failure = #expect(throws: Failure.self) { try KeySource(text) }
        #expect(failure?.exit == .usage)
        #expect(failure?.status == 400)
        #expect(failure?.message.contains("hunter2") == false)
        #expect(failure?.hint?.contains("hunter2") == false)
    }

    @Test("standard input is taken up by stdin and fd:0 alone")
    func standardInput() throws {
        #expect(try KeySource("stdin").usesStandardInput)
        #expect(try KeySource("raw+fd:0").usesStandardInput)
        #expect(try !KeySource("fd:3").usesStandardInput)
        #expect(try !KeySource("prompt").usesStandardInput)
    }
}

@Suite("What the source of a key holds")
struct KeyDecodingTests {
    private func key(_ encoding: KeySource.Encoding, _ bytes: [UInt8]) throws -> SymmetricKey {
        var secret = SecretBytes()
        for byte in bytes { try secret.append(byte) }
        return try KeySource(encoding: encoding, origin: .prompt).reading(from: secret).key
    }

    private func key(_ encoding: KeySource.Encoding, _ text: String) throws -> SymmetricKey {
        try key(encoding, Array(text.utf8))
    }

    @Test(
        "one line end after a password does not count, everything else does",
        arguments: [
            ("pass", "pass"), ("pass\n", "pass"), ("pass\r\n", "pass"), ("pass\n\n", "pass\n"), ("pass\r", "pass\r"),
            ("\npass", "\npass"), (" pass ", " pass "), ("pass\r\r\n", "pass\r"), ("a\u{0}b", "a\u{0}b"),
            ("pässwörd\n", "pässwörd"),
        ])
    func passwords(text: String, password: String) throws {
        #expect(try key(.password, text) == SymmetricKey(password: password))
    }

    @Test("a password of the longest length is taken, one byte more is not", arguments: [65_536, 65_537])
    func longest(byteCount: Int) throws {
        let text = String(repeating: "a", count: byteCount)
        if byteCount == 65_536 {
            #expect(try key(.password, text) == SymmetricKey(password: text))
        } else {
            #expect(throws: Failure.self) { try key(.password, text) }
        }
    }

    @Test("an empty password is refused, whatever line end it has", arguments: ["", "\n", "\r\n"])
    func emptyPassword(text: String) {
        for encoding in KeySource.Encoding.allCases where encoding != .raw || text.isEmpty {
            let failure = #expect(throws: Failure.self) { try key(encoding, text) }
            #expect(failure?.exit == .keyUnavailable)
            #expect(failure?.code == "invalidKey")
        }
    }

    @Test("a password that is not UTF-8 is refused", arguments: [[0xFF], [0xC3], [0xED, 0xA0, 0x80], [0xC0, 0x80]])
    func notUTF8(bytes: [UInt8]) {
        #expect(throws: Failure.self) { try key(.password, bytes) }
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

    @Test("any other number of bytes is refused in each spelling", arguments: [1, 16, 31, 33, 64])
    func lengths(byteCount: Int) {
        let bytes = [UInt8](repeating: 0xA5, count: byteCount)
        #expect(throws: Failure.self) { try key(.raw, bytes) }
        #expect(throws: Failure.self) { try key(.hex, String(repeating: "a5", count: byteCount)) }
        #expect(throws: Failure.self) { try key(.base64, Self.base64(bytes)) }
    }

    @Test("what is not hex or base64 is refused and not repeated")
    func malformed() throws {
        let hex = String(repeating: "a5", count: 32)
        for text in [
            String(hex.dropLast()), hex.dropLast() + "g", hex.dropLast() + " ", "0x" + hex.dropLast(2), hex + "\n\n",
        ] {
            let failure = #expect(throws: Failure.self) { try key(.hex, String(text)) }
            #expect(failure?.message.contains("a5a5") == false)
        }
        let base64 = Self.base64([UInt8](repeating: 0xA5, count: 32))
        #expect(base64.hasSuffix("aU="))
        for text in [
            String(base64.dropLast()), base64.replacing("aU=", with: "aV="), base64.replacing("aU=", with: "a-="),
            "=" + base64.dropFirst(), base64 + "====",
        ] {
            let failure = #expect(throws: Failure.self, "\(text)") { try key(.base64, text) }
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
