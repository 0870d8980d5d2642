import Foundation
import Testing

@Suite("Keys of a store: key list, add, remove, replace and generate")
struct KeyCommandTests {
    let work: Workspace
    private let passwords = CofferProcess.Surroundings(
        environment: ["A": "the first", "B": "the second", "C": "the third"])

    init() throws {
        work = try Workspace()
        try work.makeStore()
    }

    private func coffer(_ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments, in: work.folder, passwords)
    }

    /// The status of opening the store by the key in `source`.
    private func status(opening source: String) throws -> Int32 {
        try coffer("ls", "people.coffer", "--key", source).status
    }

    private func add(_ source: String, _ label: String...) throws -> CofferProcess.Outcome {
        let options = label.isEmpty ? [] : ["--label", label[0]]
        return try CofferProcess.run(
            ["key", "add", "people.coffer", "--key", "raw+file:key", "--new-key", source] + options, in: work.folder,
            passwords)
    }

    @Test("A key is added, listed with its label, opens the store, and is removed")
    func addAndRemove() throws {
        let added = try add("env:A", "Robin's")
        #expect(added.status == 0)
        #expect(added.errors.isEmpty)
        let id = try #require(added.lines.first)
        #expect(id.count == 16)
        #expect(try status(opening: "env:A") == 0)

        let list = try coffer("key", "list", "people.coffer", "--key", "env:A")
        #expect(list.status == 0)
        #expect(list.lines.count == 2)
        #expect(list.lines[0].hasPrefix("  ") && list.lines[0].hasSuffix("  32 bytes"))
        #expect(list.lines[1].hasPrefix("* \(id)  ") && list.lines[1].hasSuffix("r=8 p=2  Robin's"))
        let objects = try coffer("key", "list", "people.coffer", "--key", "raw+file:key", "--json").objects
        #expect(objects.map { $0["current"] as? Bool } == [true, false])
        #expect(objects.map { $0["label"] as? String } == [nil, "Robin's"])
        #expect(objects.map { $0["type"] as? String } == ["key", "key"])
        #expect(objects[1]["id"] as? String == id)

        let info = try coffer("info", "people.coffer", "--key", "env:A")
        #expect(info.output.contains("key       * \(id)  "))
        #expect(info.output.contains("  Robin's\n"))
        #expect(try coffer("info", "people.coffer").output.contains("key         \(id)  "))
        #expect(try !coffer("info", "people.coffer").output.contains("Robin"))

        // Also by the key that goes.
        let removed = try coffer("key", "remove", "people.coffer", id, "--key", "env:A", "--json")
        #expect(removed.status == 0)
        #expect(try removed.objects.first?["removed"] as? Bool == true)
        #expect(try status(opening: "env:A") == 12)
        #expect(try status(opening: "raw+file:key") == 0)
        #expect(try coffer("key", "list", "people.coffer", "--key", "raw+file:key").lines.count == 1)
    }

    @Test("The command key replace puts one key in the place of another, under its label")
    func replace() throws {
        let id = try #require(try add("env:A", "machine").lines.first)
        let replaced = try coffer(
            "key", "replace", "people.coffer", id, "--key", "raw+file:key", "--new-key", "env:B", "--json")
        #expect(replaced.status == 0)
        #expect(try replaced.objects.first?["label"] as? String == "machine")
        #expect(try status(opening: "env:A") == 12)
        #expect(try status(opening: "env:B") == 0)

        let own = try coffer(
            "key", "replace", "people.coffer", "--key", "env:B", "--new-key", "env:C", "--label", "mine")
        #expect(own.status == 0)
        #expect(try status(opening: "env:B") == 12)
        let list = try coffer("key", "list", "people.coffer", "--key", "env:C", "--json").objects
        #expect(list.map { $0["label"] as? String } == [nil, "mine"])
        #expect(list[1]["id"] as? String == own.lines.first)
    }

    @Test("The last key stays, a ninth is refused, and so is one that opens the store already")
    func refused() throws {
        let only = try #require(
            try coffer("key", "list", "people.coffer", "--key", "raw+file:key", "--json").objects.first?["id"]
                as? String)
        func fails(_ outcome: CofferProcess.Outcome, _ code: String, _ status: Int) throws {
            #expect(outcome.status == 1)
            #expect(outcome.output.isEmpty)
            #expect(try outcome.failure["code"] as? String == code)
            #expect(try outcome.failure["status"] as? Int == status)
        }
        let before = try work.contents(of: "people.coffer")
        try fails(
            coffer("key", "remove", "people.coffer", only, "--key", "raw+file:key", "--json"), "conflict", 409)
        for id in ["0123456789abcdef", "x", ""] {
            let arguments = ["people.coffer", id, "--key", "raw+file:key", "--json"]
            try fails(
                CofferProcess.run(["key", "remove"] + arguments, in: work.folder, passwords), "invalidArgument", 400)
            try fails(
                CofferProcess.run(
                    ["key", "replace"] + arguments + ["--new-key", "env:A"], in: work.folder, passwords),
                "invalidArgument", 400)
        }
        try fails(
            coffer(
                "key", "add", "people.coffer", "--key", "raw+file:key", "--new-key", "raw+file:key", "--json"),
            "conflict", 409)
        let long = String(repeating: "x", count: 201)
        try fails(
            coffer(
                "key", "add", "people.coffer", "--key", "raw+file:key", "--new-key", "env:A", "--label", long, "--json"
            ), "invalidArgument", 400)
        #expect(try work.contents(of: "people.coffer") == before)

        for number in 1...7 {
            try work.write(Data(repeating: UInt8(number), count: 32), to: "key\(number)")
            #expect(try add("raw+file:key\(number)").status == 0)
        }
        try fails(
            coffer("key", "add", "people.coffer", "--key", "raw+file:key", "--new-key", "env:A", "--json"),
            "conflict", 409)
        #expect(try coffer("info", "people.coffer", "--json").objects.first?["keys"].map { ($0 as? [Any])?.count } == 8)
    }

    @Test("Commands of keys without a new key, or with two on standard input, are exit status 64 and change nothing")
    func usage() throws {
        let before = try work.contents(of: "people.coffer")
        for arguments in [
            ["key"], ["key", "unknown"], ["key", "add"], ["key", "add", "people.coffer", "--key", "raw+file:key"],
            ["key", "replace", "people.coffer", "--key", "raw+file:key"], ["key", "remove", "people.coffer"],
            ["key", "add", "people.coffer", "--key", "stdin", "--new-key", "fd:0"],
            ["key", "add", "people.coffer", "--key", "raw+file:key", "--new-key", "swordfish"],
            ["rekey", "people.coffer", "--key", "raw+file:key"],
            ["rekey", "people.coffer", "--key", "raw+file:key", "--new-key", "stdin", "--keep-key", "hex+stdin"],
        ] {
            let outcome = try CofferProcess.run(arguments, in: work.folder)
            #expect(outcome.status == 64, "\(arguments)")
            #expect(outcome.errors.hasPrefix("coffer: error: "))
            #expect(!outcome.errors.contains("swordfish"))
        }
        #expect(try work.contents(of: "people.coffer") == before)
    }

    @Test(
        "A new key that can't be had or is unusable is exit status 13, and nothing is changed",
        arguments: ["file:none", "env:NONE", "hex+env:A", "env:EMPTY", "cmd:exit 1"])
    func noNewKey(source: String) throws {
        let before = try work.contents(of: "people.coffer")
        for command in [["key", "add"], ["key", "replace"], ["rekey"]] {
            let outcome = try CofferProcess.run(
                command + ["people.coffer", "--key", "raw+file:key", "--new-key", source], in: work.folder,
                .init(environment: ["PATH": "/usr/bin:/bin", "A": "first", "EMPTY": ""]))
            #expect(outcome.status == 13, "\(command)")
        }
        #expect(try work.contents(of: "people.coffer") == before)
    }

    @Test("The command key add asks for the new key twice on a terminal, after the old one has opened the store")
    func prompted() throws {
        let terminal = try FakeTerminal()
        let outcome = try CofferProcess.run(
            ["key", "add", "people.coffer", "--key", "raw+file:key"], in: work.folder, .init(terminal: terminal)
        ) { _ in
            for prompt in ["New key of people.coffer: ", "The same again: "] {
                try terminal.wait(for: prompt)
                terminal.type("the first\n")
            }
        }
        #expect(outcome.status == 0)
        #expect(try status(opening: "env:A") == 0)

        let refused = try CofferProcess.run(
            ["key", "add", "people.coffer", "--key", "env:C"], in: work.folder,
            .init(environment: ["C": "third"], terminal: try FakeTerminal()))
        #expect(refused.status == 12)
    }

    @Test("A store that isn't encrypted has no keys, and none is added")
    func unencrypted() throws {
        try work.coffer("create", "notes.coffer", "--unencrypted")
        let list = try coffer("key", "list", "notes.coffer")
        #expect(list.status == 0)
        #expect(list.output.isEmpty)
        #expect(list.errors.contains("not encrypted"))
        let outcome = try coffer("key", "add", "notes.coffer", "--new-key", "env:A", "--json")
        #expect(outcome.status == 12)
        #expect(try outcome.failure["code"] as? String == "notEncrypted")
    }

    @Test("The command key generate writes 64 digits that open a store, into a new file that only its owner can read")
    func generate() throws {
        let printed = try coffer("key", "generate")
        #expect(printed.status == 0)
        #expect(printed.output.wholeMatch(of: /[0-9a-f]{64}\n/) != nil)
        #expect(try coffer("key", "generate").output != printed.output)
        #expect((try coffer("key", "generate", "--json").objects.first?["hex"] as? String)?.count == 64)

        let written = try coffer("key", "generate", "new-key")
        #expect(written.status == 0)
        #expect(written.output.isEmpty)
        let path = work.folder.appending(path: "new-key").path(percentEncoded: false)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        let content = try String(contentsOfFile: path, encoding: .utf8)
        #expect(content.wholeMatch(of: /[0-9a-f]{64}\n/) != nil)
        #expect(try coffer("key", "generate", "new-key").status == 1)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == content)
        #expect(try coffer("key", "generate", "no/folder").status == 1)

        #expect(try add("hex+file:new-key").status == 0)
        #expect(try status(opening: "hex+file:new-key") == 0)
    }
}
