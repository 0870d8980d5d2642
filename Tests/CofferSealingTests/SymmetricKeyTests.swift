import CofferSealing
import Foundation
import TestSupport
import Testing

@Suite("A symmetric key")
struct SymmetricKeyTests {
    static let bytes = (100..<132).map { UInt8($0) }

    @Test("A symmetric key takes exactly 32 bytes, from whatever holds bytes")
    func bytes() throws {
        #expect(try SymmetricKey(data: Self.bytes).withBytes { Array($0) } == Self.bytes)
        let data: Data = try SymmetricKey(data: Data(Self.bytes)).withBytes { Data($0) }
        #expect(data == Data(Self.bytes))
        // A slice's indices don't start at zero.
        let longer = [1, 2, 3] + Self.bytes + [4]
        #expect(try SymmetricKey(data: longer[3..<35]).withBytes { Array($0) } == Self.bytes)
        #expect(try SymmetricKey(data: Data(longer)[3..<35]).withBytes { Array($0) } == Self.bytes)
    }

    @Test("A symmetric key of any other length is refused with 400", arguments: [0, 1, 16, 31, 33, 64, 4096])
    func lengths(count: Int) {
        let bytes = [UInt8](repeating: 7, count: count)
        for makeKey in [{ try SymmetricKey(data: bytes) }, { try SymmetricKey(data: Data(bytes)) }] {
            let error = #expect(throws: CofferError.self) { try makeKey() }
            #expect(error?.code == .invalidKey)
            #expect(error?.status == 400)
            #expect(error?.description == "invalid key: a key has 32 bytes, not \(count) (400)")
        }
    }

    @Test("A symmetric key in hex is not decoded: its 64 characters are refused as data")
    func hexIsNotDecoded() {
        #expect(throws: CofferError.self) { try SymmetricKey(data: Data(Self.bytes.hex.utf8)) }
    }

    @Test("A symmetric key made at random is new each time, and none is zero")
    func random() throws {
        let keys = try (0..<100).map { _ in try SymmetricKey().withBytes { Array($0) } }
        #expect(Set(keys).count == 100)
        #expect(keys.allSatisfy { $0.count == 32 && $0.contains { $0 != 0 } })
    }

    @Test("A symmetric key keeps its own copy of the bytes that it was made of")
    func ownership() throws {
        var bytes = Self.bytes
        let key = try SymmetricKey(data: bytes)
        bytes[0] ^= 1
        #expect(key.withBytes { Array($0) } == Self.bytes)
    }

    @Test("A symmetric key passes on what the closure returns and throws")
    func closures() throws {
        struct Refusal: Error, Equatable {}
        let key = try SymmetricKey()
        #expect(key.withBytes { $0.count } == 32)
        #expect(throws: Refusal()) { try key.withBytes { _ throws(Refusal) -> Int in throw Refusal() } }
    }

    @Test("A symmetric key equals one of the same kind with the same bytes, and no other")
    func equality() throws {
        let key = try SymmetricKey(data: Self.bytes)
        #expect(try key == SymmetricKey(data: Self.bytes))
        for bit in 0..<256 {
            var changed = Self.bytes
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(try key != SymmetricKey(data: changed))
        }
        #expect(try SymmetricKey() != SymmetricKey())
        #expect(SymmetricKey(password: "one") == SymmetricKey(password: "one"))
        #expect(SymmetricKey(password: "one") != SymmetricKey(password: "One"))
        #expect(SymmetricKey(password: "one") != SymmetricKey(password: "one "))
        #expect(SymmetricKey(password: "") == SymmetricKey(password: ""))
        #expect(SymmetricKey(password: "") != SymmetricKey(password: "\0"))
        // The same 32 bytes are one key as a password and another as bytes.
        let text = String(decoding: Self.bytes.map { $0 & 0x7f }, as: UTF8.self)
        #expect(try SymmetricKey(password: text) != SymmetricKey(data: Array(text.utf8)))
    }

    @Test("A symmetric key of equal strings is equal, however their characters are composed")
    func normalization() {
        let composed = "caf\u{e9} \u{1e69}", decomposed = "cafe\u{301} s\u{307}\u{323}"
        #expect(composed == decomposed && Array(composed.utf8) != Array(decomposed.utf8))
        #expect(SymmetricKey(password: composed) == SymmetricKey(password: decomposed))
        #expect(SymmetricKey(password: decomposed).withBytes { Array($0) } == Array(composed.utf8))
        #expect(SymmetricKey(password: "cafe") != SymmetricKey(password: composed))
        // Characters that only look alike stay different: this is form C, not KC.
        #expect(SymmetricKey(password: "x\u{b2}") != SymmetricKey(password: "x2"))
    }

    @Test("A symmetric key of a substring, a long string and one with zero bytes keeps every byte")
    func strings() {
        for password in [
            "a", "a\0b", String("xxpasswordxx".dropFirst(2).dropLast(2)), String(repeating: "é", count: 5000),
        ] {
            #expect(SymmetricKey(password: password).withBytes { Array($0) } == Array(password.utf8))
            #expect(SymmetricKey(password: password).isPassword)
        }
    }

    @Test("A symmetric key shows nothing of itself to print, dump, mirrors and interpolation")
    func redaction() throws {
        let password = "correct horse battery staple"
        for key in [try SymmetricKey(data: Array(password.utf8) + [33, 33, 33, 33]), SymmetricKey(password: password)] {
            var dumped = ""
            dump(key, to: &dumped)
            dump([key], to: &dumped)
            dump(Optional(key), to: &dumped)
            let shown = [
                key.description, key.debugDescription, String(describing: key), String(reflecting: key), "\(key)",
                "\([key])", "\(Optional(key) as Any)", dumped,
                String(describing: Mirror(reflecting: key).children.map { $0 }),
            ]
            for text in shown {
                #expect(!text.contains("correct"))
                #expect(!text.contains("99, 111"))
                #expect(!text.contains("secret"))
                #expect(!text.localizedCaseInsensitiveContains("636f7272"))
                #expect(!text.contains("0x"))
            }
            #expect(String(describing: key) == "SymmetricKey(redacted)")
            #expect(String(reflecting: key) == "SymmetricKey(redacted)")
            #expect(Mirror(reflecting: key).children.isEmpty)
            #expect(Mirror(reflecting: key).superclassMirror == nil)
            #expect((key as Any) as? any Encodable == nil)
        }
    }

    @Test("A symmetric key can be used by many threads at once")
    func threads() async throws {
        let key = try SymmetricKey(data: Self.bytes)
        let wrapped = try key.wrap(key)
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    (0..<50).allSatisfy { _ in
                        let unwrapped = try? key.unwrap(wrapped)
                        return unwrapped == key && key.withBytes { Array($0) } == Self.bytes
                    }
                }
            }
            for await allMatch in group { #expect(allMatch) }
        }
    }
}
