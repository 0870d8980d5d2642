import CTerminal
import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Users and groups without a name, as good as any.
private let user: uid_t = 54_321
private let other: uid_t = 54_331
private let group: gid_t = 54_322

/// SQLite is given paths: the owner of a folder could have root overwrite any file through it. So what root is asked to do with
/// another user's store is done as that user.
@Suite(
    "Root, and stores of other users", .enabled(if: geteuid() == 0, "only root can act as another user"),
    .timeLimit(.minutes(30)))
struct OtherOwnerTests {
    let work: Workspace
    private let key = ["--key", "raw+file:key"]
    /// The keys that a folder of stores may have.
    private let password = "file:old"
    private let rawKey = "raw+file:old"

    init() throws {
        work = try Workspace()
        try work.makeStore()
        try close("key")
        try give("people.coffer")
    }

    // MARK: Files

    private func path(_ name: String) -> String { work.folder.appending(path: name).path }

    /// Makes it readable for root alone.
    private func close(_ name: String) throws { try #require(chmod(path(name), 0o600) == 0) }

    private func paths(_ name: String) throws -> [String] {
        try [path(name)] + FileManager.default.subpathsOfDirectory(atPath: path(name)).map { path(name) + "/" + $0 }
    }

    private func give(_ name: String, to user: uid_t = user) throws {
        for path in try paths(name) { try #require(lchown(path, user, group) == 0) }
    }

    private func owners(_ name: String) throws -> Set<uid_t> {
        Set(
            try paths(name).map { path in
                var status = stat()
                try #require(lstat(path, &status) == 0)
                return status.st_uid
            })
    }

    private func generation(_ name: String = "people.coffer") throws -> String {
        let names = try FileManager.default.contentsOfDirectory(atPath: path(name))
        return path(name) + "/" + (try #require(names.first { $0.hasPrefix("g0") }))
    }

    private func coffer(
        _ arguments: [String], input: String = "", meanwhile: (pid_t) throws -> Void = { _ in }
    ) throws -> CofferProcess.Outcome {
        try CofferProcess.run(
            arguments, in: work.folder, .init(input: Data(input.utf8)), meanwhile: meanwhile)
    }

    // MARK: What they get

    // As root itself, the command overwrote the file and gave it away in every sixth run or so.
    @Test("No file of root's is overwritten or given away, whatever another user puts in the place of -shm and -wal")
    func swapped() throws {
        let secret = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        try work.write(secret, to: "secret")
        try close("secret")
        let swapper = swapper_begin(user, group, try generation(), path("secret"))
        try #require(swapper > 0)
        defer {
            kill(swapper, SIGKILL)
            waitpid(swapper, nil, 0)
        }
        for _ in 0..<60 {
            // It may fail, since its log is taken away.
            _ = try coffer(["put", "people.coffer", "a"] + key, input: "{}")
            var status = stat()
            try #require(lstat(path("secret"), &status) == 0)
            try #require(status.st_uid == 0 && status.st_gid == 0 && status.st_mode & 0o7777 == 0o600)
            try #require(try Data(contentsOf: URL(filePath: path("secret"))) == secret)
        }
    }

    @Test("No file that only root can read gets into another user's store, unless root hands it over opened")
    func inputs() throws {
        try work.write("root's own", to: "secret")
        try close("secret")
        let named = try coffer(["attach", "people.coffer", "a", "x", "secret"] + key)
        #expect(named.status == 1)
        #expect(named.errors.contains("coffer: hint: coffer works as user \(user)"))
        #expect(try coffer(["ls", "people.coffer"] + key).output.isEmpty)
        #expect(try coffer(["attach", "people.coffer", "a", "x", "-"] + key, input: "root's own").status == 0)
        #expect(try coffer(["cat", "people.coffer", "a", "x"] + key).output == "root's own")
    }

    @Test("Keys for another user's store come from wherever only root finds them, and from a terminal")
    func keys() throws {
        try work.write(Workspace.key.map { String(format: "%02x", $0) }.joined(), to: "hex")
        try close("hex")
        let digits = try Data(contentsOf: URL(filePath: path("hex")))
        func list(_ source: String, _ surroundings: CofferProcess.Surroundings = .init()) throws -> Int32 {
            try CofferProcess.run(["ls", "people.coffer", "--key", source], in: work.folder, surroundings).status
        }
        // Without a key nobody would be asked for the other one.
        try #require(try list("hex+file:hex") == 0)
        #expect(try list("hex+cmd:cat hex") == 0)
        #expect(try list("hex+env:KEY", .init(environment: ["KEY": String(decoding: digits, as: UTF8.self)])) == 0)
        #expect(try list("hex+fd:7", .init(descriptors: [7: digits])) == 0)
        #expect(try list("hex+stdin", .init(input: digits)) == 0)
        #expect(try list("hex+file:nothing") == 13)
        let terminal = try FakeTerminal()
        let added = try CofferProcess.run(
            ["key", "add", "people.coffer"] + key, in: work.folder, .init(terminal: terminal)
        ) { _ in
            for _ in 0..<2 {
                try terminal.wait(for: ": ")
                terminal.type("swordfish\n")
            }
        }
        #expect(added.status == 0, "\(added.errors)")
        #expect(try owners("people.coffer") == [user])
    }

    #if canImport(Glibc)
    @Test("Nothing of root's rights is left to a process that works as another user")
    func rights() throws {
        try FileManager.default.createDirectory(atPath: path("stores"), withIntermediateDirectories: false)
        try give("stores")
        var rights: [String: String] = [:]
        let outcome = try CofferProcess.run(
            ["serve", "stores", "--no-authentication", "--unencrypted", "--port", "0"], in: work.folder,
            goesOnForEver: true
        ) { process in
            // Of a process whose rights have changed the rest can only be read by root.
            let text = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
            for line in text.split(separator: "\n") {
                let sides = line.split(separator: ":", maxSplits: 1)
                rights[String(sides[0])] = sides.dropFirst().first?.split(separator: "\t").joined(separator: " ")
            }
        }
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(rights["Uid"] == "\(user) \(user) \(user) \(user)")
        #expect(rights["Gid"] == "\(group) \(group) \(group) \(group)")
        #expect(rights["Groups"]?.trimmingCharacters(in: .whitespaces) == "")
        #expect(rights["CapEff"] == "0000000000000000" && rights["CapPrm"] == "0000000000000000")
    }
    #endif

    // MARK: Whose it is

    @Test("A new store belongs to the owner of its folder, and where two users own the path it is refused with 403")
    func places() throws {
        for (name, user) in [("theirs", user), ("others", other)] {
            try FileManager.default.createDirectory(atPath: path(name), withIntermediateDirectories: false)
            try give(name, to: user)
        }
        #expect(try coffer(["create", "theirs/new.coffer"] + key).status == 0)
        #expect(try owners("theirs") == [user])
        #expect(
            try coffer(["backup", "people.coffer", "theirs/copy.coffer", "--new-key", "raw+file:key"] + key).status == 0
        )
        #expect(try owners("theirs") == [user])
        let two = try coffer(
            ["backup", "people.coffer", "others/copy.coffer", "--new-key", "raw+file:key", "--json"] + key)
        #expect(two.status == 1)
        #expect(try two.failure["code"] as? String == "notOwner" && two.failure["status"] as? Int == 403)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path("others")).isEmpty)
        try #require(lchown(path("people.coffer"), other, group) == 0)
        #expect(try coffer(["ls", "people.coffer", "--json"] + key).failure["status"] as? Int == 403)
    }

    // MARK: Many stores

    /// Stores of root's and of two others in one folder.
    ///
    /// - Parameter key: `file:old` is a password that has a line end of its own, and half a second of work each time that a store
    ///   is opened with it.
    private func makeStores(_ key: String) throws {
        try work.write(key == rawKey ? Data(64..<96) : Data("swordfish\n\n".utf8), to: "old")
        try work.write(Data(32..<64), to: "new")
        for name in ["old", "new"] { try close(name) }
        try FileManager.default.createDirectory(atPath: path("stores"), withIntermediateDirectories: false)
        try #require(try coffer(["create", "stores/a.coffer", "--key", key]).status == 0)
        for (name, user) in [("b", 0), ("c", other), ("d", user), ("a", user)] {
            let store = "stores/\(name).coffer"
            if name != "a" {
                try FileManager.default.copyItem(atPath: path("stores/a.coffer"), toPath: path(store))
            }
            try give(store, to: user)
        }
    }

    /// Makes six more of the first store, all of the same user.
    private func copyFirstStore() throws {
        for number in 0..<6 {
            let copy = "stores/a\(number).coffer"
            try FileManager.default.copyItem(atPath: path("stores/a.coffer"), toPath: path(copy))
            try give(copy)
        }
    }

    private func rotate(_ key: String, _ arguments: String...) throws -> CofferProcess.Outcome {
        try coffer(["rotate", "stores", "--key", key, "--new-key", "raw+file:new"] + arguments)
    }

    private func expectOwners() throws {
        for (name, user) in [("a", user), ("b", 0), ("c", other), ("d", user)] {
            #expect(try owners("stores/\(name).coffer") == [user])
        }
    }

    @Test("Stores of several users are rotated as each of them, with one summary, and stay theirs")
    func rotated() throws {
        try makeStores(password)
        let due = try rotate(password, "--dry-run")
        #expect(due.status == 0, "\(due.errors)")
        #expect(due.lines.last == "4 stores: 4 to be rotated")
        let outcome = try rotate(password, "--json", "--jobs", "2")
        #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
        let receipts = try outcome.objects.filter { $0["type"] as? String == "receipt" }
        #expect(Set(receipts.map { $0["path"] as? String }) == Set(["a", "b", "c", "d"].map { "stores/\($0).coffer" }))
        #expect(receipts.allSatisfy { $0["outcome"] as? String == "rotated" && $0["oldKeyOpens"] as? Bool == false })
        let summary = try #require(try outcome.objects.last)
        #expect(summary["stores"] as? Int == 4 && summary["rotated"] as? Int == 4)
        try expectOwners()
        let again = try rotate(password)
        #expect(again.status == 0)
        #expect(again.lines.last == "4 stores: 4 rotated before")
        for name in ["a", "b", "c", "d"] {
            #expect(try coffer(["ls", "stores/\(name).coffer", "--key", "raw+file:new"]).status == 0)
        }
        try expectOwners()
    }

    @Test("Stores of several users have their receipts in one file, which stays root's")
    func receipts() throws {
        try makeStores(rawKey)
        let outcome = try rotate(rawKey, "--receipts", "receipts", "--jobs", "2")
        #expect(outcome.status == 0, "\(outcome.errors)")
        let verified = try coffer(["receipts", "verify", "receipts", "--json"])
        #expect(verified.status == 0, "\(verified.errors)")
        #expect(try verified.objects.first?["rotated"] as? Int == 4 && verified.objects.first?["lines"] as? Int == 10)
        #expect(try owners("receipts") == [0])
        let again = try rotate(rawKey, "--receipts", "receipts", "--resume")
        #expect(again.lines.dropLast().last == "4 stores: 4 done in an earlier run")
        try expectOwners()
    }

    /// It failed as a whole: 403.
    @Test("Info with a key says of stores of several users what each is, as each of them")
    func described() throws {
        try makeStores(rawKey)
        let outcome = try coffer(["info", "stores", "--key", rawKey, "--json"])
        #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
        #expect(
            try Set(outcome.objects.map { $0["path"] as? String })
                == Set(["a", "b", "c", "d"].map { "stores/\($0).coffer" }))
        #expect(try outcome.objects.allSatisfy { $0["documents"] as? Int == 0 })
        try expectOwners()
        // A folder and a MANIFEST of two users are nobody's to open, and others are still said.
        try #require(lchown(path("stores/d.coffer"), other, group) == 0)
        try work.write("stores/d.coffer\nstores/c.coffer\nstores/a.coffer\nstores/b.coffer\n", to: "list")
        let list = try coffer(["info", "list", "--key", rawKey, "--json"])
        #expect(list.status == 3)
        #expect(try list.objects.filter { $0["documents"] as? Int == 0 }.count == 3)
        #expect(try list.objects.compactMap { $0["status"] as? Int } == [403])
        let wrong = try coffer(["info", "stores", "--key", "raw+file:new"])
        #expect(wrong.status == 12 && wrong.lines.count == 4)
    }

    @Test("A rehearsal for several users runs the command for the new key only for the store that needs it")
    func rehearsedWithCommand() throws {
        try makeStores(rawKey)
        try work.write("echo ran >> calls; cat new\n", to: "service")
        try close("service")
        let line = ["rotate", "stores", "--key", rawKey, "--new-key", "raw+cmd:sh service", "--dry-run"]
        #expect(try coffer(line).lines.last == "4 stores: 4 to be rotated")
        #expect(!FileManager.default.fileExists(atPath: path("calls")))
        try #require(
            try coffer(["rotate", "stores/c.coffer", "--key", rawKey, "--new-key", "raw+file:new"]).status == 0)
        let again = try coffer(line)
        #expect(
            again.status == 0 && again.lines.last == "4 stores: 1 rotated before, 3 to be rotated", "\(again.errors)")
        #expect(try String(contentsOfFile: path("calls"), encoding: .utf8) == "ran\n")
        try expectOwners()
    }

    @Test("Stores of several users can have keys of their own, from a command that only root can run")
    func keyForEachStore() throws {
        try makeStores(password)
        try work.write("cat old; test \"${COFFER_STORE_PATH##*/}\" != c.coffer\n", to: "service")
        try close("service")
        let line = ["rotate", "stores", "--key", "cmd:sh service", "--new-key", "raw+file:new", "--key-for-each-store"]
        let outcome = try coffer(line + ["--keep-going", "--json"])
        #expect(outcome.status == 3)
        #expect(try outcome.objects.last?["rotated"] as? Int == 3)
        #expect(try outcome.failure["code"] as? String == "keyUnavailable")
        #expect(try outcome.objects.contains { ($0["path"] as? String)?.hasSuffix("c.coffer") == true })
        try expectOwners()
        let again = try coffer(line + ["--keep-going", "--json"])
        #expect(try again.objects.last?["alreadyRotated"] as? Int == 3)
    }

    @Test(
        "The processes of a rotation for several users end where nobody reads the results any more",
        .timeLimit(.minutes(30)))
    func brokenPipe() throws {
        try makeStores(password)
        try copyFirstStore()
        let line = "rotate stores --key file:old --new-key raw+file:new --receipts receipts --keep-going --json"
        // A process that waited for an answer would keep the pipeline for ever.
        let outcome = try work.shell("'\(CofferProcess.executable.path)' \(line) | head -1; echo ended")
        #expect(outcome.output.hasSuffix("}\nended\n") && outcome.output.contains("receipt"), "\(outcome.output)")
    }

    @Test("The first failure ends a rotation for several users, unless it shall go on")
    func failed() throws {
        try makeStores(rawKey)
        try #require(
            try coffer(["key", "add", "stores/a.coffer", "--key", rawKey, "--new-key", "raw+file:key"]).status == 0)
        let outcome = try rotate(rawKey, "--json")
        #expect(outcome.status == 1)
        #expect(try outcome.objects.last?["failed"] as? Int == 1 && outcome.objects.last?["notTried"] as? Int == 3)
        #expect(try outcome.failure["code"] as? String == "otherKeysExist")
        let all = try rotate(rawKey, "--keep-going")
        #expect(all.status == 3)
        #expect(all.lines.last == "4 stores: 3 rotated, 1 failed")
        #expect(all.errors.contains("stores/a.coffer: "))
        try expectOwners()
    }

    @Test("A rotation for several users that is told to end ends its processes, and each store is as it was or rotated")
    func cancelled() throws {
        try makeStores(password)
        // Seconds of work, which a process that wasn't told would do to its end.
        try copyFirstStore()
        let surroundings = CofferProcess.Surroundings(outputPath: path("receipts"))
        let outcome = try CofferProcess.run(
            ["rotate", "stores", "--key", "file:old", "--new-key", "raw+file:new", "--json"], in: work.folder,
            surroundings
        ) { process in
            _ = try CofferProcess.firstLine(of: path("receipts"), by: process)
            kill(process, SIGTERM)
        }
        #expect(outcome.status == 130, "\(outcome.errors)")
        let rest = try rotate(password, "--json")
        #expect(rest.status == 0, "\(rest.errors)")
        let summary = try #require(try rest.objects.last)
        #expect(summary["alreadyRotated"] as? Int ?? 0 > 0)
        // More than the two of the others.
        #expect(summary["rotated"] as? Int ?? 0 > 2)
        try expectOwners()
    }

    #if canImport(Glibc)
    /// A process that one of the threads of `process` has begun.
    private func child(of process: pid_t) throws -> pid_t {
        let threads = "/proc/\(process)/task"
        for thread in try FileManager.default.contentsOfDirectory(atPath: threads) {
            let children = try String(contentsOfFile: "\(threads)/\(thread)/children", encoding: .utf8)
            if let child = children.split(separator: " ").first { return try #require(pid_t(child)) }
        }
        throw NoChild()
    }

    private struct NoChild: Error {}

    /// An owner may do anything to a process of theirs. It was taken for a cancelling of all of it.
    @Test(
        "A user who ends the process that works as them fails their own stores alone",
        arguments: [SIGTERM, SIGKILL])
    func ended(signal: Int32) throws {
        try makeStores(password)
        try copyFirstStore()
        let surroundings = CofferProcess.Surroundings(outputPath: path("receipts"))
        let outcome = try CofferProcess.run(
            ["rotate", "stores", "--key", "file:old", "--new-key", "raw+file:new", "--json", "--keep-going"],
            in: work.folder, surroundings
        ) { process in
            _ = try CofferProcess.firstLine(of: path("receipts"), by: process)
            kill(try child(of: process), signal)
        }
        #expect(outcome.status == 3, "\(outcome.errors)")
        let receipts = try String(contentsOfFile: path("receipts"), encoding: .utf8).split(separator: "\n")
        let last = Data(String(receipts.last ?? "").utf8)
        let summary = try #require(try JSONSerialization.jsonObject(with: last) as? [String: Any])
        #expect(summary["cancelled"] as? Bool == false)
        #expect(summary["notTried"] as? Int == 0)
        #expect(summary["failed"] as? Int ?? 0 > 0)
        for name in ["b", "c"] {
            #expect(try coffer(["ls", "stores/\(name).coffer", "--key", "raw+file:new"]).status == 0)
        }
        #expect(try rotate(password).status == 0)
    }
    #endif
}
