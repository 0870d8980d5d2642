import Coffer
import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// 130 and a death by a signal both say that the store is as it was; 0 says that all is done.
@Suite("A short command that a signal comes to", .serialized)
struct InterruptedWriteTests {
    private let work: Workspace

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        try work.write(#"{"n":1}"#, to: "a.json")
        try work.write(Data(32..<64), to: "second")
    }

    private var longest: UInt32 { 150_000 }

    /// Runs a command that is sent `signal` at some time, and compares what it says with what `isDone` finds then.
    private func check(
        _ signal: Int32, _ rounds: Int, _ arguments: (Int) -> [String], isDone: (Int) throws -> Bool
    ) throws -> [Int32: Int] {
        var counts: [Int32: Int] = [:]
        var numbers = SeededNumbers(seed: UInt64(signal))
        for round in 0..<rounds {
            let time = UInt32.random(in: 0...longest, using: &numbers)
            let outcome = try CofferProcess.run(arguments(round), in: work.folder) { process in
                usleep(time)
                kill(process, signal)
            }
            #expect([0, 130, 128 + signal].contains(outcome.status), "\(outcome.errors)")
            #expect(try isDone(round) == (outcome.status == 0), "\(outcome.status) of round \(round)")
            counts[outcome.status, default: 0] += 1
        }
        return counts
    }

    private func database<R>(_ body: (Database) throws -> R) throws -> R {
        var options = DatabaseOptions()
        options.encryptionKey = try SymmetricKey(data: Workspace.key)
        let database = try Manager(directory: work.folder).openDatabase(named: "people", options: options)
        defer { try? database.close() }
        return try body(database)
    }

    @Test(
        "A short command that a signal interrupts has done all or nothing, as its status says",
        arguments: [SIGINT, SIGTERM, SIGHUP, SIGQUIT])
    func short(signal: Int32) throws {
        let store = ["people.coffer", "--key", "raw+file:key"]
        let put = try check(signal, 12) {
            ["put", store[0], "d\($0)", "a.json"] + store[1...]
        } isDone: { round in
            try database { try $0["d\(round)"] != nil }
        }
        let index = try check(signal, 6) { round in
            ["index", "add", store[0], "i\(round)", "n"] + store[1...]
        } isDone: { round in
            try database { try $0.indexes.contains { $0.name == "i\(round)" && !$0.isStale } }
        }
        let key = try check(signal, 4) { _ in
            ["key", "add", store[0], "--new-key", "raw+file:second"] + store[1...]
        } isDone: { _ in
            try database { database in
                let second = try database.keys.first { !$0.isCurrent }
                if let second { try database.removeKey(second.id) }
                return second != nil
            }
        }
        let create = try check(signal, 6) { round in
            ["create", "new\(round).coffer", "--key", "raw+file:key"]
        } isDone: { round in
            try Manager(directory: work.folder).databaseExists(named: "new\(round)")
        }
        print("short commands sent \(signal), by status: put \(put), index \(index), key \(key), create \(create)")
    }

    @Test("A short command goes on under a signal that was ignored when it began, as nohup has it")
    func ignored() throws {
        let line =
            "trap '' HUP QUIT; $coffer attach people.coffer a x - --key raw+file:key & sleep 0.3; kill -HUP $!;"
            + " kill -QUIT $!; wait $!"
        let outcome = try work.shell("(sleep 1; echo content) | { \(line); }")
        #expect(outcome.status == 0)
        #expect(try database { try $0["a"]?.currentRevision?.attachment(named: "x") != nil })
    }
}
