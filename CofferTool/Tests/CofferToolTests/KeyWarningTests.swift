import Foundation
import Testing

/// A password of three letters, a key of zeros, a hex key without `hex+` and a key file that everybody could read were all
/// taken without a word.
@Suite("Warnings of weak new keys")
struct KeyWarningTests {
    let work: Workspace

    private static let hex = String(repeating: "5a", count: 32)
    private static let sources = [
        ("hexDigitsAsPassword", "env:HEX"), ("shortPassword", "env:SHORT"), ("zeroKey", "raw+file:zeros"),
        ("zeroKey", "hex+env:ZEROS"), ("sharedKeyFile", "raw+file:shared"), ("sharedKeyFile", "raw+file:written"),
    ]
    /// The commands that set a key, each without the source of the new one, which comes last.
    private static let commands = [
        ["create", "new.coffer", "--key"],
        ["key", "add", "people.coffer", "--key", "raw+file:key", "--new-key"],
        ["key", "replace", "people.coffer", "--key", "raw+file:key", "--new-key"],
        ["rekey", "people.coffer", "--key", "raw+file:key", "--new-key"],
        ["rotate", "people.coffer", "--key", "raw+file:key", "--new-key"],
        ["encrypt", "plain.coffer", "--new-key"],
        ["backup", "people.coffer", "copy.coffer", "--key", "raw+file:key", "--new-key"],
        ["salvage", "people.coffer", "copy.coffer", "--key", "raw+file:key", "--new-key"],
    ]

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        #expect(try work.coffer("create", "plain.coffer", "--unencrypted").status == 0)
        try work.write(Data(count: 32), to: "zeros")
        for (name, mode) in [("shared", 0o640), ("written", 0o602)] {
            try work.write(Data(2..<34), to: name)
            chmod(work.folder.appending(path: name).path, mode_t(mode))
        }
    }

    private func run(_ arguments: [String]) throws -> CofferProcess.Outcome {
        let environment = [
            "PATH": "/usr/bin:/bin", "HEX": Self.hex, "SHORT": "abcdéfg", "LONG": "abcdéfgh",
            "ZEROS": String(repeating: "0", count: 64),
        ]
        return try CofferProcess.run(arguments, in: work.folder, .init(environment: environment))
    }

    @Test("Each command that sets a key warns of a weak one, does what was asked, and shows nothing of the key")
    func warnings() throws {
        // All weaknesses with the command that makes a store, and each command with one of them.
        let lines = Self.sources.map { (Self.commands[0], $0) } + Self.commands.map { ($0, Self.sources[2]) }
        for (command, (code, source)) in lines {
            for isJSON in [false, true] {
                let work = try KeyWarningTests()
                let outcome = try work.run(command + [source] + (isJSON ? ["--json"] : []))
                #expect(outcome.status == 0, "\(command) \(outcome.errors)")
                let errors = outcome.errors
                #expect(!errors.contains(Self.hex) && !errors.contains("abcd") && !errors.contains("0000"))
                if isJSON {
                    #expect(try outcome.failure["type"] as? String == "warning", "\(command)")
                    #expect(try outcome.failure["code"] as? String == code, "\(command)")
                } else {
                    #expect(errors.hasPrefix("coffer: warning: "), "\(command) \(errors)")
                    #expect(errors.contains("\ncoffer: hint: "))
                }
            }
        }
        let shared = try run(["create", "new.coffer", "--key", "raw+file:shared"])
        #expect(shared.errors.contains("shared (mode 640)") && shared.errors.contains("chmod go="))
    }

    @Test("A key that is good enough, and one that only opens a store, bring no warning")
    func noWarnings() throws {
        for source in ["env:LONG", "hex+env:HEX", "raw+file:key", "raw+cmd:cat shared"] {
            let outcome = try KeyWarningTests().run(["create", "new.coffer", "--key", source])
            #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(source): \(outcome.errors)")
        }
        #expect(try run(["create", "new.coffer", "--key", "raw+file:shared"]).status == 0)
        let opened = try run(["ls", "new.coffer", "--key", "raw+file:shared"])
        #expect(opened.status == 0 && opened.errors.isEmpty)
    }

    @Test("A password that somebody types is warned of after it was typed twice")
    func typed() throws {
        let terminal = try FakeTerminal()
        let outcome = try CofferProcess.run(
            ["create", "new.coffer"], in: work.folder, .init(terminal: terminal)
        ) { _ in
            try terminal.wait(for: "Key of new.coffer: ")
            terminal.type("short\n")
            try terminal.wait(for: "The same again: ")
            terminal.type("short\n")
        }
        #expect(outcome.status == 0)
        #expect(outcome.errors.contains("coffer: warning: the new key is a password of fewer than 8 characters"))
    }
}
