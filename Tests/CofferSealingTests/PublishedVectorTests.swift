import Foundation
import Testing

@testable import CofferSealing

/// Vectors of the RFCs and of Wycheproof. Those that the bounds or the key length keep out of the package's interface
/// go to the functions right below it.
@Suite(
    "Published vectors hold",
    .enabled(if: VectorFiles.shared != nil, "\(VectorFiles.sharedMissing)"))
struct PublishedVectorTests {
    struct Wycheproof<Case: Decodable>: Decodable {
        struct Group: Decodable { let keySize: Int?, tests: [Case] }
        let testGroups: [Group]
        let numberOfTests: Int
    }

    struct RFC: Decodable {
        struct Scrypt: Decodable { let password: String, salt: String, N: UInt64, r: UInt64, p: UInt64, dk: Hex }
        struct HKDFCase: Decodable { let ikm: Hex, salt: Hex, info: Hex, okm: Hex }
        struct Wrap: Decodable { let kek: Hex, keyData: Hex, wrapped: Hex }

        let scrypt: [Scrypt]
        let hkdf: [HKDFCase]
        let keyWrap: [Wrap]

        enum CodingKeys: String, CodingKey {
            case scrypt = "scrypt (RFC 7914 section 12)"
            case hkdf = "HKDF-SHA256 (RFC 5869 A.1-A.3)"
            case keyWrap = "AES-KW (RFC 3394 4.1-4.6)"
        }
    }

    static func rfc() throws -> RFC { try VectorFiles.shared("rfc_kdf_vectors.json", as: RFC.self) }

    @Test("scrypt: RFC 7914 section 12, but for the one that takes a gibibyte")
    func scrypt() throws {
        let vectors = try Self.rfc().scrypt.filter { $0.N < 1 << 20 }
        #expect(vectors.count == 3)
        for vector in vectors {
            let key = try vector.password.utf8.withBytes { (password) throws(CofferError) in
                try PasswordHashing.scrypt(
                    password, salt: Array(vector.salt.utf8), n: vector.N, r: vector.r, p: vector.p,
                    byteCount: vector.dk.bytes.count)
            }
            #expect(key.array == vector.dk.bytes, "N = \(vector.N)")
        }
    }

    struct PBKDF2: Decodable {
        let tcId: Int, password: Hex, salt: Hex, iterationCount: UInt32, dkLen: Int, dk: Hex, result: String
    }

    @Test("PBKDF2-HMAC-SHA-512: Wycheproof")
    func pbkdf2() throws {
        let file = try VectorFiles.shared("pbkdf2_hmacsha512_test.json", as: Wycheproof<PBKDF2>.self)
        let vectors = file.testGroups.flatMap(\.tests)
        #expect(vectors.count == file.numberOfTests)
        for vector in vectors {
            #expect(vector.result == "valid")
            let key = try vector.password.bytes.withBytes { (password) throws(CofferError) in
                try PasswordHashing.pbkdf2SHA512(
                    password, salt: vector.salt.bytes, iterations: vector.iterationCount, byteCount: vector.dkLen)
            }
            #expect(key.array == vector.dk.bytes, "test \(vector.tcId)")
        }
    }

    struct HKDFTest: Decodable {
        let tcId: Int, ikm: Hex, salt: Hex, info: Hex, size: Int, okm: Hex, result: String
    }

    @Test("HKDF-SHA-256: Wycheproof")
    func hkdf() throws {
        let file = try VectorFiles.shared("hkdf_sha256_test.json", as: Wycheproof<HKDFTest>.self)
        let vectors = file.testGroups.flatMap(\.tests)
        #expect(vectors.count == file.numberOfTests)
        for vector in vectors {
            let derive = {
                try Self.hkdf(
                    vector.ikm.bytes, salt: vector.salt.bytes, info: vector.info.bytes, byteCount: vector.size)
            }
            if vector.result == "valid" {
                #expect(try derive() == vector.okm.bytes, "test \(vector.tcId)")
            } else {
                let error = #expect(throws: CofferError.self, "test \(vector.tcId)") { try derive() }
                #expect(error?.code == .encryptionUnavailable)
            }
        }
    }

    @Test("the expand step of HKDF-SHA-512: Wycheproof")
    func expandSHA512() throws {
        let file = try VectorFiles.shared("hkdf_sha512_test.json", as: Wycheproof<HKDFTest>.self)
        let vectors = file.testGroups.flatMap(\.tests)
        #expect(vectors.count == file.numberOfTests)
        for vector in vectors {
            let extracted = try #require(SystemLibraries.hmacSHA512(vector.ikm.bytes, key: vector.salt.bytes))
            let expand = {
                try extracted.withBytes { (extracted) throws(CofferError) in
                    try HKDF.expandSHA512(extracted, info: vector.info.bytes, byteCount: vector.size)
                }.array
            }
            if vector.result == "valid" {
                #expect(try expand() == vector.okm.bytes, "test \(vector.tcId)")
            } else {
                let error = #expect(throws: CofferError.self, "test \(vector.tcId)") { try expand() }
                #expect(error?.code == .encryptionUnavailable)
            }
        }
    }

    @Test("HKDF-SHA-256: RFC 5869 appendix A")
    func hkdfOfTheRFC() throws {
        let vectors = try Self.rfc().hkdf
        #expect(vectors.count == 3)
        for vector in vectors {
            let key = try Self.hkdf(
                vector.ikm.bytes, salt: vector.salt.bytes, info: vector.info.bytes, byteCount: vector.okm.bytes.count)
            #expect(key == vector.okm.bytes)
        }
    }

    static func hkdf(_ key: [UInt8], salt: [UInt8], info: [UInt8], byteCount: Int) throws(CofferError) -> [UInt8] {
        try key.withBytes { (key) throws(CofferError) in
            try HKDF.extractAndExpandSHA256(key, salt: salt, info: info, byteCount: byteCount)
        }.array
    }

    struct WrapTest: Decodable {
        let tcId: Int, key: Hex, msg: Hex, ct: Hex, result: String, flags: [String]
    }

    @Test("AES-256 key wrap: Wycheproof")
    func keyWrap() throws {
        let file = try VectorFiles.shared("aes_wrap_test.json", as: Wycheproof<WrapTest>.self)
        let vectors = try #require(file.testGroups.first { $0.keySize == 256 }).tests
        #expect(vectors.count == 68)
        for vector in vectors where vector.result != "acceptable" {
            let kek = try SymmetricKey(data: vector.key.bytes)
            if vector.result == "valid" {
                #expect(try wrap(vector.msg.bytes, under: kek) == vector.ct.bytes, "test \(vector.tcId)")
                #expect(try unwrap(vector.ct.bytes, under: kek) == vector.msg.bytes, "test \(vector.tcId)")
            } else if vector.ct.bytes.count == 40 {
                #expect(try kek.unwrap(vector.ct.bytes) == nil, "test \(vector.tcId)")
            } else {
                let error = #expect(throws: CofferError.self) { try kek.unwrap(vector.ct.bytes) }
                #expect(error?.code == .invalidArgument, "test \(vector.tcId)")
                if vector.ct.bytes.count >= 24, vector.ct.bytes.count.isMultiple(of: 8) {
                    #expect(try unwrap(vector.ct.bytes, under: kek) == nil, "test \(vector.tcId)")
                }
            }
        }
    }

    @Test("AES-256 key wrap: RFC 3394 section 4")
    func keyWrapOfTheRFC() throws {
        let vectors = try Self.rfc().keyWrap.filter { $0.kek.bytes.count == 32 }
        #expect(vectors.count == 3)
        for vector in vectors {
            let kek = try SymmetricKey(data: vector.kek.bytes)
            #expect(try wrap(vector.keyData.bytes, under: kek) == vector.wrapped.bytes)
            #expect(try unwrap(vector.wrapped.bytes, under: kek) == vector.keyData.bytes)
        }
    }

    private func wrap(_ key: [UInt8], under kek: SymmetricKey) throws -> [UInt8] {
        if key.count == 32 { return try kek.wrap(SymmetricKey(data: key)) }
        return try kek.withBytes { kek in try key.withUnsafeBytes { try KeyWrapCipher.wrap($0, under: kek) } }
    }

    private func unwrap(_ wrapped: [UInt8], under kek: SymmetricKey) throws -> [UInt8]? {
        if wrapped.count == 40 { return try kek.unwrap(wrapped)?.withBytes { Array($0) } }
        return try kek.withBytes { kek in try KeyWrapCipher.unwrap(wrapped, under: kek)?.array }
    }
}

extension Collection where Element == UInt8 {
    /// Like `withUnsafeBytes`, but what it returns may be a secret.
    func withBytes<R: ~Copyable>(_ body: (UnsafeRawBufferPointer) throws(CofferError) -> R) throws(CofferError) -> R {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        defer { copy.deallocate() }
        copy.copyBytes(from: self)
        return try body(UnsafeRawBufferPointer(copy))
    }
}

extension SecretBytes {
    var array: [UInt8] { withBytes { Array($0) } }
}
