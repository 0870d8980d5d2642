import Coffer
import Foundation
import Testing

@Suite("Finding documents by their words: search")
struct SearchCommandTests {
    let work: Workspace
    private let key = ["--key", "raw+file:key"]

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        for (id, title, body) in [
            ("1", "Crème brûlée", "A dessert of France"), ("2", "Noir", "Café noir, and nothing else"),
            ("3", "Coffee", "Café crème in Paris"),
        ] {
            try work.write(#"{"title":"\#(title)","body":"\#(body)"}"#, to: "body")
            #expect(try run("put", "people.coffer", id, "body").status == 0)
        }
        #expect(try run("index", "add", "people.coffer", "notes", "title", "body", "--text").status == 0)
    }

    private func run(_ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments + key, in: work.folder)
    }

    @Test("The command search prints the best hits first, a line for each with what was found")
    func hits() throws {
        let outcome = try run("search", "people.coffer", "notes", "cafe -noir")
        #expect(outcome.status == 0 && outcome.lines == ["3  Café crème in Paris"])
        #expect(try run("search", "people.coffer", "notes", "caf*", "--limit", "1").lines.count == 1)
        #expect(
            try run("search", "people.coffer", "notes", "france OR paris", "--where", "title = 'Coffee'").lines.count
                == 1)
        #expect(try run("search", "people.coffer", "notes", "\"brulee cr").lines.isEmpty)
    }

    @Test("The command search writes ranges of bytes with --json")
    func json() throws {
        let object = try #require(
            try run("search", "people.coffer", "notes", "creme -title:creme", "--json").objects.first)
        #expect(object["id"] as? String == "3")
        let match = try #require((object["matches"] as? [[String: Any]])?.first)
        #expect(match["path"] as? String == "body" && match["start"] as? Int == 6 && match["end"] as? Int == 12)
    }

    @Test("The command search finds what was saved since, and lists and drops the index")
    func life() throws {
        try work.write(#"{"body":"a newcomer"}"#, to: "body")
        #expect(try run("put", "people.coffer", "4", "body").status == 0)
        let lines = try run("index", "list", "people.coffer").lines
        #expect(lines == ["notes  text of title, body  3 documents, not up to date"])
        #expect(try run("search", "people.coffer", "notes", "newcomer").lines == ["4  a newcomer"])
        let object = try #require(try run("index", "list", "people.coffer", "--json").objects.first)
        #expect(object["type"] as? String == "textIndex" && object["documents"] as? Int == 4)
        #expect(try run("index", "remove", "people.coffer", "notes").status == 1)
        #expect(try run("index", "remove", "people.coffer", "notes", "--text").status == 0)
        let failure = try run("search", "people.coffer", "notes", "newcomer", "--json")
        #expect(failure.status == 1)
        #expect(try failure.failure["code"] as? String == "indexNotFound")
    }

    @Test("The command search refuses what makes no sense, and nothing that somebody may type as a query")
    func badInput() throws {
        #expect(try run("index", "add", "people.coffer", "x", "body", "--accents").status == 64)
        #expect(try run("index", "add", "people.coffer", "x", "body", "--text", "--language", "xx").status == 1)
        #expect(try run("search", "people.coffer", "notes", "x", "--limit", "-1").status == 64)
        #expect(try run("search", "people.coffer", "notes", "x", "--where", "=").status == 64)
        for text in ["\"", "((", "OR", "*", ":", "NEAR/0", ""] {
            #expect(try run("search", "people.coffer", "notes", text).status == 0, "\(text)")
        }
    }
}
