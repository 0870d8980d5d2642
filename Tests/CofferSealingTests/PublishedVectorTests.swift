import Foundation
import Testing

@testable import CofferSealing

/// Vectors of Wycheproof, where its files are; some stand in PublishedExampleTests, which always run. Those that the bounds or the key length keep out of the package's interface
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

    struct PBKDF2: Decodable {
        let tcId: Int, password: Hex, salt: Hex, iterationCount: UInt32, dkLen: Int, dk: Hex, result: String
    }

    @Test("All of Wycheproof's vectors of PBKDF2-HMAC-SHA-512 hold")
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

    @Test("All of Wycheproof's vectors of HKDF-SHA-256 hold")
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

    @Test("All of Wycheproof's vectors of the expand step of HKDF-SHA-512 hold")
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

    static func hkdf(_ key: [UInt8], salt: [UInt8], info: [UInt8], byteCount: Int) throws(CofferError) -> [UInt8] {
        try key.withBytes { (key) throws(CofferError) in
            try HKDF.extractAndExpandSHA256(key, salt: salt, info: info, byteCount: byteCount)
        }.array
    }

    struct WrapTest: Decodable {
        let tcId: Int, key: Hex, msg: Hex, ct: Hex, result: String, flags: [String]
    }

    @Test("All of Wycheproof's vectors of AES-256 key wrap hold")
    func keyWrap() throws {
        let file = try VectorFiles.shared("aes_wrap_test.json", as: Wycheproof<WrapTest>.self)
        let vectors = try #require(file.testGroups.first { $0.keySize == 256 }).tests
        #expect(vectors.count == 68)
        for vector in vectors where vector.result != "acceptable" {
            let kek = try SymmetricKey(data: vector.key.bytes)
            if vector.result == "valid" {
                #expect(try kek.wrapped(vector.msg.bytes) == vector.ct.bytes, "test \(vector.tcId)")
                #expect(try kek.unwrapped(vector.ct.bytes) == vector.msg.bytes, "test \(vector.tcId)")
            } else if vector.ct.bytes.count == 40 {
                #expect(try kek.unwrap(vector.ct.bytes) == nil, "test \(vector.tcId)")
            } else {
                let error = #expect(throws: CofferError.self) { try kek.unwrap(vector.ct.bytes) }
                #expect(error?.code == .invalidArgument, "test \(vector.tcId)")
                if vector.ct.bytes.count >= 24, vector.ct.bytes.count.isMultiple(of: 8) {
                    #expect(try kek.unwrapped(vector.ct.bytes) == nil, "test \(vector.tcId)")
                }
            }
        }
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
