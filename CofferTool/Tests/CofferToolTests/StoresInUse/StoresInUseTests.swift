import Coffer
import CofferMaintenance
import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Stores that this process has open, and the command as another process.
@Suite("Stores that another process has open", .timeLimit(.minutes(30)))
struct StoresInUseTests {
    let use: StoresInUse

    init() throws { use = try StoresInUse() }

    @Test("Commands about a whole store are done by the process that has it open, which goes on")
    func everyCommand() throws {
        let database = try use.open("people")
        let listener = try use.accept()
        defer { listener.stop() }
        let store = "stores/people.coffer"
        let key = ["--key", "raw+file:old"]
        let info = try use.run(["info", store, "--json"] + key)
        #expect(try info.status == 0 && (info.objects[0]["documents"] as? Int) == 20, "\(info.errors)")
        let check = try use.run(["check", store, "--json"] + key)
        #expect(try check.status == 0 && (check.objects[0]["sound"] as? Bool) == true, "\(check.errors)")
        let copied = try use.run(["backup", store, "copy.coffer", "--new-key", "raw+file:third", "--json"] + key)
        #expect(copied.status == 0, "\(copied.errors)")
        #expect(try use.run(["info", "copy.coffer", "--key", "raw+file:third"]).status == 0)
        #expect(try use.run(["compact", store, "--depth", "9"] + key).status == 0)
        #expect(try database.maxRevTreeDepth == 9)
        #expect(try use.run(["key", "list", store] + key).lines.count == 1)
        let added = try use.run(["key", "add", store, "--new-key", "raw+file:third", "--label", "third"] + key)
        #expect(try added.status == 0 && (database.keys.last?.label) == "third", "\(added.errors)")
        let replaced = try use.run(
            ["key", "replace", store, "--new-key", "raw+file:fourth", "--key", "raw+file:third"])
        #expect(replaced.status == 0, "\(replaced.errors)")
        #expect(try use.run(["key", "list", store, "--key", "raw+file:third"]).status == 12)
        let removed = try use.run(["key", "remove", store, replaced.lines[0]] + key)
        #expect(try removed.status == 0 && database.keys.count == 1, "\(removed.errors)")
        let rekeyed = try use.run(["rekey", store, "--new-key", "raw+file:new", "--progress"] + key)
        #expect(rekeyed.status == 0 && rekeyed.errors.contains("database"), "\(rekeyed.errors)")
        #expect(try use.run(["info", store] + key).status == 12)
        #expect(try database.save(json: Data("{}".utf8), withID: "after").revisionID.generation == 1)
        #expect(try database.documentCount == 21)
    }

    @Test("An export of a store in use has what the same store has when it is closed, contents included")
    func export() throws {
        let database = try use.open("people")
        let draft = try database.document(withID: "with").newRevision()
        draft.setAttachment(named: "a", contentType: "text/plain", content: Data(repeating: 65, count: 2_500_000))
        draft["blob"] = .blob(Blob(contentType: "text/plain", data: Data("in a blob".utf8)))
        try draft.save()
        let listener = try use.accept()
        let command = ["export", "stores/people.coffer", "--key", "raw+file:old"]
        let open = try use.run(command + ["open.jsonl", "--attachments", "open"])
        #expect(open.status == 0 && open.errors.contains("when its turn comes"), "\(open.errors)")
        listener.stop()
        try database.close()
        let closed = try use.run(command + ["closed.jsonl", "--attachments", "closed"])
        #expect(closed.status == 0 && closed.output == open.output)
        #expect(try use.work.contents(of: "open") == use.work.contents(of: "closed"))
        #expect(try use.work.contents(of: "open").count == 2)
        let files = try ["open.jsonl", "closed.jsonl"].map {
            try Data(contentsOf: use.work.folder.appending(path: $0))
        }
        #expect(files[0] == files[1])
    }

    @Test("Stores in use without acceptance, or for other commands, are busy (11); a wrong key stays a 401")
    func busy() throws {
        let database = try use.open("people")
        let check = ["check", "stores/people.coffer", "--key"]
        #expect(try use.run(check + ["raw+file:old"]).status == 11)
        let listener = try use.accept()
        #expect(try use.run(check + ["raw+file:old"]).status == 0)
        for command in ["check", "compact", "export", "backup"] {
            let more = command == "backup" ? ["copy.coffer", "--new-key", "raw+file:third"] : []
            let outcome = try use.run([command, "stores/people.coffer"] + more + ["--key", "raw+file:new", "--json"])
            #expect(outcome.status == 12, "\(command)")
            #expect(try outcome.failure["status"] as? Int == 401, "\(command)")
        }
        let put = try use.run(["put", "stores/people.coffer", "x", "--key", "raw+file:old"])
        #expect(put.status == 11)
        let encrypt = try use.run([
            "decrypt", "stores/people.coffer", "--yes-remove-encryption", "--key", "raw+file:old",
        ])
        #expect(encrypt.status == 11)
        listener.stop()
        // As a process leaves it that was killed.
        let socket = use.sockets.appending(path: "dead").path
        try FileManager.default.createDirectory(at: use.sockets, withIntermediateDirectories: true)
        _ = FileManager.default.createFile(atPath: socket, contents: nil)
        #expect(try use.run(check + ["raw+file:old"]).status == 11)
        try database.close()
        #expect(try use.run(check + ["raw+file:old"]).status == 0)
    }

    @Test("A fleet of 50 stores is rotated while this process writes to ten of them, and no write fails")
    func fleet() throws {
        for number in 0..<50 { try use.make("s\(number)") }
        let listener = try use.accept()
        defer { listener.stop() }
        let databases = try (0..<10).map { try use.open("s\($0 * 5)") }
        let writers = databases.map(Writer.init)
        let outcome = try use.run([
            "rotate", "stores", "--key", "raw+file:old", "--new-key", "raw+file:new", "--receipts", "receipts",
            "--json",
            "--jobs", "4",
        ])
        // Their writes of before, between and after the changes.
        for writer in writers { writer.write(3) }
        let counts = try writers.map { try $0.end() }
        #expect(outcome.status == 0, "\(outcome.errors)")
        let receipts = try outcome.objects.filter { $0["type"] as? String == "receipt" }
        #expect(receipts.count == 51 && receipts.allSatisfy { $0["outcome"] as? String == "rotated" })
        #expect(try use.run(["receipts", "verify", "receipts"]).status == 0)
        for (database, count) in zip(databases, counts) {
            #expect(try database.documentCount == 20 + count && count > 0)
            try database.close()
        }
        for number in 0..<50 {
            #expect(try !use.opens("s\(number)", "old") && use.opens("s\(number)", "new"))
        }
        let check = try use.run(["check", "stores/s0.coffer", "--key", "raw+file:new"])
        #expect(check.status == 0, "\(check.output)")
    }

    @Test("A dry run says of a store in use what a rotation would do, and a rotation resumes there, too")
    func rehearsal() throws {
        let database = try use.open("people")
        let rotate = ["rotate", "stores", "--key", "raw+file:old", "--new-key", "raw+file:new", "--json"]
        #expect(try use.run(rotate + ["--dry-run"]).status == 11)
        let listener = try use.accept()
        defer { listener.stop() }
        let dry = try use.run(rotate + ["--dry-run", "--verify"])
        #expect(try dry.status == 0 && (dry.objects[0]["outcome"] as? String) == "due", "\(dry.errors)")
        #expect(try database.keys.count == 1)
        #expect(try use.run(rotate).status == 0)
        let again = try use.run(rotate)
        #expect(try again.status == 0 && (again.objects[0]["outcome"] as? String) == "alreadyRotated")
    }

    @Test("The command serve accepts maintenance of the stores that it serves, and serves on under another key")
    func served() throws {
        try serving(
            use.work, ["--key", "raw+file:old", "--user", "robin", "--password", "file:password"],
            surroundings: use.surroundings, folder: "stores"
        ) { url in
            let curl = "curl -s --max-time 300 -u robin:$(cat password)"
            // A store is opened when it is asked for.
            #expect(try use.work.shell("\(curl) \(url)/people").output.contains("doc_count"))
            #expect(try use.run(["put", "stores/people.coffer", "x", "--key", "raw+file:old"]).status == 11)
            let rekeyed = try use.run(
                ["rekey", "stores/people.coffer", "--key", "raw+file:old", "--new-key", "raw+file:new"])
            #expect(rekeyed.status == 0, "\(rekeyed.errors)")
            #expect(try use.work.shell("\(curl) -X PUT \(url)/people/later -d '{}'").output.contains("true"))
        }
        #expect(try use.opens("people", "new") && !use.opens("people", "old"))
    }

    @Test(
        "Another user's process is not answered, even where it reaches the socket",
        .enabled(if: geteuid() == 0, "only root can act as another user"))
    func otherUser() throws {
        let database = try use.open("people")
        let listener = try use.accept()
        defer { listener.stop() }
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: use.sockets.path).first)
        for path in [use.work.folder.path, use.sockets.path] { chmod(path, 0o755) }
        let socket = use.sockets.appending(path: name).path
        chmod(socket, 0o777)
        let connect = """
            import socket, sys
            s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1])
            try: s.sendall(b"\\x01\\x00\\x00\\x00\\x00")
            except OSError: pass
            try: print(len(s.recv(1000)))
            except OSError: print(0)
            """
        try use.work.write(connect, to: "connect.py")
        chmod(use.work.folder.appending(path: "connect.py").path, 0o644)
        let asOther = try use.work.shell("setpriv --reuid 54321 --clear-groups python3 connect.py \(socket)")
        #expect(asOther.output == "0\n", "\(asOther)")
        let asRoot = try use.work.shell("python3 connect.py \(socket)")
        #expect(asRoot.output != "0\n" && asRoot.status == 0, "a control: its own user gets an error")
        _ = database
    }
}
