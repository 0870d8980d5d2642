import Foundation
import Testing

/// Lines of JSON are compared as objects: their members have no order.
@Suite("Storage engines: create --storage and convert")
struct ConvertCommandTests {
    let work: Workspace

    init() throws {
        work = try Workspace(inMemory: true)
        try work.write(Data(repeating: 7, count: 32), to: "key")
        try work.write(Data(repeating: 8, count: 32), to: "other-key")
    }

    private static let key = ["--key", "raw+file:key"]

    private func run(_ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments + Self.key, in: work.folder)
    }

    private func engine(_ store: String = "people.coffer") throws -> String? {
        try CofferProcess.run(["info", store, "--json"], in: work.folder).objects.first?["engine"] as? String
    }

    private func fill(_ store: String = "people.coffer") throws {
        try work.write("CANARY-content", to: "content")
        try work.coffer("put", store, "robin", "--key", "raw+file:key", input: #"{"text":"CANARY-text"}"#)
        try work.coffer("attach", store, "robin", "file", "content", "--key", "raw+file:key")
    }

    @Test("The command create makes a store of the engine that it is told, and of SQLCipher unless told")
    func create() throws {
        for (arguments, engine) in [
            ([], "SQLCipher"), (["--storage", "sqlite"], "SQLCipher"), (["--storage", "sealed"], "Sealed"),
        ] {
            let name = "store-\(arguments.last ?? "default").coffer"
            let outcome = try CofferProcess.run(["create", name, "--json"] + arguments + Self.key, in: work.folder)
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try outcome.objects.first?["engine"] as? String == engine)
            #expect(try self.engine(name) == engine)
        }
        let plain = try CofferProcess.run(["create", "plain.coffer", "--unencrypted"], in: work.folder)
        #expect(plain.status == 0)
        #expect(try engine("plain.coffer") == "SQLite")
    }

    @Test("Sealed pages without a key, and engines that there aren't, are wrong command lines: nothing is made")
    func wrongLines() throws {
        for arguments in [
            ["create", "new.coffer", "--unencrypted", "--storage", "sealed"],
            ["create", "new.coffer", "--key", "raw+file:key", "--storage", "rocksdb"],
            ["convert", "new.coffer", "--key", "raw+file:key"],
            ["convert", "new.coffer", "--key", "raw+file:key", "--storage", "SQLite"],
        ] {
            #expect(try CofferProcess.run(arguments, in: work.folder).status == 64, "\(arguments)")
        }
        #expect(!FileManager.default.fileExists(atPath: work.folder.appending(path: "new.coffer").path))
    }

    @Test("The command convert brings a store to the other engine and back, under all its keys")
    func convert() throws {
        try work.coffer("create", "people.coffer", "--key", "raw+file:key")
        try fill()
        #expect(
            try run("key", "add", "people.coffer", "--new-key", "raw+file:other-key", "--label", "spare").status == 0)
        for (storage, engine, generation) in [
            ("sealed", "Sealed", 2), ("sqlite", "SQLCipher", 3), ("sealed", "Sealed", 4),
        ] {
            let outcome = try run("convert", "people.coffer", "--storage", storage, "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            let result = try #require(try outcome.objects.first)
            #expect(result["type"] as? String == "conversion")
            #expect(result["storage"] as? String == storage)
            #expect(result["converted"] as? Bool == true)
            #expect(result["generation"] as? Int == generation)
            #expect(result["documents"] as? Int == 1)
            #expect(result["attachments"] as? Int == 1)
            #expect(result["oldGenerationIsGone"] as? Bool == true)
            #expect(try self.engine() == engine)
            for key in ["key", "other-key"] {
                let content = try CofferProcess.run(
                    ["cat", "people.coffer", "robin", "file", "--key", "raw+file:\(key)"], in: work.folder)
                #expect(content.output == "CANARY-content")
            }
            #expect(try run("check", "people.coffer").status == 0)
            #expect(try run("key", "list", "people.coffer").lines.contains { $0.contains("spare") })
        }
        let text = try run("convert", "people.coffer", "--storage", "sqlite")
        #expect(text.lines.contains("engine       sqlite") && text.lines.contains("generation   4 to 5"))
    }

    @Test(
        "The command leakcheck finds nothing of a store of sealed pages, and all of one that it is copied into without a key"
    )
    func leaks() throws {
        try work.coffer("create", "people.coffer", "--key", "raw+file:key", "--storage", "sealed")
        try fill()
        func leakcheck(_ store: String) throws -> Int32 {
            try CofferProcess.run(
                ["leakcheck", store, "--marker", "CANARY-text", "--marker", "CANARY-content"], in: work.folder
            ).status
        }
        #expect(try leakcheck("people.coffer") == 0)
        #expect(try run("convert", "people.coffer", "--storage", "sqlite").status == 0)
        #expect(try run("convert", "people.coffer", "--storage", "sealed").status == 0)
        #expect(try leakcheck("people.coffer") == 0)
        #expect(try run("backup", "people.coffer", "plain.coffer", "--unencrypted").status == 0)
        #expect(try leakcheck("plain.coffer") != 0)
    }

    @Test("The command convert leaves a store alone that has the engine already")
    func nothingToDo() throws {
        try work.coffer("create", "people.coffer", "--key", "raw+file:key", "--storage", "sealed")
        let outcome = try run("convert", "people.coffer", "--storage", "sealed", "--json")
        #expect(outcome.status == 0)
        #expect(try outcome.objects.first?["converted"] as? Bool == false)
        #expect(
            try CofferProcess.run(["info", "people.coffer", "--json"], in: work.folder).objects.first?["generation"]
                as? Int == 1)
        #expect(
            try run("convert", "people.coffer", "--storage", "sealed").lines == ["the store has this engine already"])
    }

    @Test("The command convert ends with 12 for a wrong key, with 1 for a store without one, with 10 for none")
    func refusals() throws {
        try work.coffer("create", "people.coffer", "--key", "raw+file:key")
        let wrong = try CofferProcess.run(
            ["convert", "people.coffer", "--storage", "sealed", "--key", "raw+file:other-key"], in: work.folder)
        #expect(wrong.status == 12)
        try work.coffer("create", "plain.coffer", "--unencrypted")
        let plain = try CofferProcess.run(
            ["convert", "plain.coffer", "--storage", "sealed", "--json"], in: work.folder)
        #expect(plain.status == 1)
        #expect(try plain.failure["status"] as? Int == 406)
        #expect(try CofferProcess.run(["convert", "plain.coffer", "--storage", "sqlite"], in: work.folder).status == 0)
        #expect(try run("convert", "missing.coffer", "--storage", "sealed").status == 10)
        #expect(try engine() == "SQLCipher")
    }

    @Test("The command convert reports progress where it is asked to")
    func progress() throws {
        try work.coffer("create", "people.coffer", "--key", "raw+file:key")
        try fill()
        let outcome = try run("convert", "people.coffer", "--storage", "sealed", "--progress", "--json")
        #expect(outcome.status == 0)
        #expect(outcome.errors.contains(#""type":"progress""#), "\(outcome.errors)")
    }

    @Test("The command rotate changes the keys of stores of both engines, and each keeps its own")
    func rotate() throws {
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "stores"), withIntermediateDirectories: false)
        for (name, storage) in [("a", "sqlite"), ("b", "sealed"), ("c", "sealed")] {
            try work.coffer("create", "stores/\(name).coffer", "--key", "raw+file:key", "--storage", storage)
            try fill("stores/\(name).coffer")
        }
        let outcome = try run("rotate", "stores", "--new-key", "raw+file:other-key", "--json")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(try ["a", "b", "c"].map { try engine("stores/\($0).coffer") } == ["SQLCipher", "Sealed", "Sealed"])
        for name in ["a", "b", "c"] {
            let document = try CofferProcess.run(
                ["get", "stores/\(name).coffer", "robin", "--key", "raw+file:other-key"], in: work.folder)
            #expect(document.lines.joined().contains("CANARY-text"))
        }
        let audit = try CofferProcess.run(["audit", "stores", "--json"], in: work.folder)
        let engines = try audit.objects.compactMap { $0["engine"] as? String }
        #expect(engines == ["SQLCipher", "Sealed", "Sealed"])
        let text = try CofferProcess.run(["audit", "stores"], in: work.folder).lines
        #expect(text.count { $0.contains("sealed pages") } == 2)
    }
}
