import Coffer
import Foundation
import Testing

@Suite("Living with a store: log, changes, compact and backup")
struct HousekeepingCommandTests {
    let work: Workspace
    private let key = ["--key", "raw+file:key"]

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        for number in 1...3 { try put("a", #"{"n":\#(number)}"#) }
        try put("b", #"{"n":1}"#)
        try work.write("content", to: "file")
        #expect(try run("attach", "people.coffer", "a", "file", "file").status == 0)
        #expect(try run("rm", "people.coffer", "b").status == 0)
    }

    private func put(_ id: String, _ json: String) throws {
        try work.write(json, to: "body")
        #expect(try run("put", "people.coffer", id, "body").status == 0)
    }

    private func run(_ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments + key, in: work.folder)
    }

    @Test("The command log lists a document's revisions, the newest first, also of a deleted one")
    func log() throws {
        let lines = try run("log", "people.coffer", "a").lines
        #expect(lines.map { $0.prefix(2) } == ["4-", "3-", "2-", "1-"])
        #expect(lines[0].hasSuffix("  current"))
        #expect(lines.dropFirst().allSatisfy { !$0.contains("current") })
        let deleted = try run("log", "people.coffer", "b", "--json").objects
        #expect(deleted.map { $0["deleted"] as? Bool } == [true, false])
        #expect(deleted[0]["parent"] as? String == deleted[1]["revision"] as? String)
        #expect(deleted[1]["parent"] == nil)
        let missing = try run("log", "people.coffer", "nobody")
        #expect(missing.status == 1)
        #expect(missing.errors.contains("404"))
    }

    @Test("The command log lists every branch once, with what is in conflict")
    func branches() throws {
        var options = DatabaseOptions()
        options.encryptionKey = try SymmetricKey(data: Workspace.key)
        let database = try Manager(directory: work.folder).openDatabase(named: "people", options: options)
        let first = try #require(try database["a"]?.currentRevision?.history.first)
        let branch = try first.createRevision()
        branch["n"] = 100
        try branch.saveAllowingConflict()
        try database.close()
        let revisions = try run("log", "people.coffer", "a", "--json").objects
        #expect(revisions.count == 5)
        #expect(revisions.count { $0["conflict"] as? Bool == true } == 1)
        #expect(revisions.count { $0["current"] as? Bool == true } == 1)
        #expect((revisions[4]["revision"] as? String)?.hasPrefix("2-") == true)
    }

    @Test("The command changes lists each document once, in the order of its last change, and goes on where it is told")
    func changes() throws {
        let all = try run("changes", "people.coffer", "--json").objects
        #expect(all.map { $0["id"] as? String } == ["a", "b"])
        #expect(all.map { $0["deleted"] as? Bool } == [false, true])
        let sequence = try #require(all[0]["sequence"] as? Int)
        #expect(try run("changes", "people.coffer", "--since", "\(sequence)").lines.count == 1)
        #expect(try run("changes", "people.coffer", "--limit", "1").lines.count == 1)
        #expect(try run("changes", "people.coffer", "--since", "-1").status == 64)
    }

    @Test("The option --depth of compact sets how many revisions of a line are kept, from 1 on")
    func depth() throws {
        for bad in ["0", "-1", "many"] {
            let outcome = try run("compact", "people.coffer", "--depth=\(bad)")
            #expect(outcome.status == 64, "\(bad): \(outcome.errors)")
        }
        #expect(try run("log", "people.coffer", "a").lines.count == 4)
        #expect(try run("compact", "people.coffer", "--depth", "2").status == 0)
        #expect(try run("log", "people.coffer", "a").lines.map { $0.prefix(2) } == ["4-", "3-"])
        try put("a", #"{"n":4}"#)
        #expect(try run("log", "people.coffer", "a").lines.map { $0.prefix(2) } == ["5-", "4-"])
    }

    @Test("The command compact drops what was replaced, and says how much")
    func compact() throws {
        let result = try #require(try run("compact", "people.coffer", "--json").objects.first)
        #expect(result["type"] as? String == "compaction")
        #expect((result["revisions"] as? Int ?? 0) >= 3)
        let log = try run("log", "people.coffer", "a").lines
        #expect(log[0].hasSuffix("current"))
        #expect(log[1].hasSuffix("compacted"))
        #expect(try run("get", "people.coffer", "a").status == 0)
    }

    @Test("The command backup makes a whole store under its own key, and nothing where one is or its key is missing")
    func backup() throws {
        try work.write(Data(repeating: 9, count: 32), to: "other")
        let result = try run("backup", "people.coffer", "copy.coffer", "--new-key", "raw+file:other", "--json")
        #expect(result.status == 0)
        #expect(try result.objects.first?["documents"] as? Int == 1)
        #expect(try result.objects.first?["attachments"] as? Int == 1)
        let copy = ["copy.coffer", "a", "--key", "raw+file:other"]
        #expect(try CofferProcess.run(["get"] + copy, in: work.folder).status == 0)
        #expect(try run("get", "copy.coffer", "a").status == 12)
        #expect(try run("backup", "people.coffer", "copy.coffer", "--new-key", "raw+file:other").status == 1)
        #expect(try run("backup", "people.coffer", "second.coffer").status == 64)
        #expect(try run("backup", "people.coffer", "second", "--unencrypted").status == 64)
        let both = try run("backup", "people.coffer", "second.coffer", "--unencrypted", "--new-key", "raw+file:other")
        #expect(both.status == 64)
        #expect(try run("backup", "people.coffer", "plain.coffer", "--unencrypted").status == 0)
        #expect(try CofferProcess.run(["get", "plain.coffer", "a"], in: work.folder).status == 0)
        #expect(!FileManager.default.fileExists(atPath: work.folder.appending(path: "second.coffer").path))
    }
}
