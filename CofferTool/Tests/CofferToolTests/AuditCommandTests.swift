import Coffer
import Foundation
import Testing

@Suite("Auditing stores")
struct AuditCommandTests {
    let work: Workspace

    init() throws {
        work = try Workspace()
        try work.write("a password that is long", to: "password")
        try work.write(Workspace.key, to: "key")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        #expect(try work.coffer("create", "stores/password.coffer", "--key", "file:password").status == 0)
        #expect(try work.coffer("create", "stores/bytes.coffer", "--key", "raw+file:key").status == 0)
        #expect(try work.coffer("create", "stores/plain.coffer", "--unencrypted").status == 0)
    }

    private var folder: URL { work.folder.appending(path: "stores", directoryHint: .isDirectory) }

    private func audit(_ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(["audit", "stores", "--json"] + arguments, in: work.folder)
    }

    private func store(_ name: String, in outcome: CofferProcess.Outcome) throws -> [String: Any] {
        try #require(try outcome.objects.first { $0["path"] as? String == "stores/\(name).coffer" })
    }

    @Test("An audit says what is known without a key, and changes no byte")
    func facts() throws {
        let before = try work.contents(of: "stores")
        let outcome = try audit()
        #expect(outcome.status == 0 && outcome.errors.isEmpty)
        #expect(try work.contents(of: "stores") == before)
        let (password, plain) = (try store("password", in: outcome), try store("plain", in: outcome))
        #expect(password["encrypted"] as? Bool == true && password["engine"] as? String == "SQLCipher")
        #expect(plain["encrypted"] as? Bool == false && plain["engine"] as? String == "SQLite")
        let info = try Manager(directory: folder).storeInfo(named: "password")
        #expect(password["uuid"] as? String == info.storeUUID.uuidString.lowercased())
        #expect(password["generation"] as? Int == 1 && password["dataKeyDays"] as? Int == 0)
        #expect(plain["dataKeyDays"] == nil && plain["dataKeyCreated"] == nil)
        #expect((password["keys"] as? [[String: Any]])?.map { $0["id"] as? String } == info.keySlots.map(\.id))
        #expect((password["databaseBytes"] as? Int ?? 0) > 0 && password["contentBytes"] as? Int == 0)
        #expect(password["writable"] as? Bool == true)
        #expect(
            (password["openIn"] as? [Any])?.isEmpty == true && (password["oldGenerations"] as? [Any])?.isEmpty == true)
        let summary = try #require(try outcome.objects.last)
        #expect(
            summary["stores"] as? Int == 3 && summary["encrypted"] as? Int == 2 && summary["violating"] as? Int == 0)
    }

    @Test("An audit ends with 3 and names the stores that are not as the options ask")
    func policies() throws {
        let outcome = try audit(
            "--encrypted", "--weaker-than", "scrypt:1073741824:8:1", "--older-than", "1d", "--quiet")
        #expect(outcome.status == 3)
        #expect(try outcome.failure["code"] as? String == "policyNotMet")
        #expect(try outcome.objects.count == 3)
        #expect(try store("plain", in: outcome)["violations"] as? [String] == ["notEncrypted"])
        #expect(try store("password", in: outcome)["violations"] as? [String] == ["tooWeak"])
        let summary = try #require(try outcome.objects.last)
        #expect(summary["violating"] as? Int == 2 && summary["tooOld"] as? Int == 0 && summary["tooWeak"] as? Int == 1)
        #expect(
            try audit("--weaker-than", "scrypt:2:1:1", "--weaker-than", "pbkdf2:10000000", "--older-than", "1h").status
                == 0)
    }

    @Test("An audit knows a data key's age, whatever became of its keys since")
    func ages() throws {
        // A second passes: with 0h whatever is older than none is too old.
        Thread.sleep(forTimeInterval: 1.1)
        let outcome = try audit("--older-than", "0h")
        #expect(outcome.status == 3)
        #expect(try store("bytes", in: outcome)["violations"] as? [String] == ["tooOld"])
        #expect(try store("plain", in: outcome)["violations"] as? [String] == [])
        #expect(try audit("--older-than", "4w").status == 0)
    }

    @Test("An audit says who has a store open", .enabled(if: FileManager.default.fileExists(atPath: "/proc/locks")))
    func holders() throws {
        var options = DatabaseOptions()
        options.encryptionKey = try SymmetricKey(data: Workspace.key)
        let database = try Manager(directory: folder).openDatabase(named: "bytes", options: options)
        let outcome = try audit()
        #expect(outcome.status == 0)
        let holders = try #require(try store("bytes", in: outcome)["openIn"] as? [[String: Any]])
        #expect(holders.count == 1)
        #expect(holders.first?["pid"] as? Int == Int(getpid()))
        #expect((holders.first?["command"] as? String)?.isEmpty == false)
        #expect((try store("password", in: outcome)["openIn"] as? [Any])?.isEmpty == true)
        #expect(try outcome.objects.last?["open"] as? Int == 1)
        try database.close()
        #expect((try store("bytes", in: audit())["openIn"] as? [Any])?.isEmpty == true)
    }

    @Test("An audit says what is left of an old generation, and how large that is")
    func leftovers() throws {
        let name = "g" + String(repeating: "0", count: 15) + "9-" + String(repeating: "a", count: 16)
        try work.write(Data(count: 12_345), to: "stores/bytes.coffer/\(name)/db.sqlite3")
        let outcome = try audit()
        let left = try #require(try store("bytes", in: outcome)["oldGenerations"] as? [[String: Any]])
        #expect(left.count == 1 && left[0]["bytes"] as? Int == 12_345)
        #expect((left[0]["path"] as? String)?.hasSuffix(name) == true)
        #expect(try outcome.objects.last?["oldGenerationsLeft"] as? Int == 1)
    }

    @Test("An audit looks into nested folders when told so, and otherwise says that it didn't")
    func nestedFolders() throws {
        try FileManager.default.createDirectory(at: folder.appending(path: "inner"), withIntermediateDirectories: true)
        #expect(try work.coffer("create", "stores/inner/deep.coffer", "--unencrypted").status == 0)
        let flat = try audit("--encrypted")
        #expect(try flat.objects.last?["stores"] as? Int == 3)
        #expect(try flat.objects.last?["passedOver"] as? [String] == ["stores/inner"])
        #expect(flat.errors.contains("stores/inner: skipped: a folder; --recursive looks into it"))
        let nested = try audit("--encrypted", "--recursive")
        #expect(try nested.objects.last?["stores"] as? Int == 4)
        #expect(try nested.objects.last?["passedOver"] as? [String] == [])
        #expect(try store("inner/deep", in: nested)["violations"] as? [String] == ["notEncrypted"])
    }

    @Test("An audit names what can't be read, and goes on")
    func unreadable() throws {
        try work.write("no manifest", to: "stores/broken.coffer/MANIFEST")
        try FileManager.default.createDirectory(
            at: folder.appending(path: "empty.coffer"), withIntermediateDirectories: true)
        let outcome = try audit()
        #expect(outcome.status == 3)
        #expect(try store("broken", in: outcome)["code"] as? String == "damaged")
        #expect(try store("empty", in: outcome)["code"] as? String == "notAStore")
        #expect(try outcome.objects.last?["unreadable"] as? Int == 2 && outcome.objects.last?["stores"] as? Int == 5)
        #expect(try work.coffer("audit", "stores/empty.coffer").status == 10)
    }

    @Test(
        "An audit takes no option that makes no sense",
        arguments: [
            ["--older-than", "90"], ["--older-than", "-1d"], ["--older-than", "xd"], ["--weaker-than", "scrypt:1"],
            ["--weaker-than", "pbkdf2:0"], ["--weaker-than", "md5:1"], ["--weaker-than", "scrypt:1:2:x"],
        ])
    func usage(arguments: [String]) throws {
        let outcome = try CofferProcess.run(["audit", "stores"] + arguments, in: work.folder)
        #expect(outcome.status == 64)
        #expect(outcome.output.isEmpty)
    }
}
