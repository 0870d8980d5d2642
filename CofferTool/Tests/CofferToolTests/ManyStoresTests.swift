import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite("Many stores at a time")
struct ManyStoresTests {
    let work: Workspace

    init() throws {
        work = try Workspace(inMemory: true)
        try work.write(Data(0..<32), to: "key")
        try work.write(Data(32..<64), to: "other")
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "stores/below"), withIntermediateDirectories: true)
        for name in ["b", "a", "below/c"] {
            try work.coffer("create", "stores/\(name).coffer", "--key", "raw+file:key")
            try work.coffer("put", "stores/\(name).coffer", "x", "--key", "raw+file:key", input: "{}")
        }
        try work.write("notes", to: "stores/notes.txt")
    }

    private func paths(_ outcome: CofferProcess.Outcome) throws -> [String] {
        try outcome.objects.map { ($0["type"] as? String == "store" ? $0["path"] as? String : nil) ?? "" }
    }

    @Test("The command info prints a line for each store, without a key and with one")
    func info() throws {
        let without = try work.coffer("info", "stores")
        #expect(without.status == 0)
        #expect(without.lines.count == 2)
        #expect(without.lines.first?.hasPrefix("encrypted      stores/a.coffer  uuid ") == true)
        #expect(without.lines.allSatisfy { $0.hasSuffix(", generation 1, 1 key") })
        #expect(without.errors.contains("stores/notes.txt: skipped"))
        let with = try work.coffer("info", "stores", "--key", "raw+file:key", "--json", "--recursive")
        #expect(with.status == 0)
        #expect(try paths(with) == ["stores/a.coffer", "stores/b.coffer", "stores/below/c.coffer"])
        #expect(try with.objects.allSatisfy { $0["documents"] as? Int == 1 })
        // As of one store.
        let one = try work.coffer("info", "stores/a.coffer", "--key", "raw+file:key", "--json")
        #expect(one.lines.first == with.lines.first)
        let list = try CofferProcess.run(
            ["info", "-", "--json"], in: work.folder, .init(input: Data("stores/b.coffer\n".utf8)))
        #expect(try paths(list) == ["stores/b.coffer"])
    }

    @Test("The command info names stores that can't be read, describes the others, and ends with 3")
    func someFail() throws {
        try work.coffer("create", "stores/aa.coffer", "--key", "raw+file:other")
        try work.coffer("create", "stores/plain.coffer", "--unencrypted")
        try work.write("none", to: "stores/file.coffer")
        let outcome = try work.coffer("info", "stores", "--key", "raw+file:key", "--json")
        #expect(outcome.status == 3)
        #expect(try outcome.objects.compactMap { $0["code"] as? String } == ["wrongKey", "notAStore", "notEncrypted"])
        #expect(try outcome.objects.filter { $0["documents"] as? Int == 1 }.count == 2)
        #expect(try outcome.failure["message"] as? String == "3 of 5 stores could not be read")
        let text = try work.coffer("info", "stores")
        #expect(text.status == 3)
        #expect(text.lines.count == 5)
        #expect(text.lines.contains("unreadable     stores/file.coffer"))
        #expect(text.lines.last?.hasPrefix("not encrypted  stores/plain.coffer  uuid ") == true)
        // Where none can be read, it is what was wrong with the first.
        #expect(try work.coffer("info", "stores", "--key", "env:NOT_SET").status == 13)
        try work.write("stores/file.coffer\nmissing.coffer\n", to: "list")
        #expect(try work.coffer("info", "list").status == 10)
    }

    @Test("The command ls of a folder lists the stores in it, and opens none")
    func list() throws {
        let outcome = try work.coffer("ls", "stores")
        #expect(outcome.status == 0)
        #expect(outcome.lines == ["stores/a.coffer", "stores/b.coffer"])
        let nested = try work.coffer("ls", "stores/", "--recursive", "--json")
        #expect(try paths(nested) == ["stores/a.coffer", "stores/b.coffer", "stores/below/c.coffer"])
        #expect(try work.coffer("ls", "stores/a.coffer", "--key", "raw+file:key").lines == ["x"])
    }

    @Test("Options of info that make no sense for a folder, or for a store, are refused")
    func refused() throws {
        for line in [
            ["ls", "stores", "x"], ["ls", "stores", "--key", "raw+file:key"],
            ["ls", "stores/a.coffer", "--recursive"], ["info", "stores/a.coffer", "--recursive"],
            ["info", "-", "--key", "stdin"], ["ls", "stores/notes.txt"],
        ] {
            #expect(try CofferProcess.run(line, in: work.folder).status == 64, "\(line)")
        }
    }

    /// A list or folder that was not there was a 1 or a 64, and one without stores a 64.
    @Test(
        "A folder without stores is 0 with a note, and a folder or list that is not there is 10",
        arguments: ManyStoresTests.commands)
    func nothingThere(command: [String]) throws {
        let arguments = command.count == 1 ? [] : Array(command.dropFirst())
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "empty/below"), withIntermediateDirectories: true)
        func run(_ stores: String, _ more: String...) throws -> CofferProcess.Outcome {
            try CofferProcess.run([command[0], stores] + arguments + more, in: work.folder)
        }
        let missing = try run("nowhere", "--json")
        #expect(missing.status == 10 && missing.output.isEmpty)
        #expect(
            try missing.failure["status"] as? Int == 404 && missing.failure["code"] as? String == "databaseNotFound")
        let empty = try run("empty/below")
        #expect(
            empty.status == 0 && empty.errors == "coffer: note: empty/below: it holds no store\n", "\(empty.errors)")
        #expect(try run("empty", "--recursive").status == 0)
        // Stores below would be forgotten in silence.
        let flat = try run("empty")
        #expect(flat.status == 64 && flat.errors.contains("--recursive also looks into its folders"))
    }

    static let commands = [
        ["ls"], ["info"], ["audit"], ["rotate", "--key", "raw+file:key", "--new-key", "raw+file:other"],
        ["rotate", "--dry-run", "--key", "raw+file:key", "--new-key", "raw+file:other"],
    ]

    /// It ended all of it, and no store was looked at.
    @Test(
        "A folder below that can't be read is a failure, and the stores elsewhere are done: 3",
        arguments: ManyStoresTests.commands)
    func unreadableFolder(command: [String]) throws {
        let folder = try UnreadableFolder(in: work.folder.appending(path: "stores/below"))
        defer { folder.remove() }
        let outcome = try CofferProcess.run(
            [command[0], "stores", "--recursive", "--json"] + command.dropFirst(), in: work.folder)
        #expect(outcome.status == 3, "\(outcome.errors)")
        #expect(outcome.errors.contains(folder.reason))
        for name in ["a", "b", "below/c"] { #expect(outcome.output.contains("\"stores/\(name).coffer\""), "\(name)") }
        if command[0] == "rotate" {
            let summary = try #require(try outcome.objects.last)
            #expect(
                summary["stores"] as? Int == 4 && summary["failed"] as? Int == 1 && summary["notTried"] as? Int == 0)
        }
    }

    @Test("Counts and their verbs are singular where there is one")
    func singular() throws {
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "one"), withIntermediateDirectories: true)
        try work.coffer("create", "one/a.coffer", "--unencrypted")
        let keys = ["--key", "raw+file:key", "--new-key", "raw+file:other"]
        let failed = try CofferProcess.run(["rotate", "one"] + keys, in: work.folder)
        #expect(failed.errors.contains("error: 1 store failed\n"))
        #expect(try work.coffer("info", "one", "--key", "raw+file:key").errors.contains("1 store could not be read"))
        #expect(
            try work.coffer("audit", "one", "--encrypted").errors.contains("1 store violates a rule"))
        try work.coffer("create", "one/b.coffer", "--key", "raw+file:key")
        let two = try CofferProcess.run(["rotate", "one"] + keys, in: work.folder)
        #expect(two.errors.contains("error: 1 of 2 stores failed, and 1 was not tried\n"))
        let rotated = try CofferProcess.run(["rotate", "one", "--keep-going"] + keys, in: work.folder)
        #expect(rotated.output.contains("0 documents, 0 attachments"))
        let one = try CofferProcess.run(["rotate", "stores/a.coffer"] + keys, in: work.folder)
        #expect(one.output.contains("1 document, 0 attachments") && one.output.contains("\n1 store: 1 rotated"))
    }
}

/// A folder that nobody can read, not even root: the path of what is in it is longer than any path may be.
private struct UnreadableFolder {
    /// What the system says of it.
    let reason: String
    private let path: String

    init(in parent: URL) throws {
        path = parent.appending(path: "deep").path
        reason = String(cString: strerror(ENAMETOOLONG))
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        var descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        let name = String(repeating: "x", count: 250)
        for _ in 0..<17 {
            try #require(mkdirat(descriptor, name, 0o700) == 0)
            let next = openat(descriptor, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            close(descriptor)
            descriptor = next
        }
        close(descriptor)
    }

    /// Foundation can't.
    func remove() {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/rm")
        process.arguments = ["-rf", path]
        try? process.run()
        process.waitUntilExit()
    }
}
