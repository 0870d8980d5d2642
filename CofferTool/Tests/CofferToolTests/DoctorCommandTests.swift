import Foundation
import Testing

@Suite("What a system and a store are: doctor and info")
struct DoctorCommandTests {
    let work: Workspace

    init() throws { work = try Workspace(inMemory: true) }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: work.folder.path(percentEncoded: false)).sorted()
    }

    @Test("The command doctor tries everything that stores need, and leaves nothing behind")
    func doctor() throws {
        let outcome = try work.coffer("doctor", ".", "--json")
        #expect(outcome.status == 0)
        #expect(outcome.errors.isEmpty)
        let objects = try outcome.objects
        let checks = Dictionary(uniqueKeysWithValues: objects.dropLast().map { ($0["check"] as? String ?? "", $0) })
        let expected: Set = [
            "coffer", "system", "SQLCipher", "OpenSSL", "temporary data", "other SQLite", "encryption", "sealed pages",
            "password", "replacing", "disk", "fsync", "crash reports",
        ]
        #expect(expected.isSubset(of: checks.keys))
        #expect(checks.values.allSatisfy { $0["verdict"] as? String != "problem" })
        #expect(
            (checks["password"]?["detail"] as? String)?.contains("ms to open a store (password, scrypt N=65536") == true
        )
        for engine in ["encryption", "sealed pages"] {
            #expect((checks[engine]?["detail"] as? String)?.contains("401") == true)
        }
        #expect(checks["other SQLite"]?["verdict"] as? String == "ok")
        #expect(checks["crash reports"]?["verdict"] as? String == "ok")
        #expect(try outcome.objects.last?["problems"] as? Int == 0)
        #expect(try names().isEmpty)
        let text = try work.coffer("doctor", ".").lines
        #expect(text.contains { $0.hasPrefix("SQLCipher       ") })
        #expect(text.count == objects.count - 1)
    }

    @Test("Without SQLCipher the command doctor ends with 14, and says what to install")
    func noLibrary() throws {
        // The loader looks here first: a library that is none.
        for name in ["libsqlcipher.so.2", "libsqlcipher.so.1", "libsqlcipher.so.0", "libsqlcipher.so"] {
            try work.write("no library", to: "lib/" + name)
        }
        let outcome = try CofferProcess.run(
            ["doctor", ".", "--json"], in: work.folder,
            .init(environment: ["PATH": "/usr/bin", "LD_LIBRARY_PATH": "lib", "DYLD_LIBRARY_PATH": "lib"]))
        #if !os(Linux)
        guard outcome.status != 0 else { return }  // The loader of a protected system looks elsewhere.
        #endif
        #expect(outcome.status == 14)
        #expect(try outcome.failure["status"] as? Int == 501)
        #expect((try outcome.failure["hint"] as? String)?.contains("libsqlcipher") == true)
        #expect(try outcome.objects.contains { $0["verdict"] as? String == "problem" })
        #expect(try names() == ["lib"])
    }

    @Test("A folder that is missing or full is a failure of the command doctor, which leaves nothing")
    func folder() throws {
        #expect(try work.coffer("doctor", "none").status == 10)
        #expect(try names().isEmpty)
    }

    @Test("The command info counts and measures with a key, and without one says what MANIFEST does, though it is open")
    func info() throws {
        try work.makeStore()
        try work.write("content", to: "file")
        for name in ["a", "b"] {
            let outcome = try work.coffer("attach", "people.coffer", name, "x", "file", "--key", "raw+file:key")
            #expect(outcome.status == 0)
        }
        #expect(try work.coffer("rm", "people.coffer", "b", "--key", "raw+file:key").status == 0)
        let open = try #require(
            try work.coffer("info", "people.coffer", "--key", "raw+file:key", "--json").objects.first)
        #expect(open["documents"] as? Int == 1)
        #expect(open["lastSequence"] as? Int == 3)
        #expect(open["contents"] as? Int == 1)
        let files = try work.contents(of: "people.coffer")
        let sizes = { (suffix: String) in files.filter { $0.key.hasSuffix(suffix) }.values.reduce(0) { $0 + $1.count } }
        #expect(open["contentBytes"] as? Int == sizes(".blob"))
        #expect(open["databaseBytes"] as? Int == sizes("db.sqlite3"))
        let text = try work.coffer("info", "people.coffer", "--key", "raw+file:key").output
        #expect(text.contains("documents   1, last sequence 3\n"))
        let closed = try #require(try work.coffer("info", "people.coffer", "--json").objects.first)
        let members: Set = [
            "type", "path", "encrypted", "engine", "uuid", "generation", "sequence", "keys", "oldGenerations",
        ]
        #expect(Set(closed.keys) == members)
        #expect(closed["uuid"] as? String == open["uuid"] as? String)
        #expect(try work.contents(of: "people.coffer") == files)
    }
}

@Suite("Completions for shells")
struct CompletionTests {
    @Test("Completions are made for each shell, with every command in them", arguments: ["bash", "zsh", "fish"])
    func scripts(shell: String) throws {
        let work = try Workspace()
        let outcome = try work.coffer("--generate-completion-script", shell)
        #expect(outcome.status == 0)
        for command in ["create", "export", "rotate", "leakcheck", "doctor", "restore", "keep-going"] {
            #expect(outcome.output.contains(command))
        }
        if shell == "bash" {
            try work.write(outcome.output, to: "script")
            #expect(try work.shell("bash -n script").status == 0)
        }
        #expect(try work.coffer("--generate-completion-script", "nosuch").status == 64)
    }
}
