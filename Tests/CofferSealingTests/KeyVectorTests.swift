import CofferSealing
import Testing

@Suite("Keys are the ones in Vectors/keys")
struct KeyVectorTests {
    struct PasswordEncoding: Decodable {
        let name: String, password: String, utf8: Hex
    }

    @Test("A password's bytes are the UTF-8 of its normalization form C")
    func passwordEncoding() throws {
        let vectors = try VectorFiles.keys("password-encoding", as: PasswordEncoding.self)
        #expect(vectors.count == 20)
        for vector in vectors {
            let bytes = SymmetricKey(password: vector.password).withBytes { Array($0) }
            #expect(bytes == vector.utf8.bytes, "\(vector.name)")
        }
    }

    struct RefusedPassword: Decodable {
        let name: String, password: String, result: String
    }

    @Test("A password has its own key, but for those that are none, or are the same as another")
    func passwordsRefused() throws {
        let vectors = try VectorFiles.keys("passwords-refused", as: RefusedPassword.self)
        #expect(vectors.count == 4)
        for vector in vectors {
            do throws(CofferError) {
                _ = try SymmetricKey(password: vector.password).derivedKey(
                    by: .scrypt(log2N: 10, r: 8, p: 1, salt: [1]))
                Issue.record("\(vector.name) was taken")
            } catch {
                #expect(error.code.description == vector.result, "\(vector.name)")
            }
        }
    }

    struct ScryptKEK: Decodable {
        let name: String, password: String, uuid: Hex, slotSalt: Hex, log2N: UInt8, r: UInt8, p: UInt32, salt: Hex
        let kek: Hex
    }

    @Test("The vectors' keys are derived from a password by scrypt")
    func scrypt() throws {
        let vectors = try VectorFiles.keys("kek-scrypt", as: ScryptKEK.self)
        #expect(vectors.count == 14)
        for vector in vectors {
            let salt = label("coffer/v1/kek/scrypt", vector.uuid.bytes + vector.slotSalt.bytes)
            #expect(salt == vector.salt.bytes)
            let kek = try SymmetricKey(password: vector.password).derivedKey(
                by: .scrypt(log2N: vector.log2N, r: vector.r, p: vector.p, salt: salt))
            #expect(kek.withBytes { Array($0) } == vector.kek.bytes, "\(vector.name)")
        }
    }

    struct PBKDF2KEK: Decodable {
        let name: String, password: String, uuid: Hex, slotSalt: Hex, iterations: UInt32, salt: Hex, kek: Hex
    }

    @Test("The vectors' keys are derived from a password by PBKDF2")
    func pbkdf2() throws {
        let vectors = try VectorFiles.keys("kek-pbkdf2", as: PBKDF2KEK.self)
        #expect(vectors.count == 5)
        for vector in vectors {
            let salt = label("coffer/v1/kek/pbkdf2-sha512", vector.uuid.bytes + vector.slotSalt.bytes)
            #expect(salt == vector.salt.bytes)
            let kek = try SymmetricKey(password: vector.password).derivedKey(
                by: .pbkdf2SHA512(iterations: vector.iterations, salt: salt))
            #expect(kek.withBytes { Array($0) } == vector.kek.bytes, "\(vector.name)")
        }
    }

    struct RawKEK: Decodable {
        let key: Hex, uuid: Hex, slotSalt: Hex, info: Hex, kek: Hex
    }

    @Test("The vectors' keys are derived from 32 bytes by HKDF")
    func raw() throws {
        let vectors = try VectorFiles.keys("kek-raw", as: RawKEK.self)
        #expect(vectors.count == 12)
        for vector in vectors {
            let info = label("coffer/v1/kek/raw", vector.uuid.bytes)
            #expect(info == vector.info.bytes)
            let kek = try SymmetricKey(data: vector.key.bytes).derivedKey(
                by: .hkdfSHA256(salt: vector.slotSalt.bytes, info: info))
            #expect(kek.withBytes { Array($0) } == vector.kek.bytes)
        }
    }

    struct Subkey: Decodable {
        let masterKey: Hex, purpose: String, uuid: Hex, generation: Hex, info: Hex, subkey: Hex
    }

    @Test("The vectors' keys of each purpose are derived from a master key")
    func subkeys() throws {
        let vectors = try VectorFiles.keys("subkeys", as: Subkey.self)
        #expect(vectors.count == 30)
        #expect(Set(vectors.map(\.subkey.bytes)).count == 30)
        for vector in vectors {
            let info = label("coffer/v1/\(vector.purpose)", vector.uuid.bytes + vector.generation.bytes)
            #expect(info == vector.info.bytes)
            let subkey = try SymmetricKey(data: vector.masterKey.bytes).derivedKey(by: .hkdfExpandSHA256(info: info))
            #expect(subkey.withBytes { Array($0) } == vector.subkey.bytes, "\(vector.purpose)")
        }
    }

    struct Wrap: Decodable {
        let name: String, kek: Hex, key: Hex?, wrapped: Hex, result: String
    }

    @Test("The vectors' keys are wrapped under another, and unwrapped")
    func keyWrap() throws {
        let vectors = try VectorFiles.keys("key-wrap", as: Wrap.self)
        #expect(vectors.count == 13)
        for vector in vectors {
            let kek = try SymmetricKey(data: vector.kek.bytes)
            let unwrapped = try kek.unwrap(vector.wrapped.bytes)
            switch vector.result {
            case "valid":
                let key = try SymmetricKey(data: #require(vector.key).bytes)
                #expect(try kek.wrap(key) == vector.wrapped.bytes, "\(vector.name)")
                #expect(unwrapped == key, "\(vector.name)")
            case "wrongKey":
                #expect(unwrapped == nil, "\(vector.name)")
            default:
                Issue.record("unknown result \(vector.result)")
            }
        }
    }

    private func label(_ text: String, _ rest: [UInt8]) -> [UInt8] { Array(text.utf8) + [0] + rest }
}
