#if os(Linux)
import Foundation
import Glibc
import MemorySearch
import Testing

@testable import Coffer
@testable import CofferSQLite
@testable import CofferSealing
@testable import CofferVault

/// Reads the memory of a process that has worked with a store, and looks for what opened it.
@Suite(
    "Keys of a database in memory", .enabled(if: access("/proc/self/mem", R_OK) == 0, "no /proc/self/mem to look at"))
struct KeysInMemoryTests {
    @Test(
        "Keys of a database are in memory while it is open, and nowhere once it is closed, whatever became of them")
    func closed() async {
        await #expect(processExitsWith: .success) {
            let stores = TestStores()
            let needles = try KeysInMemoryTests.work(stores, thenCloses: true)
            for (name, needle) in needles where needle.occurrences() > 0 {
                print("\(name): \(needle.occurrences()) copies after closing")
                exit(1)
            }
        }
    }

    @Test("Keys of a database that is not closed are found in memory: the search works")
    func control() async {
        await #expect(processExitsWith: .success) {
            let stores = TestStores()
            let needles = try KeysInMemoryTests.work(stores, thenCloses: false)
            let found = needles.filter { $0.needle.occurrences() > 0 }.map(\.name)
            // The last generation's; subkeys that a connection was given are within SQLCipher.
            let purpose = TestStores.isSQLCipher ? "database" : "pages"
            guard found.contains("generation 2: master"), found.contains("generation 2: \(purpose)"),
                found.contains("generation 2: attachments"), !found.contains("generation 1: master")
            else {
                print(found)
                exit(1)
            }
            _ = stores
        }
    }

    /// Everything that has to do with keys, in one go; what to look for afterwards.
    @inline(never)
    fileprivate static func work(
        _ stores: TestStores, thenCloses closes: Bool
    ) throws -> [(name: String, needle: Needle)] {
        var needles: [(name: String, needle: Needle)] = []
        func remember(_ name: String, _ key: SymmetricKey?) { needles.append((name, Needle(key))) }
        func rememberKeys(of database: Database) throws {
            let manifest = database.storage.manifest
            let generation = "generation \(manifest.manifest.generation)"
            remember("\(generation): master", manifest.masterKey)
            for purpose in UnlockedManifest.KeyPurpose.allCases {
                remember("\(generation): \(purpose)", try manifest.key(for: purpose))
            }
            // As SQLCipher is told it: hex digits.
            let digits = try manifest.key(for: .database)?.hexSpecification().withBytes { bytes in
                UnsafeRawBufferPointer(rebasing: bytes.dropLast()).withUnsafeBytes { Needle.hide($0) }
            }
            needles.append(("\(generation): database in hex", Needle(digits ?? [])))
            for slot in manifest.manifest.slots where slot.derivation.takesPassword {
                let derivation = slot.derivation.keyDerivation(salt: slot.salt, store: manifest.manifest.storeUUID)
                remember("\(generation): from the password", try password().derivedKey(by: derivation))
            }
        }

        let first = try SymmetricKey(), second = try SymmetricKey(), wrong = try SymmetricKey()
        remember("the first key", first)
        remember("the second key", second)
        remember("a wrong key", wrong)

        var database: Database? = try stores.open(key: first)
        func use(_ database: Database?) throws {
            guard let database else { return }
            let draft = try database.document(withID: "document").newRevision()
            draft["number"] = 1
            draft.setAttachment(named: "content", contentType: nil, content: Data(repeating: 3, count: 50_000))
            try draft.save()
            try database.saveLocalDocument(["a": 1], withID: "local")
            // Several connections at once.
            DispatchQueue.concurrentPerform(iterations: 4) { _ in
                _ = try? database["document"]?.currentRevision?.attachment(named: "content")?.content
            }
            try database.document(withID: "document").delete()
            try database.compact()
        }
        try use(database)
        try database?.addKey(password())
        if let database { try rememberKeys(of: database) }
        try database?.changeEncryptionKey(to: second, keeping: [password()])
        try use(database)
        if let database { try rememberKeys(of: database) }
        let backup = stores.directory.appending(path: "backup.coffer")
        try database?.backup(to: backup, encryptionKey: first)
        guard thrown({ try stores.open(key: wrong) })?.status == 401 else { exit(2) }
        guard closes else {
            // Left open on purpose, with all that it holds.
            _ = Unmanaged.passRetained(database as AnyObject)
            return needles
        }
        try database?.close()
        try stores.open(key: password()).close()
        database = nil
        return needles
    }

    private static func password() -> SymmetricKey { SymmetricKey(password: "correct horse battery staple") }
}
#endif
