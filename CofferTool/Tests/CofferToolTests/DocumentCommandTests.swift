import Foundation
import Testing

@Suite("Documents: put, get, ls and rm")
struct DocumentCommandTests {
    let work: Workspace

    init() throws {
        work = try Workspace()
        try work.makeStore()
    }

    private func coffer(_ command: String, _ arguments: String..., input: String = "") throws -> CofferProcess.Outcome {
        try CofferProcess.run(
            [command, "people.coffer", "--key", "raw+file:key"] + arguments, in: work.folder,
            CofferProcess.Surroundings(input: Data(input.utf8)))
    }

    @Test("A document that was put is got back as one line of JSON, its _id first")
    func roundTrip() throws {
        let json = """
            {
              "name": "Zoë \\u00e9\\n", "big": 9007199254740993, "low": -9223372036854775808, "deep": [{"a": [true, null]}]
            }
            """
        #expect(try coffer("put", "Robin", input: json).status == 0)
        let got = try coffer("get", "Robin")
        #expect(got.status == 0)
        #expect(got.lines.count == 1)
        #expect(got.output.hasPrefix("{\"_id\":\"Robin\","))
        #expect(got.output.contains("9007199254740993"))
        #expect(got.output.contains("-9223372036854775808"))
        let object = try #require(try got.objects.first)
        #expect(object["name"] as? String == "Zoë é\n")
        #expect(object.count == 5)
    }

    @Test("An empty document has nothing but its _id")
    func empty() throws {
        #expect(try coffer("put", "a", input: "{}").status == 0)
        #expect(try coffer("get", "a").output == "{\"_id\":\"a\"}\n")
    }

    @Test("What get writes, put takes")
    func getThenPut() throws {
        #expect(try coffer("put", "a", input: "{\"b\":1}").status == 0)
        let line = try coffer("get", "a").output
        #expect(try coffer("put", "a", input: line).status == 0)
        #expect(try coffer("get", "a").output == line)
    }

    @Test("A document is read from a file, from standard input, and from -")
    func inputs() throws {
        try work.write("{\"from\":\"file\"}", to: "a.json")
        #expect(try coffer("put", "a", "a.json").status == 0)
        #expect(try coffer("get", "a").output == "{\"_id\":\"a\",\"from\":\"file\"}\n")
        #expect(try coffer("put", "b", "-", input: "{\"from\":\"input\"}").status == 0)
        #expect(try coffer("get", "b").output == "{\"_id\":\"b\",\"from\":\"input\"}\n")
        let missing = try coffer("put", "c", "none.json")
        #expect(missing.status == 1)
        #expect(missing.errors.contains("none.json"))
    }

    @Test("An id that is there gets its next revision, a removed one too")
    func revisions() throws {
        let first = try coffer("put", "a", input: "{\"n\":1}").output
        #expect(first.hasPrefix("1-"))
        let second = try coffer("put", "a", input: "{\"n\":2}").output
        #expect(second.hasPrefix("2-"))
        #expect(try coffer("get", "a").output == "{\"_id\":\"a\",\"n\":2}\n")
        #expect(try coffer("rm", "a").output.hasPrefix("3-"))
        #expect(try coffer("put", "a", input: "{\"n\":4}").output.hasPrefix("4-"))
        #expect(try coffer("get", "a").output == "{\"_id\":\"a\",\"n\":4}\n")
    }

    @Test("A document that is missing or removed is exit status 1, and a 404")
    func missing() throws {
        #expect(try coffer("put", "gone", input: "{}").status == 0)
        #expect(try coffer("rm", "gone").status == 0)
        for id in ["gone", "never"] {
            for command in ["get", "rm"] {
                let outcome = try coffer(command, id, "--json")
                #expect(outcome.status == 1)
                #expect(outcome.output.isEmpty)
                #expect(try outcome.failure["status"] as? Int == 404)
                #expect(try outcome.failure["code"] as? String == "documentNotFound")
            }
        }
        #expect(try coffer("ls").output.isEmpty)
    }

    @Test("The command ls lists ids in the order of their bytes, one on each line")
    func list() throws {
        for id in ["b", "Z", "é", "e\u{301}", "a b", "two\nlines", "\"quoted\"", "-x", "😀"] {
            #expect(try coffer("put", "--", id, input: "{}").status == 0, "\(id)")
        }
        let expected = ["\"\\\"quoted\\\"\"", "-x", "Z", "a b", "b", "e\u{301}", "\"two\\nlines\"", "é", "😀"]
        #expect(try coffer("ls").lines.map { Array($0.utf8) } == expected.map { Array($0.utf8) })
        let objects = try coffer("ls", "--json").objects
        #expect(objects.count == 9)
        #expect(objects.allSatisfy { $0["type"] as? String == "document" })
        #expect(objects[6]["id"] as? String == "two\nlines")
    }

    @Test("The command ls --limit lists the first ids and no more, and is refused where no documents are listed")
    func limit() throws {
        for id in ["c", "a", "b"] { #expect(try coffer("put", id, input: "{}").status == 0) }
        for (limit, ids) in [("0", []), ("2", ["a", "b"]), ("3", ["a", "b", "c"]), ("4", ["a", "b", "c"])] {
            #expect(try coffer("ls", "--limit", limit).lines == ids)
        }
        #expect(try coffer("ls", "a", "--limit", "1").status == 64)
        #expect(try coffer("ls", "--limit=-1").status == 64)
        #expect(try work.coffer("ls", ".", "--limit", "1").status == 64)
        let shortened = try work.coffer("ls", "people", "--key", "raw+file:key")
        #expect(shortened.status == 64)
        #expect(shortened.errors.contains("people: not the name of a store"))
    }

    @Test("What is not a JSON object is refused, nothing is saved, and none of it is repeated")
    func invalid() throws {
        for input in [
            "", "hunter2", "[\"hunter2\"]", "{\"a\":hunter2}", "{\"a\":1", "{\"a\":1}{}",
            "{\"hunter2\":1,\"hunter2\":2}",
        ] {
            let outcome = try coffer("put", "a", "--json", input: input)
            #expect(outcome.status == 1, "\(input)")
            #expect(try outcome.failure["code"] as? String == "invalidJSON")
            #expect(try outcome.failure["status"] as? Int == 400)
            #expect(!outcome.errors.contains("hunter2"))
        }
        #expect(try coffer("ls").output.isEmpty)
    }

    @Test("An id that can't be one is refused", arguments: ["", "_x"])
    func invalidID(id: String) throws {
        for command in ["put", "get", "rm"] {
            let outcome = try coffer(command, "--json", "--", id, input: "{}")
            #expect(outcome.status == 1, "\(command)")
            #expect(try outcome.failure["code"] as? String == "invalidDocumentID")
        }
    }

    @Test("With --json every result says its type, id and revision")
    func json() throws {
        let put = try #require(try coffer("put", "a", "--json", input: "{\"n\":1}").objects.first)
        #expect(put["type"] as? String == "document")
        #expect(put["id"] as? String == "a")
        let revision = try #require(put["revision"] as? String)
        #expect(revision.hasPrefix("1-"))
        let got = try #require(try coffer("get", "a", "--json").objects.first)
        #expect(got["type"] as? String == "document")
        #expect(got["revision"] as? String == revision)
        #expect((got["document"] as? [String: Any])?["_id"] as? String == "a")
        let removed = try #require(try coffer("rm", "a", "--json").objects.first)
        #expect(removed["deleted"] as? Bool == true)
        #expect((removed["revision"] as? String)?.hasPrefix("2-") == true)
    }

    @Test("A command whose reader goes away early closes the store, and ends by SIGPIPE without a word")
    func closedPipe() throws {
        let lines = (0..<20_000).map { "{\"_id\":\"document number \($0)\"}\n" }.joined()
        try work.write(lines, to: "many.ndjson")
        #expect(try coffer("import", "many.ndjson").status == 0)
        let before = try work.shell("ls -R people.coffer").output
        for (ignored, command) in [
            ("", "ls people.coffer"), ("trap '' PIPE; ", "ls people.coffer"), ("", "changes people.coffer"),
            ("", "query people.coffer"), ("", "export people.coffer"), ("trap '' PIPE; ", "export people.coffer"),
        ] {
            let line = "{ \(ignored)\"$coffer\" \(command) --key raw+file:key 2>errors; echo $? >status; } | head -n 1"
            let shown = try work.shell(line).output
            #expect(shown.contains("document number 0") || command.hasPrefix("changes"), "\(command): \(shown)")
            // Ended by SIGPIPE, when the store was closed.
            #expect(try work.shell("cat status errors").output == "141\n", "\(command)")
            #expect(try work.shell("ls -R people.coffer").output == before, "\(command)")
        }
    }
}
