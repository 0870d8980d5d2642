import Foundation
import Testing

@Suite("Reading keys")
struct KeyReadingTests {
    let work: Workspace

    /// The key of `people.coffer` in these tests, as 64 digits.
    private let hex = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

    init() throws {
        work = try Workspace()
        try work.write(hex + "\n", to: "hex")
        #expect(try work.coffer("create", "people.coffer", "--key", "hex+file:hex").status == 0)
    }

    private func list(_ source: String, _ surroundings: CofferProcess.Surroundings = .init()) throws
        -> CofferProcess.Outcome
    {
        try work.coffer("ls", "people.coffer", "--json", "--key", source, surroundings: surroundings)
    }

    @Test("Every kind of source yields the same key to the command")
    func sources() throws {
        let digits = Data(hex.utf8)
        #expect(try list("hex+file:hex").status == 0)
        #expect(try list("hex+env:KEY", .init(environment: ["KEY": hex])).status == 0)
        #expect(try list("hex+stdin", .init(input: digits)).status == 0)
        #expect(try list("hex+fd:0", .init(input: digits)).status == 0)
        #expect(try list("hex+fd:7", .init(descriptors: [7: digits])).status == 0)
        #expect(try list("hex+cmd:cat hex").status == 0)
        #expect(
            try list("hex+cmd:printf %s $KEY", .init(environment: ["KEY": hex, "PATH": "/usr/bin:/bin"])).status == 0)
        let credentials = ["CREDENTIALS_DIRECTORY": work.folder.path(percentEncoded: false)]
        #expect(try list("hex+credential:hex", .init(environment: credentials)).status == 0)
        #expect(try list("hex+credential:./hex", .init(environment: credentials)).status == 13)
        let bytes = Data(stride(from: 0, to: 64, by: 2).map { UInt8(hex.dropFirst($0).prefix(2), radix: 16) ?? 0 })
        #expect(try list("raw+stdin", .init(input: bytes)).status == 0)
        #expect(try list("base64+stdin", .init(input: bytes.base64EncodedData())).status == 0)
    }

    @Test("Another key from the same kind of source is a 401, exit status 12")
    func otherKey() throws {
        let other = hex.replacing("00", with: "01")
        let outcome = try list("hex+env:KEY", .init(environment: ["KEY": other]))
        #expect(outcome.status == 12)
        #expect(outcome.output.isEmpty)
        #expect(try outcome.failure["status"] as? Int == 401)
        #expect(try outcome.failure["code"] as? String == "wrongKey")
    }

    @Test(
        "A key source that is missing is exit status 13",
        arguments: [
            "file:none", "file:.", "env:NONE", "fd:97", "cmd:exit 3", "cmd:kill -9 $$", "cmd:no-such-command", "prompt",
            "credential:hex", "keyring:coffer-no-such-key",
        ])
    func missingSource(source: String) throws {
        let outcome = try list(source)
        #expect(outcome.status == 13)
        #expect(try outcome.failure["code"] as? String == "keyUnavailable")
        #expect(try outcome.failure["status"] as? Int == 400)
    }

    @Test(
        "A key source whose bytes are no key is exit status 13, and they are not repeated",
        arguments: ["", "hex+", "raw+"])
    func unusableBytes(prefix: String) throws {
        let secret = prefix.isEmpty ? "\u{FF}hunter2" : "hunter2"
        let input = prefix.isEmpty ? Data([0xFF]) + Data("hunter2".utf8) : Data(secret.utf8)
        for surroundings in [CofferProcess.Surroundings(input: input), .init()] {
            let outcome = try list(prefix + "stdin", surroundings)
            #expect(outcome.status == 13)
            #expect(try outcome.failure["code"] as? String == "invalidKey")
            #expect(!outcome.errors.contains("hunter2"))
        }
    }

    @Test("A key source without an end is given up, not read for ever")
    func endless() throws {
        #expect(try list("file:/dev/zero").status == 13)
        #expect(try list("cmd:cat /dev/zero").status == 13)
    }

    @Test(
        "An argument that only looks like a key source is exit status 64 and not repeated",
        arguments: ["hunter2", "pass:hunter2", "hex+hunter2"])
    func notASource(source: String) throws {
        let outcome = try list(source)
        #expect(outcome.status == 64)
        #expect(outcome.output.isEmpty)
        #expect(!outcome.errors.contains("hunter2"))
    }

    @Test(
        "A secret in the place of a file's path or a variable's name is not repeated",
        arguments: [
            "env:hunter2", "file:hunter2", "env:hunter2 and more", "hex+env:00ff",
            "hex+env:\(String(repeating: "00FF", count: 4))",
            "env:HUNTER2HUNTER2HUNTER2HUNTER2HUNTER2", "file:none/hunter2",
            "credential:hunter2", "keyring:hunter2",
        ])
    func secretAsName(source: String) throws {
        let outcome = try list(source)
        #expect(outcome.status == 13)
        #expect(!outcome.errors.lowercased().contains("hunter2") && !outcome.errors.lowercased().contains("00ff"))
    }

    @Test("Messages name a variable, and a path that leads somewhere")
    func namedSource() throws {
        let variable = try list("env:COFFER_KEY_2").errors
        #expect(variable.contains("COFFER_KEY_2"))
        let folder = try list("file:.").errors
        #expect(folder.contains("."))
    }

    @Test("A key command that goes on is ended with the process that asked it", .timeLimit(.minutes(30)))
    func interruptedCommand() throws {
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "stores"), withIntermediateDirectories: true)
        #expect(try work.coffer("create", "stores/a.coffer", "--key", "hex+file:hex").status == 0)
        for command in ["exec sleep 1000", "trap '' TERM; echo $PPID; exec >&-; while :; do sleep 1; done"] {
            let outcome = try CofferProcess.run(
                ["rotate", "stores", "--key", "cmd:\(command)", "--new-key", "hex+file:hex"], in: work.folder
            ) { process in
                Thread.sleep(forTimeInterval: 0.5)
                kill(process, SIGTERM)
            }
            #expect(outcome.status == 130, "\(outcome.errors)")
        }
    }

    @Test("COFFER_KEY_SOURCE names the source where --key doesn't, and never a key")
    func sourceOfEnvironment() throws {
        func run(_ arguments: String..., source: String) throws -> CofferProcess.Outcome {
            try CofferProcess.run(
                arguments + ["--json"], in: work.folder, .init(environment: ["COFFER_KEY_SOURCE": source]))
        }
        #expect(try run("ls", "people.coffer", source: "hex+file:hex").status == 0)
        #expect(try run("ls", "people.coffer", "--key", "file:hex", source: "hex+file:hex").status == 12)
        #expect(try run("ls", "people.coffer", source: "").status == 12)
        let secret = try run("ls", "people.coffer", source: "hunter2")
        #expect(secret.status == 64 && !secret.errors.contains("hunter2"))
        #expect(try secret.failure["message"] as? String == "COFFER_KEY_SOURCE: this is not a key source")
        #expect(try run("create", "made.coffer", source: "hex+file:hex").status == 0)
        #expect(try list("hex+file:hex", .init()).status == 0)
        // It asks for encryption, as --key does, but where none is asked for or there can't be any yet.
        #expect(try run("create", "plain.coffer", "--unencrypted", source: "hex+file:hex").status == 0)
        #expect(try run("ls", "plain.coffer", source: "hex+file:hex").status == 12)
        #expect(try run("info", "plain.coffer", source: "hex+file:hex").status == 0)
        #expect(try run("encrypt", "plain.coffer", "--new-key", "hex+file:hex", source: "hex+file:hex").status == 0)
        #expect(try run("ls", "plain.coffer", source: "hex+file:hex").status == 0)
    }

    @Test("A profile names the key sources for stores by path and name, where nothing else does")
    func profile() throws {
        try work.write(
            """
            # who matches first

            other.coffer \t file:none
            */people.coffer  hex+file:hex
            *.coffer  file:none

            """, to: "config/coffer/profile")
        func run(_ arguments: String..., environment: [String: String]) throws -> CofferProcess.Outcome {
            try CofferProcess.run(arguments + ["--json"], in: work.folder, .init(environment: environment))
        }
        let config = ["XDG_CONFIG_HOME": work.folder.appending(path: "config").path(percentEncoded: false)]
        #expect(try run("ls", "people.coffer", environment: config).status == 0)
        #expect(try run("create", "other.coffer", environment: config).status == 13)
        #expect(try run("ls", "people.coffer", "--key", "file:none", environment: config).status == 13)
        #expect(
            try run("ls", "people.coffer", environment: config.merging(["COFFER_KEY_SOURCE": "file:none"]) { $1 })
                .status == 13)
        #expect(try run("ls", "people.coffer", environment: config.merging(["COFFER_PROFILE": ""]) { $1 }).status == 12)
        #expect(try run("ls", "people.coffer", environment: ["COFFER_PROFILE": "config/coffer/profile"]).status == 0)
        #expect(try run("ls", "people.coffer", environment: ["COFFER_PROFILE": "config/none"]).status == 13)
    }

    @Test("A profile that others can write, or with a line that names no source, is refused and not repeated")
    func refusedProfile() throws {
        func list() throws -> CofferProcess.Outcome {
            try CofferProcess.run(
                ["ls", "people.coffer", "--json"], in: work.folder, .init(environment: ["COFFER_PROFILE": "profile"]))
        }
        for line in ["*.coffer hunter2", "hunter2", "*.coffer"] {
            try work.write("# one\n\(line)\n", to: "profile")
            let outcome = try list()
            #expect(outcome.status == 13 && !outcome.errors.contains("hunter2"), "\(outcome.errors)")
            #expect(outcome.errors.contains("profile:2: "))
        }
        try work.write("*.coffer hex+file:hex\n", to: "profile")
        #expect(try list().status == 0)
        #expect(chmod(work.folder.path + "/profile", 0o622) == 0)
        #expect(try list().status == 13)
    }

    @Test("A missing key without a terminal is a 401 that says how to give one")
    func noKey() throws {
        let outcome = try work.coffer("ls", "people.coffer")
        #expect(outcome.status == 12)
        #expect(outcome.errors.contains("coffer: error: "))
        #expect(outcome.errors.contains("(401)"))
        #expect(outcome.errors.contains("coffer: hint: "))
        #expect(outcome.errors.contains("file:PATH"))
    }

    @Test("Standard input is not both the key and the document")
    func standardInputTwice() throws {
        for source in ["hex+stdin", "hex+fd:0"] {
            #expect(try work.coffer("put", "people.coffer", "a", "--key", source, input: hex).status == 64)
            #expect(try work.coffer("put", "people.coffer", "a", "-", "--key", source, input: hex).status == 64)
        }
        try work.write("{}", to: "a.json")
        #expect(try work.coffer("put", "people.coffer", "a", "a.json", "--key", "hex+stdin", input: hex).status == 0)
    }
}

@Suite("Asking for keys at a terminal")
struct PromptTests {
    let work: Workspace
    let terminal: FakeTerminal

    init() throws {
        work = try Workspace()
        terminal = try FakeTerminal()
    }

    /// Runs `coffer` at the terminal and types each answer when it is asked for.
    private func coffer(_ arguments: String..., typing answers: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments, in: work.folder, .init(terminal: terminal)) { _ in
            for answer in answers {
                try terminal.wait(for: ": ")
                terminal.type(answer)
            }
        }
    }

    @Test("The prompt asks for a new key twice, for an old one once, and does not show what is typed")
    func prompts() throws {
        #expect(try coffer("create", "people.coffer", typing: "swordfish\n", "swordfish\n").status == 0)
        #expect(terminal.shown.contains("people.coffer"))
        #expect(try coffer("put", "people.coffer", "a", "--key", "prompt", typing: "swordfish\n").status == 1)
        let outcome = try coffer("ls", "people.coffer", typing: "swordfish\n")
        #expect(outcome.status == 0)
        #expect(outcome.errors.isEmpty)
        #expect(try coffer("ls", "people.coffer", typing: "swordfisH\n").status == 12)
        #expect(!terminal.shown.contains("swordfis"))
    }

    @Test("Two entries that differ are no key, and nothing is made")
    func mismatch() throws {
        let outcome = try coffer("create", "people.coffer", "--key", "prompt", typing: "swordfish\n", "swordfisH\n")
        #expect(outcome.status == 13)
        #expect(try work.contents(of: ".").isEmpty)
    }

    @Test("The prompt is never shown for a store that has no key")
    func unencrypted() throws {
        #expect(try work.coffer("create", "notes.coffer", "--unencrypted").status == 0)
        #expect(try coffer("ls", "notes.coffer").status == 0)
        #expect(terminal.shown.isEmpty)
    }

    @Test("^C at the prompt ends with 130, makes nothing, and typing is shown again")
    func interrupted() throws {
        let outcome = try coffer("create", "people.coffer", typing: "sword\u{3}")
        #expect(outcome.status == 130)
        #expect(try work.contents(of: ".").isEmpty)
        #expect(terminal.showsTyping)
    }

    @Test("A process that is stopped at the prompt asks again when it goes on, and hides what is typed")
    func stopped() throws {
        try work.write(Data("swordfish".utf8), to: "password")
        #expect(try work.coffer("create", "people.coffer", "--key", "file:password").status == 0)
        let outcome = try CofferProcess.run(["ls", "people.coffer"], in: work.folder, .init(terminal: terminal)) {
            process in
            try terminal.wait(for: ": ")
            #expect(!terminal.showsTyping)
            terminal.type("sword")
            // Nobody is there to wake up a session's first process, so the system lets it go on at once.
            terminal.type("\u{1A}")
            try terminal.wait(for: ": ")
            // A shell shows what is typed while a job of its is stopped.
            kill(process, SIGSTOP)
            terminal.showTyping()
            kill(process, SIGCONT)
            try terminal.wait(for: ": ")
            #expect(eventually { !terminal.showsTyping })
            terminal.type("swordfish\n")
        }
        #expect(outcome.status == 0)
        #expect(terminal.showsTyping)
        #expect(!terminal.shown.contains("sword"))
    }

    @Test("What is typed is shown again after a prompt")
    func echo() throws {
        #expect(try coffer("create", "people.coffer", typing: "swordfish\n", "other\n").status == 13)
        #expect(terminal.showsTyping)
    }

    @Test("Progress is shown on a terminal, and nowhere else")
    func progress() throws {
        try work.makeStore()
        try work.write("[{\"_id\":\"a\"},{\"_id\":\"b\"}]", to: "a.json")
        try work.write("[{\"_id\":\"c\"}]", to: "b.json")
        let shown = CofferProcess.Surroundings(terminal: terminal, showsErrorsOnTerminal: true)
        let arguments = ["import", "people.coffer", "--key", "raw+file:key"]
        let first = try CofferProcess.run(arguments + ["a.json"], in: work.folder, shown) { _ in
            try terminal.wait(for: "1 document")
        }
        #expect(first.status == 0)
        #expect(first.output == "2 documents from 1 file\n")
        let second = try CofferProcess.run(arguments + ["b.json"], in: work.folder)
        #expect(second.status == 0)
        #expect(second.output == "1 document from 1 file\n")
        #expect(second.errors.isEmpty)
    }
}
