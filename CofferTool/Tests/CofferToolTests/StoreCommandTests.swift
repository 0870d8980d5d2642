import Foundation
import Testing

@Suite("Stores: create and info")
struct StoreCommandTests {
    let work: Workspace

    init() throws {
        work = try Workspace()
        try work.write(Workspace.key, to: "key")
    }

    @Test("A terminal is told that the store to be written is not encrypted, and scripts are not")
    func plaintextNote() throws {
        try work.coffer("create", "plain.coffer", "--unencrypted")
        try work.write("{}", to: "b.json")
        let scripted = try work.coffer("put", "plain.coffer", "a", input: "{}")
        #expect(scripted.errors.isEmpty)
        let commands = "$coffer put plain.coffer b b.json; $coffer ls plain.coffer"
        let typed = try work.shell("script -qec \"\(commands)\" /dev/null")
        #expect(typed.output.components(separatedBy: "plain.coffer is not encrypted").count == 2, "\(typed.output)")
    }

    @Test("The command create makes a store where its path says, encrypted or not")
    func create() throws {
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "sub"), withIntermediateDirectories: true)
        #expect(try work.coffer("create", "sub/people.coffer", "--key", "raw+file:key").status == 0)
        #expect(try work.coffer("ls", "sub/people.coffer/", "--key", "raw+file:key").status == 0)
        #expect(try work.coffer("create", "./notes:old.coffer", "--unencrypted").status == 0)
        #expect(try work.coffer("ls", "sub/../notes:old.coffer").status == 0)
        #expect(try work.contents(of: ".").keys.contains("notes:old.coffer/MANIFEST"))
    }

    @Test("Attachment files have names that say nothing where create was asked for that")
    func keyedNames() throws {
        let created = try work.coffer("create", "people.coffer", "--key", "raw+file:key", "--keyed-names")
        #expect(created.status == 0)
        try work.write(Data("content".utf8), to: "file")
        let attached = try work.coffer("attach", "people.coffer", "d", "a", "file", "--key", "raw+file:key")
        #expect(attached.status == 0)
        let names = try work.contents(of: "people.coffer").keys.filter { $0.hasSuffix(".blob") }
        #expect(names.count == 1)
        #expect(names.first?.split(separator: "/").last?.count == 64 + 5)
        let plain = try work.coffer("create", "plain.coffer", "--unencrypted", "--keyed-names")
        #expect(plain.status == 64)
    }

    @Test("The command create never makes a readable store by oversight")
    func neverByOversight() throws {
        for arguments in [[], ["--key", "raw+file:key", "--unencrypted"]] {
            let outcome = try CofferProcess.run(["create", "people.coffer"] + arguments, in: work.folder)
            #expect(outcome.status == 64)
            #expect(outcome.errors.contains("coffer: error: "))
        }
        #expect(try work.contents(of: ".").count == 1)
    }

    @Test(
        "The command create makes no store with a key that cannot be had",
        arguments: ["file:none", "raw+env:SHORT", "stdin"])
    func noKey(source: String) throws {
        let outcome = try work.coffer(
            "create", "people.coffer", "--key", source, surroundings: .init(environment: ["SHORT": "short"]))
        #expect(outcome.status == 13)
        #expect(try work.contents(of: ".").count == 1)
    }

    @Test("The command create leaves a store that is there as it is")
    func exists() throws {
        try work.makeStore()
        let before = try work.contents(of: "people.coffer")
        let outcome = try work.coffer("create", "people.coffer", "--json", "--unencrypted")
        #expect(outcome.status == 1)
        #expect(try outcome.failure["code"] as? String == "databaseExists")
        #expect(try outcome.failure["status"] as? Int == 412)
        #expect(try work.contents(of: "people.coffer") == before)
    }

    @Test(
        "A path that cannot be a store's is exit status 64",
        arguments: ["people", "people.coffe", ".coffer", "People.coffer", "1.coffer", "a b.coffer", ""])
    func invalidName(store: String) throws {
        #expect(try work.coffer("create", store, "--unencrypted").status == 64)
        #expect(try work.contents(of: ".").count == 1)
    }

    @Test("A path without a store, or with something else, is exit status 10, and nothing is made")
    func noStore() throws {
        try work.write("mine", to: "other.coffer/file")
        try work.write("mine", to: "file.coffer")
        for store in ["none.coffer", "other.coffer", "file.coffer", "no/such/folder.coffer"] {
            for arguments in [
                ["ls"], ["get", "a"], ["rm", "a"], ["put", "a"], ["import", "key"], ["info"],
                ["attach", "a", "b", "key"],
                ["cat", "a", "b"], ["rm", "a", "b"], ["import", "--attach", "key"],
                ["rekey", "--new-key", "file:key"], ["encrypt", "--new-key", "file:key"],
                ["decrypt", "--yes-remove-encryption"],
            ] {
                var arguments = arguments
                arguments.insert(contentsOf: [store, "--key", "raw+file:key", "--json"], at: 1)
                let outcome = try CofferProcess.run(arguments, in: work.folder, .init(input: Data("{}".utf8)))
                #expect(outcome.status == 10, "\(arguments)")
                #expect(try outcome.failure["status"] as? Int == 404)
            }
        }
        #expect(Set(try work.contents(of: ".").keys) == ["key", "other.coffer", "other.coffer/file", "file.coffer"])
    }

    @Test("The command info without a key says what can be known without one, and changes nothing")
    func info() throws {
        try work.makeStore()
        let before = try work.contents(of: "people.coffer")
        let info = try #require(try work.coffer("info", "people.coffer", "--json").objects.first)
        #expect(info["type"] as? String == "store")
        #expect(info["encrypted"] as? Bool == true)
        #expect(info["generation"] as? Int == 1)
        #expect((info["uuid"] as? String).flatMap(UUID.init) != nil)
        #expect((info["keys"] as? [Any])?.count == 1)
        #expect(info["documents"] == nil)
        #expect(try work.coffer("info", "people.coffer").output.contains("encrypted   yes\n"))
        #expect(try work.contents(of: "people.coffer") == before)
    }

    @Test("The command info with the key counts the documents, and with another it is a 401")
    func infoWithKey() throws {
        try work.makeStore()
        try work.coffer("put", "people.coffer", "a", "--key", "raw+file:key", input: "{}")
        let info = try work.coffer("info", "people.coffer", "--json", "--key", "raw+file:key")
        #expect(try info.objects.first?["documents"] as? Int == 1)
        #expect(try work.coffer("info", "people.coffer", "--key", "stdin", input: "wrong").status == 12)
    }

    @Test("The command info says of a store that everybody can read that it is one")
    func infoUnencrypted() throws {
        try work.coffer("create", "notes.coffer", "--unencrypted")
        let info = try #require(try work.coffer("info", "notes.coffer", "--json").objects.first)
        #expect(info["encrypted"] as? Bool == false)
        #expect((info["keys"] as? [Any])?.isEmpty == true)
    }
}

@Suite("Keys that do not open a store")
struct WrongKeyCommandTests {
    let work: Workspace

    init() throws {
        work = try Workspace()
        try work.makeStore()
        try work.coffer("put", "people.coffer", "a", "--key", "raw+file:key", input: "{\"name\":\"Marker\"}")
        try work.coffer("create", "notes.coffer", "--unencrypted")
        try work.coffer("put", "notes.coffer", "a", input: "{\"name\":\"Marker\"}")
        try work.write(Data(1..<33), to: "other-key")
    }

    @Test(
        "Wrong keys are a 401, exit status 12, for every command, and every byte of the store stays as it was",
        arguments: [
            ("people.coffer", "password", "wrongKey"), ("people.coffer", "bytes", "wrongKey"),
            ("people.coffer", "none", "keyRequired"), ("notes.coffer", "password", "notEncrypted"),
            ("notes.coffer", "bytes", "notEncrypted"),
        ])
    func refused(store: String, key: String, code: String) throws {
        try work.write("{}", to: "a.json")
        let options =
            ["password": ["--key", "env:KEY"], "bytes": ["--key", "raw+file:other-key"], "none": []][key] ?? []
        let before = try work.contents(of: store)
        for arguments in [
            ["ls"], ["get", "a"], ["rm", "a"], ["put", "a", "a.json"], ["import", "a.json"],
            ["attach", "a", "b", "a.json"], ["cat", "a", "b"], ["rm", "a", "b"], ["import", "--attach", "a.json"],
            ["rekey", "--new-key", "file:a.json"], ["encrypt", "--new-key", "file:a.json"],
            ["decrypt", "--yes-remove-encryption"],
        ] {
            let all = [arguments[0], store, "--json"] + options + arguments.dropFirst()
            try check(all)
        }
        for arguments in [
            ["list"], ["add", "--new-key", "file:a.json"], ["replace", "--new-key", "file:a.json"],
            ["remove", "0123456789abcdef"],
        ] {
            try check(["key", arguments[0], store, "--json"] + options + arguments.dropFirst())
        }

        func check(_ arguments: [String]) throws {
            let outcome = try CofferProcess.run(arguments, in: work.folder, .init(environment: ["KEY": "swordfish"]))
            #expect(outcome.status == 12, "\(arguments)")
            #expect(outcome.output.isEmpty)
            #expect(try outcome.failure["status"] as? Int == 401)
            #expect(try outcome.failure["code"] as? String == code)
            #expect(!outcome.errors.contains("swordfish"))
            #expect(try work.contents(of: store) == before, "\(arguments)")
        }
    }
}

@Suite("The command line")
struct CommandLineTests {
    let work: Workspace

    init() throws {
        work = try Workspace()
    }

    @Test(
        "A command line that makes no sense is exit status 64, with a hint, and JSON where that was asked for",
        arguments: [
            [], ["unknown"], ["get"], ["get", "a.coffer"], ["get", "a.coffer", "b", "c"],
            ["ls", "a.coffer", "--kee", "x"],
        ])
    func usage(arguments: [String]) throws {
        let outcome = try CofferProcess.run(arguments, in: work.folder)
        #expect(outcome.status == 64)
        #expect(outcome.output.isEmpty)
        #expect(outcome.errors.hasPrefix("coffer: error: "))
        #expect(outcome.errors.contains("\ncoffer: hint: "))
        let json = try CofferProcess.run(arguments + ["--json"], in: work.folder)
        #expect(json.status == 64)
        #expect(try json.failure["type"] as? String == "error")
        #expect(try json.failure["code"] as? String == "invalidArgument")
        #expect(try json.failure["exit"] as? Int == 64)
    }

    @Test(
        "Help and version are results, on standard output",
        arguments: [["--help"], ["help"], ["help", "get"], ["get", "--help"], ["--version"]])
    func help(arguments: [String]) throws {
        let outcome = try CofferProcess.run(arguments, in: work.folder)
        #expect(outcome.status == 0)
        #expect(!outcome.output.isEmpty)
        #expect(outcome.errors.isEmpty)
    }

    @Test("Results that cannot be written are a failure")
    func fullOutput() throws {
        try work.makeStore()
        try work.coffer("put", "people.coffer", "a", "--key", "raw+file:key", input: "{}")
        let shell = Process()
        shell.executableURL = URL(filePath: "/bin/sh")
        shell.currentDirectoryURL = work.folder
        shell.arguments = [
            "-c", "'\(CofferProcess.executable.path)' ls people.coffer --key raw+file:key >/dev/full 2>/dev/null",
        ]
        try shell.run()
        shell.waitUntilExit()
        #expect(shell.terminationStatus == 28)
    }
}
