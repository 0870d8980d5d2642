import Coffer
import Foundation
import Testing

@Suite("Finding documents: query and index")
struct QueryCommandTests {
    let work: Workspace
    private let key = ["--key", "raw+file:key"]

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        let cities = ["Bern", "Oslo", "Rome"]
        for number in 0..<9 {
            try work.write(#"{"city":"\#(cities[number % 3])","age":\#(number),"tags":["t\#(number)"]}"#, to: "body")
            #expect(try run("put", "people.coffer", "p\(number)", "body").status == 0)
        }
    }

    private func run(_ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments + key, in: work.folder)
    }

    private func ids(_ arguments: String...) throws -> [String] {
        let outcome = try CofferProcess.run(["query", "people.coffer"] + arguments + key, in: work.folder)
        #expect(outcome.status == 0, "\(outcome.errors)")
        return try outcome.objects.compactMap { $0["_id"] as? String }
    }

    @Test("The command query writes the documents that match, sorted and counted, with an index and without")
    func query() throws {
        for hasIndex in [false, true] {
            if hasIndex { #expect(try run("index", "add", "people.coffer", "place", "city", "age").status == 0) }
            #expect(try ids("--where", "city = 'Oslo' and age > 1").sorted() == ["p4", "p7"])
            #expect(try ids("--where", "city = \"Oslo\"", "--order", "age,desc") == ["p7", "p4", "p1"])
            #expect(try ids("--where", "city = 'Oslo'", "--order", "age", "--skip", "1", "--limit", "1") == ["p4"])
            #expect(try ids("--order", "city,desc", "--order", "age", "--limit", "2") == ["p2", "p5"])
            #expect(try ids("--where", "tags[0] = 't3'") == ["p3"])
            #expect(try ids("--where", "_id in ['p1', 'p8']").sorted() == ["p1", "p8"])
            #expect(try ids().count == 9)
            let plan = try run("query", "people.coffer", "--where", "city = 'Oslo'", "--explain")
            #expect(
                plan.output
                    == (hasIndex
                        ? "reads the index place, narrowed by city\n" : "reads all documents; checks each document\n"))
        }
        let line = try run("query", "people.coffer", "--where", "age = 4").lines
        #expect(line == [#"{"_id":"p4","age":4,"city":"Oslo","tags":["t4"]}"#])
        let object = try run("query", "people.coffer", "--where", "age = 4", "--json").objects
        #expect((object.first?["document"] as? [String: Any])?["age"] as? Int == 4)
        #expect(object.first?["sequence"] as? Int == 5)
    }

    @Test("The command index adds, lists, updates and removes, and says what is not up to date")
    func index() throws {
        #expect(try run("index", "list", "people.coffer").output == "")
        #expect(
            try run("index", "add", "people.coffer", "place", "city", "age").output == "place  city, age  9 documents\n"
        )
        try work.write(#"{"city":"Oslo"}"#, to: "body")
        #expect(try run("put", "people.coffer", "new", "body").status == 0)
        #expect(try run("index", "list", "people.coffer").output == "place  city, age  9 documents, not up to date\n")
        // It serves nothing then, and what is found is right all the same.
        #expect(try ids("--where", "city = 'Oslo'").sorted() == ["new", "p1", "p4", "p7"])
        let plan = try run("query", "people.coffer", "--where", "city = 'Oslo'", "--explain", "--json").objects
        #expect(plan.first?["index"] == nil)
        #expect(try run("index", "update", "people.coffer").output == "place  city, age  10 documents\n")
        let listed = try run("index", "list", "people.coffer", "--json").objects
        #expect(listed.first?["paths"] as? [String] == ["city", "age"])
        #expect(listed.first?["stale"] as? Bool == false)
        #expect(try run("index", "remove", "people.coffer", "place").status == 0)
        let elements = try run("index", "add", "people.coffer", "tags", "tags[]")
        #expect(elements.output == "tags  tags[]  \(try ids("--where", "tags is a list").count) entries\n")
        #expect(try ids("--where", "tags has 't4'") == ["p4"])
        let tagged = try run("query", "people.coffer", "--where", "any tags (it like 't_')", "--explain")
        #expect(tagged.output == "reads the index tags, narrowed by tags[]; checks each document\n")
        let missing = try run("index", "remove", "people.coffer", "place")
        #expect(missing.status == 1)
        #expect(missing.errors.hasPrefix("coffer: error: there is no index place (404)"))
    }

    @Test("Bad expressions and counts are a usage error that says where, and stores are left alone")
    func badInput() throws {
        let before = try work.contents(of: "people.coffer")
        for arguments in [
            ["--where", "city ="], ["--where", "city = Oslo"], ["--where", ""], ["--limit", "-1"], ["--skip", "-1"],
        ] {
            let outcome = try CofferProcess.run(["query", "people.coffer"] + arguments + key, in: work.folder)
            #expect(outcome.status == 64, "\(arguments)")
            #expect(outcome.errors.hasPrefix("coffer: error: "))
        }
        #expect(try run("query", "people.coffer", "--where", "city =").errors.contains("at byte 6"))
        #expect(try run("index", "add", "people.coffer", "x").status == 64)
        #expect(try run("index", "add", "people.coffer", "", "city").status != 0)
        #expect(try run("index").status == 64)
        #expect(try run("query", "missing.coffer").status == 10)
        try work.write("wrong", to: "other")
        #expect(try CofferProcess.run(["query", "people.coffer", "--key", "file:other"], in: work.folder).status == 12)
        #expect(try work.contents(of: "people.coffer") == before)
    }
}
