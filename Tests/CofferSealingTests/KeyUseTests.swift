import TestSupport
import Testing

@testable import CofferSealing

@Suite("A key's uses")
struct KeyUseTests {
    let kek, key: SymmetricKey

    init() throws { (kek, key) = (try SymmetricKey(), try SymmetricKey()) }

    @Test("Wrapping a key gives 40 bytes, the same each time, that only the same key unwraps")
    func wrapping() throws {
        let wrapped = try kek.wrap(key)
        #expect(wrapped.count == 40)
        #expect(try kek.wrap(key) == wrapped)
        #expect(try kek.unwrap(wrapped) == key)
        #expect(try key.unwrap(wrapped) == nil)
        #expect(try SymmetricKey().unwrap(wrapped) == nil)
        #expect(try kek.unwrap(wrapped)?.isPassword == false)
    }

    @Test("Unwrapping 40 bytes with any bit flipped finds the wrong check value, which leaves no error behind")
    func flippedBits() throws {
        let wrapped = try kek.wrap(key)
        for bit in 0..<320 {
            var changed = wrapped
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(try kek.unwrap(changed) == nil)
        }
        #expect(drainOpenSSLErrors().isEmpty)
        #expect(try kek.unwrap(wrapped) == key)
    }

    @Test("Unwrapping under a key with any bit flipped finds the wrong check value")
    func flippedKeyBits() throws {
        let wrapped = try kek.wrap(key)
        for bit in 0..<256 {
            var bytes = kek.withBytes { Array($0) }
            bytes[bit / 8] ^= 1 << (bit % 8)
            #expect(try SymmetricKey(data: bytes).unwrap(wrapped) == nil)
        }
    }

    @Test("Unwrapping another number of bytes is a 400", arguments: [0, 1, 8, 16, 24, 32, 39, 41, 48, 80])
    func lengths(count: Int) throws {
        let bytes = try Array((kek.wrap(key) + kek.wrap(key)).prefix(count))
        let error = #expect(throws: CofferError.self) { try kek.unwrap(bytes) }
        #expect(error?.code == .invalidArgument)
        #expect(error?.description == "invalid argument: a wrapped key has 40 bytes, not \(count) (400)")
    }

    @Test("A password wraps, unwraps and authenticates nothing, and isn't wrapped")
    func passwords() throws {
        let password = SymmetricKey(password: String(repeating: "x", count: 32))
        let wrapped = try kek.wrap(key)
        #expect(throws: CofferError(.invalidArgument)) { try password.wrap(key) }
        #expect(throws: CofferError(.invalidArgument)) { try kek.wrap(password) }
        #expect(throws: CofferError(.invalidArgument)) { try password.unwrap(wrapped) }
        #expect(throws: CofferError(.invalidArgument)) { try password.authenticationCode(for: [1]) }
    }

    @Test("An authentication code depends on every bit of the key and the message")
    func authenticationCodes() throws {
        let key = try SymmetricKey(data: [UInt8](repeating: 0x0b, count: 32))
        let message = Array("Hi There".utf8)
        // Python: hmac.new(b"\x0b" * 32, b"Hi There", "sha256").hexdigest()
        let code = try key.authenticationCode(for: message)
        #expect(code.hex == "198a607eb44bfbc69903a0f1cf2bbdc5ba0aa3f3d9ae3c1c7a3b1696a0b68cf7")
        var codes: Set<[UInt8]> = [code, try key.authenticationCode(for: []), try key.authenticationCode(for: [0])]
        for bit in 0..<64 {
            var changed = message
            changed[bit / 8] ^= 1 << (bit % 8)
            codes.insert(try key.authenticationCode(for: changed))
        }
        for bit in 0..<256 {
            var changed = [UInt8](repeating: 0x0b, count: 32)
            changed[bit / 8] ^= 1 << (bit % 8)
            codes.insert(try SymmetricKey(data: changed).authenticationCode(for: message))
        }
        #expect(codes.count == 3 + 64 + 256)
        #expect(codes.allSatisfy { $0.count == 32 })
    }

    @Test("Secret bytes are equal when all of them are", arguments: [0, 1, 31, 32, 33])
    func constantTimeEquality(count: Int) {
        let bytes = (0..<count).map { UInt8($0) }
        #expect(equalInConstantTime(bytes, bytes))
        #expect(!equalInConstantTime(bytes, bytes + [0]))
        #expect(!equalInConstantTime(bytes + [0], bytes))
        for index in 0..<count {
            var changed = bytes
            changed[index] ^= 0x80
            #expect(!equalInConstantTime(bytes, changed))
        }
    }

    @Test("Random bytes are as many as asked for, and new each time", arguments: [0, 1, 8, 16, 32, 100_000])
    func random(count: Int) throws {
        let first = try randomBytes(count: count), second = try randomBytes(count: count)
        #expect(first.count == count && second.count == count)
        if count >= 8 { #expect(first != second) }
    }
}
