import Foundation
import Testing

@Suite("What is said of keys that can't be read, or open nothing")
struct KeyMessageTests {
    let work: Workspace

    init() throws {
        work = try Workspace()
        try work.makeStore()
        for name in ["new", "other"] { try work.write(Data(name.utf8) + Data(count: 32 - name.utf8.count), to: name) }
    }

    @Test(
        "A key that can't be read names the option or the variable that it is for",
        arguments: [
            ("--key", ["ls", "people.coffer", "--key", "file:missing"]),
            ("--key", ["rotate", "people.coffer", "--key", "file:missing", "--new-key", "raw+file:new"]),
            ("--new-key", ["rotate", "people.coffer", "--key", "raw+file:key", "--new-key", "file:missing"]),
            (
                "--keep-key",
                [
                    "rotate", "people.coffer", "--key", "raw+file:key", "--new-key", "raw+file:new", "--keep-key",
                    "file:missing",
                ]
            ),
            ("--new-key", ["rekey", "people.coffer", "--key", "raw+file:key", "--new-key", "hex+file:new"]),
            (
                "--keep-key",
                [
                    "rekey", "people.coffer", "--key", "raw+file:key", "--new-key", "raw+file:new", "--keep-key",
                    "env:NOWHERE",
                ]
            ),
            ("--new-key", ["key", "add", "people.coffer", "--key", "raw+file:key", "--new-key", "cmd:exit 1"]),
            ("COFFER_KEY_SOURCE", ["ls", "people.coffer"]),
        ])
    func option(name: String, line: [String]) throws {
        let environment = ["PATH": "/usr/bin:/bin", "COFFER_KEY_SOURCE": "file:missing"]
        let outcome = try CofferProcess.run(
            line + ["--json"], in: work.folder, .init(environment: environment))
        #expect(outcome.status == 13)
        let message = try #require(try outcome.failure["message"] as? String)
        #expect(message.hasPrefix("\(name): ") && !message.contains("missing"), "\(message)")
    }

    @Test(
        "A wrong key that looks like 32 bytes in hex or base64 is told what to put before its source, and not repeated")
    func forgottenEncoding() throws {
        let hex = Workspace.key.map { String(format: "%02x", $0) }.joined(),
            base64 = Workspace.key.base64EncodedString()
        try work.write(hex + "\n", to: "as-hex")
        try work.write(base64 + "\n", to: "as-base64")
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "stores"), withIntermediateDirectories: false)
        try work.coffer("create", "stores/a.coffer", "--key", "raw+file:key")
        for (file, prefix, content) in [("as-hex", "hex+", hex), ("as-base64", "base64+", base64)] {
            for line in [
                ["ls", "people.coffer", "--key", "file:\(file)"], ["info", "stores", "--key", "file:\(file)"],
                ["rotate", "stores", "--key", "file:\(file)", "--new-key", "raw+file:new"],
            ] {
                let outcome = try CofferProcess.run(line, in: work.folder)
                #expect(outcome.status == 12)
                #expect(outcome.errors.contains("hint: what --key names looks like 32 bytes in "), "\(outcome.errors)")
                #expect(outcome.errors.contains("\(prefix) before the source"))
                #expect(!outcome.errors.contains(content) && !outcome.errors.contains(content.prefix(6)))
            }
            let right = try work.coffer("ls", "people.coffer", "--key", "\(prefix)file:\(file)")
            #expect(right.status == 0)
        }
        for password in ["swordfish", String(hex.dropLast()), String(base64.dropFirst()), base64 + "A"] {
            try work.write(password, to: "password")
            let outcome = try work.coffer("ls", "people.coffer", "--key", "file:password")
            #expect(outcome.status == 12 && !outcome.errors.contains("looks like"))
        }
    }
}
