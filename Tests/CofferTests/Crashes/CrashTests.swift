import CofferFaults
import Foundation
import TestSupport
import Testing

@testable import Coffer

/// Real processes, really killed. What the system had taken from them by then is all that is left.
@Suite("A process killed while it saves", .serialized, .timeLimit(.minutes(30)))
struct CrashTests {
    let stores = TestStores()
    private var journal: Journal { Journal(path: stores.directory.path + "/journal") }

    /// Documents of about 30 KB, so that the log is full every second and is copied into the file.
    private static func save(_ id: String, in database: Database) throws {
        let text = JSONValue.string(String(repeating: id.last ?? "x", count: 30_000))
        try database.saveDocument(MutableDocument(id: id, ["id": .string(id), "t": text]))
    }

    /// Saves without end, and notes what was acknowledged: single documents, transactions of five, and transactions that
    /// are given up.
    static func saveForever(_ database: Database, as name: String, _ journal: Journal) throws {
        struct GivenUp: Error {}
        for number in 0... {
            let id = "\(name)-\(number)"
            switch number % 3 {
            case 0: try save(id, in: database)
            case 1: try database.inTransaction { for part in 0..<5 { try save("\(id)-\(part)", in: database) } }
            default:
                let giveUp: () throws -> Void = {
                    for part in 0..<5 { try save("\(id)-\(part)", in: database) }
                    throw GivenUp()
                }
                do { try database.inTransaction(giveUp) } catch is GivenUp {}
            }
            try journal.note(id)
        }
    }

    /// - Returns: the ids of the documents that an operation makes when it is whole.
    private func documents(of operation: String) throws -> [String] {
        let number = try #require(Int(operation.split(separator: "-")[1]))
        return switch number % 3 {
        case 0: [operation]
        case 1: (0..<5).map { "\(operation)-\($0)" }
        default: []
        }
    }

    /// Seconds after which it is killed; the log is full for the first time after about one.
    static let times =
        DamageTests.isExhaustive ? (1...60).map { Double($0) * 0.05 } : [0.2, 1.1]

    @Test(
        "A process killed while it saves has saved what was acknowledged and nothing half, in one thread or several",
        arguments: [1, 3], times)
    func killed(threadCount: Int, seconds: Double) async throws {
        _ = try stores.open()
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [
                path = stores.directory.path as String, count = threadCount as Int, seconds = seconds as Double,
                journal = journal.path as String
            ] in
            try Self.saveUntilKilled(path, count, after: .seconds(seconds), Journal(path: journal))
        }
        try checkWhatIsLeft(threadCount)
    }

    private static func saveUntilKilled(
        _ path: String, _ threadCount: Int, after time: Duration, _ journal: Journal
    ) throws {
        let database = try TestStores(sharing: path).open()
        killOneself(after: time)
        try onThreads(threadCount) { thread in try saveForever(database, as: "\(thread)", journal) }
    }

    private func checkWhatIsLeft(_ threadCount: Int) throws {
        let acknowledged = journal.lines
        let database = try stores.open()
        var left = Set(try database.documentIDs())
        for operation in acknowledged {
            for id in try documents(of: operation) {
                #expect(left.remove(id) != nil, "\(id) was acknowledged and is not there")
                #expect(try database[id]?["id"] == .string(id))
            }
        }
        // What was under way in each thread may have been committed, and then it is whole.
        for thread in 0..<threadCount {
            let next = acknowledged.count { $0.hasPrefix("\(thread)-") }
            let documents = Set(try documents(of: "\(thread)-\(next)"))
            #expect(left.isDisjoint(with: documents) || left.isSuperset(of: documents))
            left.subtract(documents)
        }
        #expect(left == [], "documents that nobody saved, or half of a transaction")

        // The store is as good as new.
        try Self.save("later", in: database)
        try database.close()
        let again = try stores.open()
        #expect(try again["later"] != nil)
        try again.delete()
    }

    @Test(
        "A process killed while it saves leaves a store that every wrong key is a 401 for, and changes no byte of",
        arguments: WrongKeyTests.Protection.allCases)
    func wrongKey(protection: WrongKeyTests.Protection) async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = stores.directory.path as String, protection = protection.rawValue as String] in
            try Self.saveAndDie(path, try #require(WrongKeyTests.Protection(rawValue: protection)).key)
        }
        for (_, attempt) in WrongKeyTests.attempts.filter({ $0.0 == protection }) {
            try checkWrongKey(protection, attempt)
        }
        let database = try stores.open(key: protection.key)
        #expect(try database["d19"]?["n"] == 19)
        #expect(try database.documentCount == 20)
    }

    private static func saveAndDie(_ path: String, _ key: SymmetricKey?) throws {
        let database = try TestStores(sharing: path).open(key: key)
        for number in 0..<20 { try database.save(json: json(number), withID: "d\(number)") }
        killOneself()
    }

    private func checkWrongKey(_ protection: WrongKeyTests.Protection, _ attempt: WrongKeyTests.Attempt) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: stores.generation().path)
        #expect(Set(names).contains("db.sqlite3-wal"))
        // The index of a sealed log is in memory.
        #expect(names.contains("db.sqlite3-shm") == (protection == .nothing || TestStores.isSQLCipher))

        let before = try stores.snapshot()
        for isReadOnly in [false, true] {
            let error = thrown { try stores.open(key: attempt.key) { $0.readOnly = isReadOnly } }
            #expect(error?.status == 401)
        }
        #expect(try stores.snapshot() == before)

        let reading = try stores.open(key: protection.key) { $0.readOnly = true }
        #expect(try reading.documentCount == 20)
        try reading.close()
        let ignored: Set = ["db.sqlite3-shm"]
        let after = try stores.snapshot(ignoring: ignored)
        #expect(after == before.filter { !$0.key.hasSuffix("db.sqlite3-shm") })
    }

    private func makeStore() throws { try stores.open().save(json: json(1), withID: "a") }

    private static func holdUntilKilled(_ path: String, isReadOnly: Bool, _ journal: Journal) throws {
        let database = try TestStores(sharing: path).open { $0.readOnly = isReadOnly }
        #expect(try database["a"]?["n"] == 1)
        if !isReadOnly { try database.save(json: json(2), withID: "b") }
        try journal.note("\(getpid())")
        // Until it is killed, or the test is long over.
        sleep(600)
        try database.close()
    }

    @Test("A process has the store to itself: others are busy at once or after their time, until it is killed")
    func twoProcesses() async throws {
        try makeStore()
        let others = WorkBesideProcess { [stores, journal] in
            let line = try #require(journal.waitForLine())
            let holder = try #require(Int32(line))
            do {
                for isReadOnly in [false, true] {
                    try Self.checkOthersAreBusy(stores, isReadOnly: isReadOnly)
                }
            } catch {
                kill(holder, SIGKILL)
                throw error
            }
            #expect(stores.manager.databaseExists(named: "db"))
            Thread {
                Thread.sleep(forTimeInterval: 0.1); kill(holder, SIGKILL)
            }.start()
            return try stores.open { $0.lockTimeout = longestWait }.documentIDs()
        }
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = stores.directory.path as String, journal = journal.path as String] in
            try Self.holdUntilKilled(path, isReadOnly: false, Journal(path: journal))
        }
        #expect(try others.value() == ["a", "b"])
    }

    private static func checkOthersAreBusy(_ stores: TestStores, isReadOnly: Bool) throws {
        // Who doesn't wait tries once.
        let attempts = Shared(0)
        let counting = RecordingFileSystem(beforeLock: { attempts.value = $0 })
        let impatient = TestStores(sharing: stores.directory.path, fileSystem: counting)
        #expect(thrown { try impatient.open { $0.readOnly = isReadOnly } }?.status == 503)
        #expect(attempts.value == 1)
        let waiting = ContinuousClock().measure {
            let error = thrown {
                try stores.open {
                    $0.readOnly = isReadOnly
                    $0.lockTimeout = .milliseconds(200)
                }
            }
            #expect(error?.code == .busy)
        }
        #expect((.milliseconds(200)..<longestWait).contains(waiting))
        // Who has the store open is asked for no key; nor is a wrong one told from a right one.
        #expect(thrown { try stores.open(key: testKey(8)) { $0.readOnly = isReadOnly } }?.code == .busy)
    }

    @Test("Processes that only read share a store, and keep others from writing")
    func readers() async throws {
        try makeStore()
        let others = WorkBesideProcess { [stores, journal] in
            let line = try #require(journal.waitForLine())
            let reader = try #require(Int32(line))
            defer { kill(reader, SIGKILL) }
            do {
                let database = try stores.open { $0.readOnly = true }
                #expect(try database["a"]?["n"] == 1)
            }
            #expect(thrown { try stores.open() }?.code == .busy)
        }
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = stores.directory.path as String, journal = journal.path as String] in
            try Self.holdUntilKilled(path, isReadOnly: true, Journal(path: journal))
        }
        try others.value()
        #expect(try stores.open()["a"]?["n"] == 1)
    }
}
