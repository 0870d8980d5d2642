import Foundation
import Testing

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

    @Test("info says a line of each store, without a key and with one")
    func info() throws {
        let without = try work.coffer("info", "stores")
        #expect(without.status == 0)
        #expect(without.lines.count == 2)
        #expect(without.lines.first?.hasPrefix("encrypted      stores/a.coffer  uuid ") == true)
        #expect(without.lines.allSatisfy { $0.hasSuffix(", generation 1, 1 key") })
        #expect(without.errors.contains("stores/notes.txt: passed over"))
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

    @Test("info of stores of which some can't be read says so of these, and of the others what they are: 3")
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

    @Test("ls of a folder lists the stores in it, and opens none")
    func list() throws {
        let outcome = try work.coffer("ls", "stores")
        #expect(outcome.status == 0)
        #expect(outcome.lines == ["stores/a.coffer", "stores/b.coffer"])
        let nested = try work.coffer("ls", "stores/", "--recursive", "--json")
        #expect(try paths(nested) == ["stores/a.coffer", "stores/b.coffer", "stores/below/c.coffer"])
        #expect(try work.coffer("ls", "stores/a.coffer", "--key", "raw+file:key").lines == ["x"])
    }

    @Test("what makes no sense of a folder, or of a store, is refused")
    func refused() throws {
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "empty"), withIntermediateDirectories: false)
        for line in [
            ["ls", "stores", "x"], ["ls", "stores", "--key", "raw+file:key"], ["ls", "empty"], ["info", "empty"],
            ["ls", "stores/a.coffer", "--recursive"], ["info", "stores/a.coffer", "--recursive"],
            ["info", "-", "--key", "stdin"], ["ls", "stores/notes.txt"],
        ] {
            #expect(try CofferProcess.run(line, in: work.folder).status == 64, "\(line)")
        }
        #expect(try work.coffer("info", "nowhere").status == 1)
    }
}
