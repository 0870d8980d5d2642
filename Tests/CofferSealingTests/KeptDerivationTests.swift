import Dispatch
import TestSupport
import Testing

@testable import CofferSealing

@Suite("A password whose derived keys are kept")
struct KeptDerivationTests {
    /// The least that a store may ask for, with a salt of its own.
    private static func derivation(_ number: UInt8) -> KeyDerivation {
        .scrypt(log2N: 10, r: 8, p: 1, salt: [number])
    }

    @Test("A password's derived key is made once while it is kept, and is the one that it would be otherwise")
    func kept() throws {
        let key = SymmetricKey(password: "password123456", keepingDerivedKeysFor: .seconds(3_600))
        let first = try key.derivedKey(by: Self.derivation(1))
        #expect(try key.derivedKey(by: Self.derivation(1)) === first)
        #expect(try SymmetricKey(copying: key).derivedKey(by: Self.derivation(1)) === first)
        let other = try key.derivedKey(by: Self.derivation(2))
        #expect(other != first)
        #expect(
            try key.derivedKey(by: Self.derivation(1)) === first && key.derivedKey(by: Self.derivation(2)) === other)
        let plain = SymmetricKey(password: "password123456")
        #expect(plain == key)
        #expect(try plain.derivedKey(by: Self.derivation(1)) == first)
    }

    @Test("A password's derived keys are not kept unless that is asked for", arguments: [Duration.zero, .seconds(-1)])
    func notKept(duration: Duration) throws {
        for key in [
            SymmetricKey(password: "password123456"),
            SymmetricKey(password: "password123456", keepingDerivedKeysFor: duration),
        ] {
            weak let first = try key.derivedKey(by: Self.derivation(1))
            #expect(first == nil)
        }
    }

    @Test("A password's derived key goes when its time is over, though nobody asks for it, and with the password")
    func dropped() throws {
        let brief = SymmetricKey(password: "password123456", keepingDerivedKeysFor: .milliseconds(20))
        weak let first = try brief.derivedKey(by: Self.derivation(1))
        #expect(eventually { first == nil })
        let second = try brief.derivedKey(by: Self.derivation(1))
        #expect(try second == SymmetricKey(password: "password123456").derivedKey(by: Self.derivation(1)))

        var long: SymmetricKey? = SymmetricKey(password: "password123456", keepingDerivedKeysFor: .seconds(3_600))
        weak let kept = try long?.derivedKey(by: Self.derivation(1))
        #expect(kept != nil)
        long = nil
        #expect(kept == nil)
    }

    @Test("A password keeps the keys that it was stretched to last, and no more than sixteen")
    func limit() throws {
        let key = SymmetricKey(password: "password123456", keepingDerivedKeysFor: .seconds(3_600))
        weak let first = try key.derivedKey(by: Self.derivation(0))
        for number in 1..<UInt8(KeptDerivations.limit) { _ = try key.derivedKey(by: Self.derivation(number)) }
        #expect(first != nil)
        _ = try key.derivedKey(by: Self.derivation(UInt8(KeptDerivations.limit)))
        #expect(first == nil)
    }

    @Test("A password's derived keys can be asked for on many threads at once")
    func threads() throws {
        let key = SymmetricKey(password: "password123456", keepingDerivedKeysFor: .milliseconds(1))
        let expected = try (0..<4).map {
            try SymmetricKey(password: "password123456").derivedKey(by: Self.derivation($0))
        }
        let wrong = Lock(0)
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for round in 0..<50 {
                let number = (thread + round) % 4
                let found = try? key.derivedKey(by: Self.derivation(UInt8(number)))
                if found != expected[number] { wrong.withLock { $0 += 1 } }
            }
        }
        #expect(wrong.withLock(\.self) == 0)
    }
}
