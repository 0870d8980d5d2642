import CofferSealing
import Foundation
import Testing

@Suite("A symmetric key")
struct SymmetricKeyTests {
    @Test("of 32 bytes lends the same bytes")
    func bytes() throws {
        let bytes = (0..<32).map { UInt8($0) }
        #expect(try SymmetricKey(data: bytes).withBytes { Array($0) } == bytes)
        let data: Data = try SymmetricKey(data: Data(bytes)).withBytes { Data($0) }
        #expect(data == Data(bytes))
    }

    @Test("is made of a password by each password derivation, of bytes by each HKDF, and wraps another")
    func smoke() throws {
        let password = SymmetricKey(password: "pässword")
        let kek = try password.derivedKey(by: .scrypt(log2N: 10, r: 8, p: 1, salt: [1, 2, 3]))
        let other = try password.derivedKey(by: .pbkdf2SHA512(iterations: 100_000, salt: []))
        #expect(kek != other)
        let master = SymmetricKey()
        let wrapped = try kek.wrap(master)
        #expect(wrapped.count == 40)
        #expect(try kek.unwrap(wrapped) == master)
        #expect(try other.unwrap(wrapped) == nil)
        let sub = try master.derivedKey(by: .hkdfExpandSHA256(info: [7]))
        #expect(try sub != master.derivedKey(by: .hkdfSHA256(salt: [], info: [7])))
        #expect(try sub.authenticationCode(for: []).count == 32)
        #expect(Digest.sha256(of: []).first == 0xe3)
        #expect(Digest.sha1(of: []).first == 0xda)
    }
}
