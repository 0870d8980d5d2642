import TestSupport
import Testing

@testable import CofferSealing

/// The examples that the RFCs give, as figures. Those that the bounds or the key length keep out of the package's interface go to
/// the functions right below it.
@Suite("Examples of the RFCs hold")
struct RFCExampleTests {
    struct Scrypt {
        let password: String, salt: String, n: UInt64, r: UInt64, p: UInt64, key: String
    }

    /// RFC 7914, section 12, but for the one that takes a gibibyte.
    static let scryptExamples: [Scrypt] = [
        Scrypt(
            password: "", salt: "", n: 16, r: 1, p: 1,
            key: "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442fcd0069ded0948f8"
                + "326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"),
        Scrypt(
            password: "password", salt: "NaCl", n: 1_024, r: 8, p: 16,
            key: "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b3731622eaf30d92e22a388"
                + "6ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"),
        Scrypt(
            password: "pleaseletmein", salt: "SodiumChloride", n: 16_384, r: 8, p: 1,
            key: "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2d5432955613f0fcf"
                + "62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"),
    ]

    @Test("The examples of scrypt in RFC 7914 hold, but for the one that takes a gibibyte", arguments: scryptExamples)
    func scrypt(example: Scrypt) throws {
        let expected = try #require([UInt8](hex: example.key))
        let key = try example.password.utf8.withBytes { (password) throws(CofferError) in
            try PasswordHashing.scrypt(
                password, salt: Array(example.salt.utf8), n: example.n, r: example.r, p: example.p,
                byteCount: expected.count)
        }
        #expect(key.array == expected)
    }

    struct Stretching {
        let digest: ForeignKeyDerivation.Digest, password: String, salt: String, iterations: UInt32, key: String
    }

    /// RFC 6070, but for the one of 16 million iterations, and RFC 7914, section 11.
    static let pbkdf2Examples: [Stretching] = [
        Stretching(
            digest: .sha1, password: "password", salt: "salt", iterations: 1,
            key: "0c60c80f961f0e71f3a9b524af6012062fe037a6"),
        Stretching(
            digest: .sha1, password: "password", salt: "salt", iterations: 2,
            key: "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"),
        Stretching(
            digest: .sha1, password: "password", salt: "salt", iterations: 4_096,
            key: "4b007901b765489abead49d926f721d065a429c1"),
        Stretching(
            digest: .sha1, password: "passwordPASSWORDpassword", salt: "saltSALTsaltSALTsaltSALTsaltSALTsalt",
            iterations: 4_096, key: "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038"),
        Stretching(
            digest: .sha1, password: "pass\0word", salt: "sa\0lt", iterations: 4_096,
            key: "56fa6aa75548099dcc37d7f03425e0c3"),
        Stretching(
            digest: .sha256, password: "passwd", salt: "salt", iterations: 1,
            key: "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc49ca9cccf179b645"
                + "991664b39d77ef317c71b845b1e30bd509112041d3a19783"),
        Stretching(
            digest: .sha256, password: "Password", salt: "NaCl", iterations: 80_000,
            key: "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56a1d425a122583354"
                + "9adb841b51c9b3176a272bdebba1d078478f62b397f33c8d"),
    ]

    @Test(
        "The examples of PBKDF2 in RFC 6070 and RFC 7914 hold, by which keys of other stores are derived",
        arguments: pbkdf2Examples)
    func pbkdf2(example: Stretching) throws {
        let expected = try #require([UInt8](hex: example.key))
        let derivation = ForeignKeyDerivation(
            example.digest, iterations: example.iterations, salt: Array(example.salt.utf8))
        let key = try example.password.utf8.withBytes { (password) throws(CofferError) in
            try PasswordHashing.pbkdf2(password, derivation, byteCount: expected.count)
        }
        #expect(key.array == expected)
    }

    struct Derivation {
        let key: String, salt: String, info: String, derived: String
    }

    /// RFC 5869, appendices A.1 to A.3.
    static let hkdfExamples: [Derivation] = [
        Derivation(
            key: "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
            salt: "000102030405060708090a0b0c",
            info: "f0f1f2f3f4f5f6f7f8f9",
            derived: "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b88718"
                + "5865"),
        Derivation(
            key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324252627"
                + "28292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f",
            salt: "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f8081828384858687"
                + "88898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
            info: "b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7"
                + "d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
            derived: "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac78272"
                + "71cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f"
                + "1d87"),
        Derivation(
            key: "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
            salt: "",
            info: "",
            derived: "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a"
                + "96c8"),
    ]

    @Test("The examples of HKDF-SHA-256 in RFC 5869 hold", arguments: hkdfExamples)
    func hkdf(example: Derivation) throws {
        let expected = try #require([UInt8](hex: example.derived))
        let key = try #require([UInt8](hex: example.key))
        let (salt, info) = (try #require([UInt8](hex: example.salt)), try #require([UInt8](hex: example.info)))
        let derived = try key.withBytes { (key) throws(CofferError) in
            try HKDF.extractAndExpandSHA256(key, salt: salt, info: info, byteCount: expected.count)
        }
        #expect(derived.array == expected)
    }

    struct Wrapping {
        let key: String, content: String, wrapped: String
    }

    /// RFC 3394, sections 4.3, 4.5 and 4.6: those with a key of 256 bits.
    static let keyWrapExamples: [Wrapping] = [
        Wrapping(
            key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
            content: "00112233445566778899aabbccddeeff",
            wrapped: "64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7"),
        Wrapping(
            key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
            content: "00112233445566778899aabbccddeeff0001020304050607",
            wrapped: "a8f9bc1612c68b3ff6e6f4fbe30e71e4769c8b80a32cb8958cd5d17d6b254da1"),
        Wrapping(
            key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
            content: "00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f",
            wrapped: "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21"),
    ]

    @Test("The examples of AES-256 key wrap in RFC 3394 hold", arguments: keyWrapExamples)
    func keyWrap(example: Wrapping) throws {
        let key = try SymmetricKey(data: try #require([UInt8](hex: example.key)))
        let content = try #require([UInt8](hex: example.content))
        let wrapped = try #require([UInt8](hex: example.wrapped))
        #expect(try key.wrapped(content) == wrapped)
        #expect(try key.unwrapped(wrapped) == content)
    }
}

extension SymmetricKey {
    /// What the key wraps, of any length that the cipher takes.
    func wrapped(_ content: [UInt8]) throws -> [UInt8] {
        if content.count == 32 { return try wrap(SymmetricKey(data: content)) }
        return try withBytes { key in try content.withUnsafeBytes { try KeyWrapCipher.wrap($0, under: key) } }
    }

    func unwrapped(_ wrapped: [UInt8]) throws -> [UInt8]? {
        if wrapped.count == 40 { return try unwrap(wrapped)?.withBytes { Array($0) } }
        return try withBytes { key in try KeyWrapCipher.unwrap(wrapped, under: key)?.array }
    }
}
