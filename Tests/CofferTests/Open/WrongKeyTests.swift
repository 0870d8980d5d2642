import Foundation
import Testing

@testable import Coffer

/// A wrong key is a 401, always and only, and leaves every byte of the store as it was.
@Suite("A wrong key")
struct WrongKeyTests {
    /// What a store is protected by.
    enum Protection: String, CaseIterable, CustomTestStringConvertible {
        case password, bytes, nothing
        var testDescription: String { rawValue }

        var key: SymmetricKey? {
            switch self {
            case .password: SymmetricKey(password: "password123456")
            case .bytes: TestStores.key
            case .nothing: nil
            }
        }
    }

    /// What somebody tries instead.
    enum Attempt: String, CaseIterable, CustomTestStringConvertible {
        case anotherPassword, anotherCase, otherBytes, bytesOfThePassword, noKey, anotherStoresKey
        var testDescription: String { rawValue }

        var key: SymmetricKey? {
            switch self {
            case .anotherPassword: SymmetricKey(password: "password123457")
            case .anotherCase: SymmetricKey(password: "Password123456")
            case .otherBytes: testKey(8)
            // 14 bytes of the password, and zeros.
            case .bytesOfThePassword:
                try? SymmetricKey(data: Array("password123456".utf8) + [UInt8](repeating: 0, count: 18))
            case .noKey: nil
            case .anotherStoresKey: testKey(9)
            }
        }
    }

    static let attempts: [(Protection, Attempt)] = Protection.allCases.flatMap { protection in
        Attempt.allCases.filter { protection != .nothing || $0 != .noKey }.map { (protection, $0) }
    }

    @Test(
        "A wrong key is a 401 and changes no byte, of a closed store and of one that a crash left behind",
        arguments: attempts)
    func refused(protection: Protection, attempt: Attempt) throws {
        let stores = TestStores()
        let database = try stores.open("fresh", key: protection.key)
        for number in 0..<20 { try database.save(json: Data(#"{"n":\#(number)}"#.utf8), withID: "d\(number)") }
        // What the disk holds now is what a kill would leave: everything is still in the log.
        try FileManager.default.copyItem(at: stores.url("fresh"), to: stores.url("crashed"))
        try database.close()
        try stores.open("another", key: Attempt.anotherStoresKey.key).close()
        #expect(
            try stores.generation("crashed").appending(path: "db.sqlite3-wal").resourceValues(forKeys: [.fileSizeKey])
                .fileSize ?? 0 > 0)

        let before = try stores.snapshot()
        for name in ["fresh", "crashed"] {
            for readOnly in [false, true] {
                let error = thrown { try stores.open(name, key: attempt.key) { $0.readOnly = readOnly } }
                #expect(error?.status == 401)
                #expect(
                    error?.code
                        == (protection == .nothing ? .notEncrypted : attempt == .noKey ? .keyRequired : .wrongKey))
                #expect(error?.description.contains("password123") == false)
            }
            #expect(
                thrown { try stores.manager.existingDatabase(named: name, encryptionKey: attempt.key) }?.status == 401)
            #expect(thrown { try stores.manager.database(named: name, encryptionKey: attempt.key) }?.status == 401)
        }
        #expect(try stores.snapshot() == before)

        for name in ["crashed", "fresh"] {
            let database = try stores.open(name, key: protection.key)
            #expect(try database.documentCount == 20)
            #expect(try database["d19"]?["n"] == 19)
        }
    }

    @Test("A key of another length than 32 bytes, or an empty password, is a 400 and creates nothing")
    func badKeys() throws {
        for count in [0, 1, 31, 33, 64] {
            #expect(thrown { try SymmetricKey(data: [UInt8](repeating: 1, count: count)) }?.code == .invalidKey)
        }
        let stores = TestStores()
        let empty = SymmetricKey(password: "")
        #expect(thrown { try stores.open(key: empty) }?.code == .invalidKey)
        #expect(thrown { try stores.manager.database(named: "db", encryptionKey: empty) }?.status == 400)
        #expect(!FileManager.default.fileExists(atPath: stores.directory.path))
        try stores.open().close()
        #expect(thrown { try stores.open(key: empty) }?.code == .invalidKey)
    }

    @Test("A key that HMAC would take for the right one, with a zero behind it, is a 400 too")
    func zeroCharacters() throws {
        let stores = TestStores()
        try stores.open(key: SymmetricKey(password: "password123456")).close()
        for password in ["password123456\0", "password123456\0\0", "\0", "pass\0word"] {
            let key = SymmetricKey(password: password)
            let error = thrown { try stores.open(key: key) }
            #expect(error?.code == .invalidKey)
            #expect(error?.description.contains("pass\0") == false)
            #expect(thrown { try stores.open("another", key: key) }?.code == .invalidKey)
        }
        #expect(!stores.manager.databaseExists(named: "another"))
    }

    @Test("A wrong key is noticed though the password is the same text in another composition: that one opens")
    func composition() throws {
        let stores = TestStores()
        try stores.open(key: SymmetricKey(password: "Caf\u{e9}")).close()
        try stores.open(key: SymmetricKey(password: "Cafe\u{301}")).close()
        #expect(thrown { try stores.open(key: SymmetricKey(password: "Cafe")) }?.code == .wrongKey)
    }
}
