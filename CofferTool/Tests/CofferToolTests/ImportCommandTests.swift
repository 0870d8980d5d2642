import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite("Importing")
struct ImportCommandTests {
    let work: Workspace

    init() throws {
        work = try Workspace()
        try work.makeStore()
    }

    private func coffer(_ command: String, _ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run([command, "people.coffer", "--key", "raw+file:key"] + arguments, in: work.folder)
    }

    private var ids: [String] { get throws { try coffer("ls").lines } }

    @Test(
        "An import takes the same records from an array, an object around one, lines of objects and a folder",
        arguments: [
            "[{\"_id\":\"a\",\"n\":1},\n{\"_id\":\"b\",\"n\":2}]",
            "{\"version\":1,\"people\":[{\"_id\":\"a\",\"n\":1},{\"_id\":\"b\",\"n\":2}]}",
            "{\"_id\":\"a\",\"n\":1}\n\n{\"_id\":\"b\",\n\"n\":2}\n",
            "\u{FEFF}{\"_id\":\"a\",\"n\":1}\r\n{\"_id\":\"b\",\"n\":2}",
        ])
    func shapes(text: String) throws {
        try work.write(text, to: "records.whatever")
        let outcome = try coffer("import", "--json", "records.whatever")
        #expect(outcome.status == 0)
        #expect(outcome.errors.isEmpty)
        let summary = try #require(try outcome.objects.first)
        #expect(summary["type"] as? String == "import")
        #expect(summary["documents"] as? Int == 2)
        #expect(try ids == ["a", "b"])
        #expect(try coffer("get", "b").output == "{\"_id\":\"b\",\"n\":2}\n")
    }

    @Test("An import of a folder reads the JSON files right in it, passes over hidden ones, and names others")
    func folder() throws {
        try work.write("[{\"_id\":\"a\"}]", to: "folder/1.json")
        try work.write("{\"_id\":\"b\"}\n{\"_id\":\"c\"}", to: "folder/2.ndjson")
        try work.write("{\"_id\":\"d\"}", to: "folder/3.JSONL")
        try work.write("not read", to: "folder/.4.json")
        try work.write("not read", to: "folder/README")
        try work.write("not read", to: "folder/sub/5.json")
        let outcome = try coffer("import", "folder")
        #expect(outcome.status == 0)
        #expect(outcome.output == "4 documents from 3 files\n")
        #expect(outcome.errors.contains("folder/README: skipped"))
        #expect(outcome.errors.contains("folder/sub: skipped"))
        #expect(try ids == ["a", "b", "c", "d"])
    }

    @Test("A folder without JSON files, and a path that is not there, are failures")
    func nothingThere() throws {
        try work.write("", to: "folder/README")
        #expect(try coffer("import", "folder").status == 64)
        let missing = try coffer("import", "none.json")
        #expect(missing.status == 1)
        #expect(missing.errors.contains("none.json"))
    }

    @Test("An import of an empty file finds no records", arguments: ["", "\n", "[]", "{\"people\":[]}"])
    func empty(text: String) throws {
        try work.write(text, to: "a.json")
        #expect(try coffer("import", "a.json").output == "0 documents from 1 file\n")
    }

    @Test("Records without an _id get new ids in each import")
    func newIDs() throws {
        try work.write("[{\"n\":1},{\"n\":2}]", to: "a.json")
        #expect(try coffer("import", "a.json").status == 0)
        #expect(try coffer("import", "a.json").status == 0)
        #expect(Set(try ids).count == 4)
    }

    @Test("The id of an imported record may be another member, a string or an integer, which stays in the document")
    func otherMember() throws {
        try work.write("{\"codes\":[{\"_id\":\"y\",\"code\":\"x\"},{\"code\":17}]}", to: "a.json")
        #expect(try coffer("import", "a.json", "--id", "code").status == 0)
        #expect(try ids == ["17", "x"])
        #expect(try coffer("get", "17").output == "{\"_id\":\"17\",\"code\":17}\n")
    }

    @Test(
        "A bad record is an error with its file and line, and nothing of the import stays",
        arguments: [
            ("[{\"_id\":\"x\"},\n5]", 2, "invalidJSON", 400),
            ("{\"_id\":\"x\"}\n\n{\"_id\":\"y\",}\n", 3, "invalidJSON", 400),
            ("{\"_id\":\"x\"}\n{\"_id\":\"y\"", 2, "invalidJSON", 400),
            ("{\"_id\":\"x\"}\n{\"_id\":\"y\",\"a\":\"\\ud800\"}", 2, "invalidJSON", 400),
            ("{\"_id\":\"x\"}\n{\"_id\":\"y\",\"a\":1,\"a\":2}", 2, "invalidJSON", 400),
            ("{\"_id\":\"x\"}\n{\"_id\":\"y\",\"a\":1e999}", 2, "invalidJSON", 400),
            ("[\n{\"_id\":\"x\"},\n{\n\"_id\":null}]", 4, "invalidJSON", 400),
            ("{\"_id\":\"x\"}\n{\"_id\":\"_y\"}", 2, "invalidDocumentID", 400),
            ("{\"_id\":\"x\"}\n{\"_id\":\"\"}", 2, "invalidDocumentID", 400),
            ("{\"_id\":\"x\"}\n{\"_id\":\"y\"}\n{\"_id\":\"x\"}", 3, "conflict", 409),
            ("{\"_id\":\"x\"}\n{\"_id\":\"there\"}", 2, "conflict", 409),
        ])
    func badRecord(text: String, line: Int, code: String, status: Int) throws {
        try work.write("[{\"_id\":\"there\"}]", to: "there.json")
        #expect(try coffer("import", "there.json").status == 0)
        try work.write("[{\"_id\":\"good\"}]", to: "good.json")
        try work.write(text, to: "bad.json")
        let outcome = try coffer("import", "--json", "good.json", "bad.json")
        #expect(outcome.status == 1)
        #expect(outcome.output.isEmpty)
        let failure = try outcome.failure
        #expect(failure["code"] as? String == code)
        #expect(failure["status"] as? Int == status)
        #expect(failure["file"] as? String == "bad.json")
        #expect(failure["line"] as? Int == line)
        #expect((failure["message"] as? String)?.hasPrefix("bad.json:\(line): ") == true)
        #expect(try ids == ["there"])
    }

    @Test("A record without the member that --id names is refused with its line")
    func missingMember() throws {
        try work.write("[{\"code\":\"x\"},\n{\"_id\":\"y\"}]", to: "a.json")
        let outcome = try coffer("import", "a.json", "--id", "code")
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains("a.json:2: "))
        #expect(try ids == [])
    }

    /// Runs an import whose second file is a pipe that yields nothing, and does `body` while it waits there.
    private func importWaiting(_ body: (pid_t) throws -> Void) throws -> CofferProcess.Outcome {
        try work.write((0..<5_000).map { "{\"_id\":\"\($0)\"}\n" }.joined(), to: "first.ndjson")
        let pipe = work.folder.appending(path: "pipe").path(percentEncoded: false)
        #expect(mkfifo(pipe, 0o600) == 0)
        let arguments = ["import", "people.coffer", "--key", "raw+file:key", "first.ndjson", "pipe"]
        return try CofferProcess.run(arguments, in: work.folder) { process in
            // Opening returns when the process opens it, too.
            let writer = open(pipe, O_WRONLY | O_CLOEXEC)
            defer { close(writer) }
            try body(process)
        }
    }

    @Test("An import that is cancelled leaves nothing, and ends with 130", arguments: [SIGINT, SIGTERM, SIGHUP])
    func cancelled(signal: Int32) throws {
        let outcome = try importWaiting { process in
            kill(process, signal)
            // Before it sees the end of what it reads.
            try CofferProcess.waitForEnd(of: process)
        }
        #expect(outcome.status == 130)
        #expect(try ids == [])
    }

    @Test("^C between two records leaves nothing, and ends with 130")
    func cancelledAtWork() throws {
        try work.write((0..<100_000).map { "{\"_id\":\"\($0)\"}\n" }.joined(), to: "many.ndjson")
        let terminal = try FakeTerminal()
        let outcome = try CofferProcess.run(
            ["import", "people.coffer", "--key", "raw+file:key", "many.ndjson"], in: work.folder,
            .init(terminal: terminal, showsErrorsOnTerminal: true)
        ) { _ in
            try terminal.wait(for: "document")
            terminal.type("\u{3}")
        }
        #expect(outcome.status == 130)
        #expect(try ids == [])
    }

    @Test("An import that is killed leaves nothing")
    func killed() throws {
        let outcome = try importWaiting { process in
            kill(process, SIGKILL)
            // Before it sees the end of what it reads.
            try CofferProcess.waitForEnd(of: process)
        }
        #expect(outcome.status == 128 + SIGKILL)
        #expect(try ids == [])
    }

    @Test("A store is busy while an import runs, and info without a key still works")
    func busy() throws {
        let outcome = try importWaiting { _ in
            for command in [["ls"], ["get", "a"], ["rm", "a"]] {
                let other = try CofferProcess.run(
                    [command[0], "people.coffer", "--json", "--key", "raw+file:key"] + command.dropFirst(),
                    in: work.folder)
                #expect(other.status == 11)
                #expect(try other.failure["status"] as? Int == 503)
            }
            #expect(try work.coffer("info", "people.coffer").status == 0)
        }
        #expect(outcome.status == 0)
        #expect(outcome.output == "5000 documents from 2 files\n")
    }
}
