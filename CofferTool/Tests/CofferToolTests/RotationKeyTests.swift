import Foundation
import Testing

@Suite("A rotation in which each store has keys of its own")
struct RotationKeyTests {
    private let work: Workspace
    private let names = ["s0", "s1", "s2"]

    /// A key service: a digest of what the key is for, and of the store's UUID.
    private let service = "hex+cmd:./service"
    private var line: [String] { ["rotate", "stores", "--key", service, "--new-key", service, "--key-for-each-store"] }

    init() throws {
        work = try Workspace()
        try work.write(
            """
            #!/bin/sh
            echo "$COFFER_KEY_PURPOSE $COFFER_STORE_PATH" >> calls
            test -e "fails/${COFFER_STORE_PATH##*/}" && exit 3
            printf '%s' "$COFFER_KEY_PURPOSE key of $COFFER_STORE_UUID" | sha256sum | cut -c 1-64

            """, to: "service")
        #expect(chmod(work.folder.path + "/service", 0o700) == 0)
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "stores"), withIntermediateDirectories: true)
        for name in names {
            let store = "stores/\(name).coffer"
            try work.write(Workspace.key, to: "first")
            #expect(try work.coffer("create", store, "--key", "raw+file:first").status == 0)
            try writeKey(name, "old", to: "old")
            let replaced = try work.coffer(
                "key", "replace", store, "--key", "raw+file:first", "--new-key", "hex+file:old")
            #expect(replaced.status == 0, "\(replaced.errors)")
        }
    }

    private func uuid(_ name: String) throws -> String {
        try #require(try work.coffer("info", "stores/\(name).coffer", "--json").objects.first?["uuid"] as? String)
    }

    /// Writes the key that the service has for the store.
    private func writeKey(_ name: String, _ purpose: String, to file: String) throws {
        try work.write("\(purpose) key of \(try uuid(name))", to: "said")
        #expect(try work.shell("sha256sum <said | cut -c 1-64 >\(file) && chmod 600 \(file)").status == 0)
    }

    private func opens(_ name: String, _ purpose: String) throws -> Int32 {
        try writeKey(name, purpose, to: "tried")
        return try work.coffer("ls", "stores/\(name).coffer", "--key", "hex+file:tried").status
    }

    private var calls: [String] {
        get throws {
            try String(contentsOf: work.folder.appending(path: "calls"), encoding: .utf8)
                .split(separator: "\n").map(String.init)
        }
    }

    @Test("The commands are told of each store, and what the key is for, and each store gets its own")
    func each() throws {
        let outcome = try CofferProcess.run(line + ["--jobs", "2", "--json"], in: work.folder)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(try outcome.objects.last?["rotated"] as? Int == 3)
        for name in names {
            #expect(try opens(name, "new") == 0)
            #expect(try opens(name, "old") == 12)
        }
        // By the path that the store has, whatever it was called on the command line.
        let told = try calls.map { $0.replacing("/private", with: "") }.sorted()
        #expect(told.count == 6 && told.allSatisfy { $0.contains("/stores/s") && $0.hasSuffix(".coffer") }, "\(told)")
        #expect(told.filter { $0.hasPrefix("new ") }.count == 3)
        let again = try CofferProcess.run(line + ["--json"], in: work.folder)
        #expect(try again.objects.last?["alreadyRotated"] as? Int == 3)
    }

    @Test("A command about one store tells of it, too, and what each key is for")
    func oneStore() throws {
        let store = "stores/s1.coffer"
        #expect(try work.coffer("rekey", store, "--key", service, "--new-key", service).status == 0)
        #expect(try opens("s1", "new") == 0)
        #expect(try work.coffer("create", "made.coffer", "--key", service).status == 0)
        #expect(try calls.map { String($0.prefix(4)) } == ["old ", "new ", "new "])
        #expect(try calls.last?.hasSuffix("/made.coffer") == true)
    }

    @Test("A store whose key can't be had fails alone, and stays as it was")
    func failing() throws {
        try work.write("", to: "fails/s1.coffer")
        let outcome = try CofferProcess.run(line + ["--keep-going", "--json"], in: work.folder)
        #expect(outcome.status == 3)
        #expect(try outcome.failure["code"] as? String == "keyUnavailable")
        #expect(try outcome.objects.last?["rotated"] as? Int == 2 && outcome.objects.last?["failed"] as? Int == 1)
        #expect(outcome.errors.contains("s1.coffer"))
        #expect(try [opens("s0", "new"), opens("s1", "old"), opens("s2", "new")] == [0, 0, 0])
    }

    @Test("A key that is the same for all is read once, beside those of the commands")
    func mixed() throws {
        try work.write(Data(1...32), to: "same")
        let outcome = try CofferProcess.run(
            ["rotate", "stores", "--key", service, "--new-key", "raw+stdin", "--key-for-each-store"], in: work.folder,
            .init(input: Data(1...32)))
        #expect(outcome.status == 0, "\(outcome.errors)")
        for name in names {
            #expect(try work.coffer("ls", "stores/\(name).coffer", "--key", "raw+file:same").status == 0)
        }
    }

    @Test("Without the flag a command runs once and is told of no store, and with it some key has to be a command's")
    func once() throws {
        let outcome = try CofferProcess.run(line.dropLast() + ["--keep-going"], in: work.folder)
        #expect(outcome.status == 12, "\(outcome.errors)")
        #expect(try calls == ["old ", "new "])
        let usage = try CofferProcess.run(
            ["rotate", "stores", "--key", "file:old", "--new-key", "file:first", "--key-for-each-store"],
            in: work.folder)
        #expect(usage.status == 64)
    }
}
