import Foundation
import Testing

@testable import CofferSealing

@Suite("Key derivation")
struct KeyDerivationTests {
    static let password = SymmetricKey(password: "password123456")
    static let salt: [UInt8] = [1, 2, 3]

    static func scrypt(_ log2N: UInt8, _ r: UInt8, _ p: UInt32) -> KeyDerivation {
        .scrypt(log2N: log2N, r: r, p: p, salt: salt)
    }

    /// Each bound of DESIGN's slot table, from inside and from outside.
    static let allowed: [KeyDerivation] = [
        scrypt(10, 8, 1), scrypt(10, 8, 4), scrypt(11, 8, 1), scrypt(15, 8, 4), scrypt(16, 8, 1), scrypt(16, 8, 2),
        scrypt(16, 8, 3), scrypt(16, 8, 4), scrypt(17, 8, 1), scrypt(17, 8, 2), scrypt(18, 8, 1),
        .pbkdf2SHA512(iterations: 100_000, salt: salt), .pbkdf2SHA512(iterations: 100_001, salt: salt),
        .pbkdf2SHA512(iterations: 1_999_999, salt: salt), .pbkdf2SHA512(iterations: 2_000_000, salt: salt),
    ]

    static let refused: [KeyDerivation] = [
        scrypt(0, 8, 1), scrypt(1, 8, 1), scrypt(9, 8, 1), scrypt(19, 8, 1), scrypt(20, 8, 1), scrypt(31, 8, 1),
        scrypt(32, 8, 1), scrypt(62, 8, 1), scrypt(63, 8, 1), scrypt(64, 8, 1), scrypt(255, 8, 1),
        scrypt(10, 0, 1), scrypt(10, 1, 1), scrypt(10, 7, 1), scrypt(10, 9, 1), scrypt(10, 255, 1),
        scrypt(10, 8, 0), scrypt(10, 8, 5), scrypt(10, 8, 256), scrypt(10, 8, 1 << 31), scrypt(10, 8, .max),
        scrypt(17, 8, 3), scrypt(17, 8, 4), scrypt(18, 8, 2), scrypt(18, 8, 4), scrypt(63, 8, .max),
        scrypt(255, 255, .max), scrypt(0, 0, 0),
        .pbkdf2SHA512(iterations: 0, salt: salt), .pbkdf2SHA512(iterations: 1, salt: salt),
        .pbkdf2SHA512(iterations: 99_999, salt: salt), .pbkdf2SHA512(iterations: 2_000_001, salt: salt),
        .pbkdf2SHA512(iterations: 1 << 31, salt: salt), .pbkdf2SHA512(iterations: .max, salt: salt),
    ]

    @Test("A derivation of a cost within the bounds is allowed", arguments: allowed)
    func within(derivation: KeyDerivation) {
        #expect(derivation.isWithinBounds)
    }

    @Test("A derivation of a cost beyond the bounds is refused", arguments: refused)
    func beyond(derivation: KeyDerivation) {
        #expect(!derivation.isWithinBounds)
        let error = #expect(throws: CofferError.self) { try Self.password.derivedKey(by: derivation) }
        #expect(error?.code == .invalidArgument)
        #expect(error?.status == 400)
    }

    @Test("A derivation is refused before any work: all refusals take less than a tenth of the smallest scrypt")
    func refusedBeforeWork() throws {
        // In the processor time of this thread, so that what else the machine does is not measured.
        func now() -> Duration {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }
        func fastest(of work: () -> Void) -> Duration {
            (0..<20).map { _ in
                let start = now()
                work()
                return now() - start
            }.min() ?? .zero
        }
        let smallest = fastest { _ = try? Self.password.derivedKey(by: Self.scrypt(10, 8, 1)) }
        for derivation in Self.refused {
            let refusal = fastest { _ = try? Self.password.derivedKey(by: derivation) }
            #expect(refusal * 10 < smallest, "\(derivation)")
        }
    }

    @Test("The costliest scrypts that are allowed work: OpenSSL's memory limit is set high enough")
    func costliest() throws {
        let keys = try [Self.scrypt(18, 8, 1), Self.scrypt(16, 8, 4)].map { try Self.password.derivedKey(by: $0) }
        #expect(keys[0] != keys[1])
    }

    @Test("A key derivation depends on each of its inputs")
    func inputs() throws {
        let passwords: [KeyDerivation] = [
            Self.scrypt(10, 8, 1), Self.scrypt(11, 8, 1), Self.scrypt(10, 8, 2),
            .scrypt(log2N: 10, r: 8, p: 1, salt: [1, 2, 4]), .scrypt(log2N: 10, r: 8, p: 1, salt: []),
            .pbkdf2SHA512(iterations: 100_000, salt: Self.salt), .pbkdf2SHA512(iterations: 100_001, salt: Self.salt),
            .pbkdf2SHA512(iterations: 100_000, salt: []),
        ]
        let key = try SymmetricKey(data: [UInt8](repeating: 5, count: 32))
        let expansions: [KeyDerivation] = [
            .hkdfSHA256(salt: [], info: []), .hkdfSHA256(salt: [1], info: []), .hkdfSHA256(salt: [], info: [1]),
            .hkdfExpandSHA256(info: []), .hkdfExpandSHA256(info: [1]), .hkdfExpandSHA256(info: [1, 0]),
            .hkdfExpandSHA512(info: []), .hkdfExpandSHA512(info: [1]), .hkdfExpandSHA512(info: [1, 0]),
        ]
        var made = try passwords.map { try Self.password.derivedKey(by: $0) }
        made.append(try SymmetricKey(password: "password123457").derivedKey(by: passwords[0]))
        made += try expansions.map { try key.derivedKey(by: $0) }
        made.append(try SymmetricKey(data: [UInt8](repeating: 6, count: 32)).derivedKey(by: expansions[3]))
        #expect(Set(made.map { $0.withBytes { Array($0) } }).count == made.count)
        #expect(made.allSatisfy { !$0.isPassword && $0.withBytes { $0.count } == 32 })
        #expect(try made[0] == Self.password.derivedKey(by: passwords[0]))
    }

    @Test("Expanding an extracted key is the whole of HKDF")
    func expansion() throws {
        // RFC 5869 section 2.2: the extracted key is the HMAC of the input under the salt.
        for byteCount in [1, 31, 32, 33, 64, 82] {
            let salt = [UInt8](repeating: 3, count: 13), input = [UInt8](repeating: 9, count: 22)
            let extracted = try salt.withBytes { (salt) throws(CofferError) in try hmacSHA256(input, key: salt) }
            let expanded = try extracted.withBytes { (extracted) throws(CofferError) in
                try HKDF.expandSHA256(extracted, info: [5, 5], byteCount: byteCount)
            }.array
            #expect(try expanded == PublishedVectorTests.hkdf(input, salt: salt, info: [5, 5], byteCount: byteCount))
        }
    }

    @Test("A derivation from an empty password is refused with 400, and not before it is used")
    func emptyPassword() {
        let empty = SymmetricKey(password: "")
        for derivation in [Self.scrypt(10, 8, 1), .pbkdf2SHA512(iterations: 100_000, salt: Self.salt)] {
            let error = #expect(throws: CofferError.self) { try empty.derivedKey(by: derivation) }
            #expect(error?.code == .invalidKey)
            #expect(error?.status == 400)
        }
        #expect(throws: CofferError(.invalidKey)) { try empty.checkUsable() }
        #expect(throws: Never.self) { try Self.password.checkUsable() }
        #expect(throws: Never.self) { try SymmetricKey().checkUsable() }
    }

    @Test("A derivation takes passwords for scrypt and PBKDF2 alone, and bytes for HKDF alone")
    func kinds() throws {
        let key = try SymmetricKey()
        for derivation in [Self.scrypt(10, 8, 1), .pbkdf2SHA512(iterations: 100_000, salt: Self.salt)] {
            #expect(throws: CofferError(.invalidArgument)) { try key.derivedKey(by: derivation) }
        }
        for derivation in [
            KeyDerivation.hkdfSHA256(salt: [], info: []), .hkdfExpandSHA256(info: []), .hkdfExpandSHA512(info: []),
        ] {
            #expect(throws: CofferError(.invalidArgument)) { try Self.password.derivedKey(by: derivation) }
            // Empty or not: it is the kind that is wrong.
            #expect(throws: CofferError(.invalidArgument)) {
                try SymmetricKey(password: "").derivedKey(by: derivation)
            }
        }
    }

    @Test("A derivation that OpenSSL refuses names the reason, and leaves nothing in its error queue")
    func errors() {
        let tooLong = [UInt8](repeating: 0, count: 1 << 20)
        let error = #expect(throws: CofferError.self) {
            _ = try SymmetricKey().withBytes { (key) throws(CofferError) in
                try HKDF.expandSHA256(key, info: tooLong, byteCount: 255 * 32 + 1)
            }
        }
        #expect(error?.code == .encryptionUnavailable)
        #expect(error?.status == 501)
        #expect(error?.detail?.hasPrefix("OpenSSL can't do HKDF") == true)
        #expect(drainOpenSSLErrors().isEmpty)
    }
}
