import Foundation
import Testing

@testable import Coffer
@testable import CofferSQLite

/// The two families of SQLCipher: the one that this process has, and the one in `COFFER_OTHER_SQLCIPHER`, a directory.
///
/// A process loads one of them. So each step is a process of its own, which finds its library by `LD_LIBRARY_PATH`; that is
/// set for all of this process, so these suites run by themselves: scripts/second-sqlcipher.
enum Family: String, Codable, CaseIterable, Sendable, CustomTestStringConvertible {
    case installed, other

    static let otherDirectory = ProcessInfo.processInfo.environment["COFFER_OTHER_SQLCIPHER"]

    var opposite: Family { self == .installed ? .other : .installed }
    var testDescription: String { rawValue }

    /// Runs `body` with processes that it starts using this family.
    func use<Value>(_ body: () async throws -> Value) async rethrows -> Value {
        if self == .other {
            setenv("LD_LIBRARY_PATH", Self.otherDirectory ?? "", 1)
        } else {
            unsetenv("LD_LIBRARY_PATH")
        }
        defer { unsetenv("LD_LIBRARY_PATH") }
        return try await body()
    }

    /// Sees, in a process that was started so, that it has this family.
    func prove() throws {
        let version = try #require(Library.load().cipherVersion)
        #expect(version.hasPrefix(self == .installed ? "3." : "4."), "\(self) is \(version)")
    }
}

@Suite(
    "Stores go back and forth between SQLCipher 3 and 4", .serialized, .timeLimit(.minutes(30)),
    .enabled(if: Family.otherDirectory != nil, "only scripts/second-sqlcipher has both"))
struct TwoFamiliesTests {
    let stores = TestStores()
    static let secondKey = testKey(8)

    /// Runs one step of a story in a process that has `family`.
    private func run(_ step: FamilyStep, on family: Family, ends: ExitTest.Condition = .success) async {
        await family.use {
            _ = await #expect(processExitsWith: ends) {
                [path = stores.directory.path as String, step = step as FamilyStep, family = family as Family] in
                try family.prove()
                try step.run(path)
            }
        }
    }

    @Test("Each process has the family of SQLCipher that it was started with")
    func both() async {
        for family in Family.allCases {
            await family.use {
                _ = await #expect(processExitsWith: .success) { [family = family as Family] in try family.prove() }
            }
        }
    }

    @Test(
        "One family of SQLCipher reads what the other writes to the byte, changes it, and gives it back",
        arguments: Family.allCases)
    func backAndForth(first: Family) async {
        await run(.make, on: first)
        for step in [FamilyStep.check, .edit] { await run(step, on: first.opposite) }
        for step in [FamilyStep.check, .edit] { await run(step, on: first) }
        await run(.check, on: first.opposite)
    }

    @Test(
        "One family of SQLCipher compacts and changes the key of what the other wrote: the old key is a 401 on both",
        arguments: Family.allCases)
    func keyChange(first: Family) async {
        await run(.make, on: first)
        await run(.compact, on: first.opposite)
        await run(.changeKey, on: first.opposite)
        for family in [first, first.opposite] { await run(.checkChangedKey, on: family) }
        await run(.removeKey, on: first)
        await run(.checkUnencrypted, on: first.opposite)
    }

    @Test(
        "A WAL that one family of SQLCipher left when it was killed is read, and recovered, by the other",
        arguments: Family.allCases)
    func log(first: Family) async throws {
        await run(.make, on: first)
        await run(.saveAndDie, on: first, ends: .signal(SIGKILL))
        let log = try stores.databaseFile().path + "-wal"
        #expect(try Data(contentsOf: URL(filePath: log)).count > 32)
        await run(.checkReadOnly, on: first.opposite)
        await run(.check, on: first.opposite)
        #expect(!FileManager.default.fileExists(atPath: log))
        await run(.check, on: first)
    }

    @Test("A wrong key is a 401 on both families of SQLCipher, and changes no byte", arguments: Family.allCases)
    func wrongKey(first: Family) async throws {
        await run(.make, on: first)
        let before = try stores.snapshot()
        for family in Family.allCases { await run(.tryWrongKeys, on: family) }
        #expect(try stores.snapshot() == before)
    }
}

/// What a process does with the store in a directory, and what it expects to find.
///
/// What it holds stands beside it, as the process that changed it last saw it.
enum FamilyStep: String, Codable {
    case make, edit, check, checkReadOnly, compact, changeKey, checkChangedKey, removeKey, checkUnencrypted, saveAndDie
    case tryWrongKeys

    func run(_ path: String) throws {
        let stores = TestStores(sharing: path)
        let note = stores.directory.appending(path: "holds.json")
        func open(_ key: SymmetricKey? = TestStores.key, readOnly: Bool = false) throws -> Database {
            try stores.open(key: key) {
                $0.readOnly = readOnly
                $0.create = self == .make
                $0.compactsInBackground = false
            }
        }
        func description(_ database: Database) throws -> JSONValue { .object(try StoreDescription.of(database)) }
        func compare(_ database: Database) throws {
            let noted = JSONValue.object(try StoreVector.json(Data(contentsOf: note)))
            #expect(StoreDescription.difference(try description(database), noted) == nil)
            if !database.isReadOnly { #expect(try database.contradictions() == []) }
        }
        func takeNote(_ database: Database) throws { try Data("\(description(database))".utf8).write(to: note) }

        switch self {
        case .make:
            let database = try open()
            try StoreContent.fill(database)
            try StoreContent.fillWithHistories(database)
            try takeNote(database)
            try database.close()
        case .edit:
            let database = try open()
            try Self.edit(database)
            try takeNote(database)
            try database.close()
        case .check, .checkReadOnly:
            let database = try open(readOnly: self == .checkReadOnly)
            try compare(database)
            try database.close()
        case .compact:
            let database = try open()
            try database.compact()
            try takeNote(database)
            try database.close()
        case .changeKey, .removeKey:
            let database = try open(self == .changeKey ? TestStores.key : TwoFamiliesTests.secondKey)
            try database.changeEncryptionKey(to: self == .changeKey ? TwoFamiliesTests.secondKey : nil)
            try takeNote(database)
            try database.close()
        case .checkChangedKey:
            #expect(thrown { try open() }?.code == .wrongKey)
            let database = try open(TwoFamiliesTests.secondKey)
            try compare(database)
            try database.close()
        case .checkUnencrypted:
            #expect(thrown { try open() }?.code == .notEncrypted)
            let database = try open(nil)
            try compare(database)
            try database.close()
        case .saveAndDie:
            let database = try open()
            try Self.edit(database)
            try takeNote(database)
            killOneself()
        case .tryWrongKeys:
            for key in [nil, testKey(9), SymmetricKey(password: "x")] {
                for readOnly in [true, false] { #expect(thrown { try open(key, readOnly: readOnly) }?.status == 401) }
            }
        }
    }

    /// Changes documents, attachments and the tree, some of it over several pages.
    private static func edit(_ database: Database) throws {
        let document = MutableDocument(id: "long", ["t": .string(String(repeating: "long ", count: 10_000))])
        try database.saveDocument(document, concurrencyControl: .lastWriteWins)
        let draft = try database.document(withID: "attachments").newRevision()
        let number = try database.lastSequenceNumber
        draft["n"] = .number(JSONNumber(number))
        draft.setAttachment(
            named: "new \(number)", contentType: nil,
            content: StoreContent.bytes(20_000, UInt8(truncatingIfNeeded: number)))
        try draft.save()
        try database.document(withID: "conflict").resolveConflicts { draft, _ in draft["merged"] = true }
        try database.save(json: Data("{\"n\":\(number)}".utf8), withID: "number \(number)")
    }
}
