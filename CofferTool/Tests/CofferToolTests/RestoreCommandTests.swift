import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite("Restoring a store from a backup")
struct RestoreCommandTests {
    let work: Workspace

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        try work.write(Data(32..<64), to: "backup-key")
        let records = (0..<200).map { #"{"_id":"d\#($0)","n":\#($0)}"# }.joined(separator: "\n")
        try work.write(records, to: "records")
        try work.write(Data((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 3) }), to: "file")
        try run("import", "people.coffer", "records")
        try run("attach", "people.coffer", "d1", "file", "file")
        try run("backup", "people.coffer", "backup.coffer", "--new-key", "raw+file:backup-key")
    }

    @discardableResult
    private func run(
        _ arguments: String..., key: String = "key", input: String = "", isChecked: Bool = true
    ) throws -> CofferProcess.Outcome {
        let outcome = try CofferProcess.run(
            arguments + ["--key", "raw+file:\(key)"], in: work.folder, .init(input: Data(input.utf8)))
        if isChecked { try #require(outcome.status == 0, "\(arguments): \(outcome.errors)") }
        return outcome
    }

    private func restore(_ arguments: String..., key: String = "backup-key") throws -> CofferProcess.Outcome {
        try CofferProcess.run(["restore"] + arguments + ["--key", "raw+file:\(key)"], in: work.folder)
    }

    /// Whether the store is there, whole, as the backup has it.
    private func isRestored(_ store: String) throws -> Bool {
        guard try run("check", store, key: "backup-key", isChecked: false).status == 0 else { return false }
        return try run("ls", store, key: "backup-key").lines.count == 200
            && run("cat", store, "d1", "file", key: "backup-key").outputBytes.count == 2_000_000
    }

    private func object(_ outcome: CofferProcess.Outcome) throws -> [String: Any] {
        try #require(try outcome.objects.first)
    }

    @Test("A restore replaces no store that came meanwhile, and none that has the backup in it")
    func refusedTargets() throws {
        let key = "raw+cmd:'\(CofferProcess.executable.path)' create late.coffer --key raw+file:key && cat backup-key"
        let late = try work.coffer("restore", "backup.coffer", "late.coffer", "--key", key, "--json")
        #expect(try late.status == 1 && late.failure["code"] as? String == "databaseExists")
        #expect(try run("ls", "late.coffer").status == 0)
        try FileManager.default.moveItem(
            at: work.folder.appending(path: "backup.coffer"), to: work.folder.appending(path: "late.coffer/in.coffer"))
        let inside = try restore("late.coffer/in.coffer", "late.coffer", "--replace")
        #expect(inside.status == 64, "\(inside.errors)")
        #expect(FileManager.default.fileExists(atPath: work.folder.appending(path: "late.coffer/in.coffer").path))
    }

    @Test("A restore makes a store where none is, which is whole and which the backup's key opens")
    func makesStore() throws {
        let before = try work.contents(of: "backup.coffer")
        let result = try object(restore("backup.coffer", "new.coffer", "--json"))
        #expect(result["type"] as? String == "restore")
        #expect(result["replaced"] as? Bool == false)
        let info = try object(work.coffer("info", "backup.coffer", "--json"))
        #expect(result["uuid"] as? String == info["uuid"] as? String)
        #expect(try isRestored("new.coffer"))
        #expect(try work.contents(of: "backup.coffer") == before)
        #expect(try restore("backup.coffer", "another.coffer").lines.first == "restored    another.coffer")
    }

    @Test("A restore takes the place of a store with --replace alone, and leaves nothing of the old one")
    func replaces() throws {
        let before = try work.contents(of: "people.coffer")
        let refused = try restore("backup.coffer", "people.coffer", "--json")
        #expect(refused.status == 1)
        #expect(try refused.failure["status"] as? Int == 412)
        #expect(try refused.failure["hint"] as? String == "--replace replaces a store with the backup")
        #expect(try work.contents(of: "people.coffer") == before)
        let result = try object(restore("backup.coffer", "people.coffer", "--replace", "--json"))
        #expect(result["replaced"] as? Bool == true)
        #expect(try isRestored("people.coffer"))
        #expect(try run("ls", "people.coffer", isChecked: false).status == 12)
        let names = try FileManager.default.contentsOfDirectory(atPath: work.folder.path)
        #expect(names.allSatisfy { !$0.hasPrefix(".coffer-") })
    }

    @Test("A restore with a wrong key is 12, and names the backup")
    func wrongKey() throws {
        for target in ["new.coffer", "people.coffer"] {
            let outcome = try restore("backup.coffer", target, "--replace", "--json", key: "key")
            #expect(outcome.status == 12)
            #expect(try outcome.failure["status"] as? Int == 401)
            #expect((try outcome.failure["message"] as? String)?.hasPrefix("backup.coffer: ") == true)
        }
        #expect(!FileManager.default.fileExists(atPath: work.folder.appending(path: "new.coffer").path))
        #expect(try run("ls", "people.coffer").status == 0)
    }

    @Test(
        "A restore of a damaged backup is 26, names it, and leaves the old store", arguments: ["db.sqlite3", ".blob"])
    func damaged(suffix: String) throws {
        let before = try work.contents(of: "people.coffer")
        let name = try #require(work.contents(of: "backup.coffer").keys.first { $0.hasSuffix(suffix) })
        let file = work.folder.appending(path: "backup.coffer/\(name)")
        var bytes = try Data(contentsOf: file)
        bytes[bytes.count / 2] ^= 1
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
        try bytes.write(to: file)
        for target in ["new.coffer", "people.coffer"] {
            let outcome = try restore("backup.coffer", target, "--replace", "--json")
            #expect(outcome.status == 26)
        }
        #expect(try work.contents(of: "people.coffer") == before)
        #expect(!FileManager.default.fileExists(atPath: work.folder.appending(path: "new.coffer").path))
    }

    @Test("A restore of a backup over itself, into no folder, over something else, or over a store in use is refused")
    func refused() throws {
        #expect(try restore("backup.coffer", "./backup.coffer", "--replace").status == 64)
        #expect(try restore("backup.coffer", "nowhere/new.coffer").status == 1)
        #expect(try restore("backup.coffer", "new").status == 64)
        #expect(try restore("missing.coffer", "new.coffer").status == 10)
        try work.write("a file", to: "else.coffer")
        #expect(try restore("backup.coffer", "else.coffer", "--replace").status == 10)
        let lock = open(work.folder.appending(path: "people.coffer").path, O_RDONLY | O_DIRECTORY)
        defer { close(lock) }
        try #require(flock(lock, LOCK_SH | LOCK_NB) == 0)
        #expect(try restore("backup.coffer", "people.coffer", "--replace").status == 11)
    }

    @Test(
        "A restore that is killed leaves what was there or the whole store, and the next one removes the rest",
        arguments: [true, false])
    func killed(replaces: Bool) throws {
        var numbers = SeededNumbers(seed: .random(in: 0 ... .max))
        var longest = Duration.milliseconds(1)
        var found: [String: Int] = [:]
        func restore(_ meanwhile: (pid_t) throws -> Void = { _ in }) throws -> CofferProcess.Outcome {
            try CofferProcess.run(
                ["restore", "backup.coffer", "new.coffer", "--replace", "--key", "raw+file:backup-key"],
                in: work.folder, meanwhile: meanwhile)
        }
        for round in 0..<25 {
            let store = work.folder.appending(path: "new.coffer")
            try? FileManager.default.removeItem(at: store)
            if replaces { try run("create", "new.coffer") }
            let start = ContinuousClock.now
            let limit = UInt64(longest / .microseconds(1))
            let microseconds = round < 3 ? nil : UInt64.random(in: 0...limit, using: &numbers)
            _ = try restore { process in
                guard let microseconds else { return }
                usleep(UInt32(microseconds))
                kill(process, SIGKILL)
            }
            if round < 3 { longest = max(longest, ContinuousClock.now - start) }
            if try isRestored("new.coffer") {
                found["new", default: 0] += 1
            } else if replaces {
                #expect(try run("check", "new.coffer").status == 0)
                found["old", default: 0] += 1
            } else {
                #expect(!FileManager.default.fileExists(atPath: store.path))
                found["nothing", default: 0] += 1
            }
        }
        print("restores of a store that were killed: \(found)")
        #expect(try restore().status == 0)
        #expect(try isRestored("new.coffer"))
        let names = try FileManager.default.contentsOfDirectory(atPath: work.folder.path)
        #expect(names.allSatisfy { !$0.hasPrefix(".coffer-") })
    }
}
