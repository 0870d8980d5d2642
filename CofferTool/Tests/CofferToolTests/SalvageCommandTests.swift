import Foundation
import Testing

@Suite("Salvaging a store with the command")
struct SalvageCommandTests {
    let work: Workspace
    private let key = ["--key", "raw+file:key"]

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        let lines = (0..<200).map { #"{"_id":"d\#($0)","text":"\#(String(repeating: "text \($0) ", count: 40))"}"# }
        try work.write(lines.joined(separator: "\n"), to: "records")
        #expect(try run("import", "people.coffer", "records").status == 0)
        try work.write(Data(repeating: 1, count: 50_000), to: "file")
        #expect(try run("attach", "people.coffer", "d7", "file", "file").status == 0)
    }

    private func run(_ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments + key, in: work.folder)
    }

    private func damage(_ suffix: String, at offset: Int, _ count: Int = 1) throws {
        let store = work.folder.appending(path: "people.coffer")
        let names = try FileManager.default.subpathsOfDirectory(atPath: store.path)
        let url = store.appending(path: try #require(names.first { $0.hasSuffix(suffix) }))
        var data = try Data(contentsOf: url)
        for index in offset..<offset + count { data[index] ^= 0x11 }
        try data.write(to: url)
    }

    /// A page of which verifying says that documents are on it, and which ones doesn't matter.
    private func pageOfDocuments() throws -> Int {
        for page in 10..<20 {
            try damage("db.sqlite3", at: (page - 1) * 4096 + 100)
            defer { try? damage("db.sqlite3", at: (page - 1) * 4096 + 100) }
            let found = try run("check", "people.coffer", "--level", "documents")
            if found.output.contains(": its current revision can't be read") { return page }
        }
        throw CancellationError()
    }

    @Test("A salvage of a whole store ends with 0, and with all of it in the new one, under the same key or another")
    func whole() throws {
        let before = try work.contents(of: "people.coffer")
        let result = try run("salvage", "people.coffer", "out.coffer", "--json")
        #expect(result.status == 0)
        let object = try #require(result.objects.first)
        #expect(object["type"] as? String == "salvage")
        #expect(object["complete"] as? Bool == true)
        #expect(object["documents"] as? Int == 200)
        #expect(object["attachments"] as? Int == 1)
        #expect(try run("export", "out.coffer").output == run("export", "people.coffer").output)
        #expect(try run("check", "out.coffer").status == 0)
        try work.write("another password\n", to: "other")
        let other = try run("salvage", "people.coffer", "other.coffer", "--new-key", "file:other")
        #expect(other.status == 0)
        #expect(other.lines.first == "all salvaged")
        #expect(try run("get", "other.coffer", "d1").status == 12)
        #expect(try work.coffer("get", "other.coffer", "d1", "--key", "file:other").status == 0)
        #expect(try work.contents(of: "people.coffer") == before)
    }

    @Test("A salvage of a damaged store ends with 3, names what is lost, and brings the rest")
    func damaged() throws {
        let page = try pageOfDocuments()
        try damage("db.sqlite3", at: 100)
        try damage("db.sqlite3", at: (page - 1) * 4096 + 100)
        try damage(".blob", at: 30_000)
        #expect(try run("get", "people.coffer", "d1").status == 26)
        let before = try work.contents(of: "people.coffer")
        let result = try run("salvage", "people.coffer", "out.coffer", "--json")
        #expect(result.status == 3)
        #expect(try result.failure["exit"] as? Int == 3)
        #expect(try result.failure["code"] as? String == "damaged")
        let findings = try result.objects.filter { $0["type"] as? String == "finding" }
        let lost = findings.filter { $0["lost"] as? Bool == true }
        #expect(lost.contains { $0["page"] as? Int == page })
        #expect(findings.contains { $0["page"] as? Int == 1 })
        #expect(lost.contains { $0["kind"] as? String == "attachment" && $0["id"] as? String == "d7" })
        let ids = Set(lost.filter { $0["kind"] as? String == "document" }.compactMap { $0["id"] as? String })
        let there = Set(try run("ls", "out.coffer").lines)
        #expect(!ids.isEmpty && there.count > 100)
        #expect(there.union(ids).count == 200)
        #expect(try run("check", "out.coffer").status == 0)
        let text = try run("salvage", "people.coffer", "text.coffer")
        #expect(text.status == 3)
        #expect(text.lines.contains { $0.hasPrefix("lost: page \(page) of ") })
        #expect(text.lines.contains("partly salvaged"))
        #expect(text.errors.hasPrefix("coffer: error: people.coffer: "))
        #expect(try work.contents(of: "people.coffer") == before)
    }

    @Test("A salvage with a damaged MANIFEST points to the backup of the keys, with which it works")
    func manifest() throws {
        #expect(try run("key", "backup", "people.coffer", "keys").status == 0)
        try damage("MANIFEST", at: 200)
        let refused = try run("salvage", "people.coffer", "out.coffer")
        #expect(refused.status == 26)
        #expect(refused.errors.contains("coffer: hint: ") && refused.errors.contains("key restore"))
        #expect(!FileManager.default.fileExists(atPath: work.folder.appending(path: "out.coffer").path))
        #expect(try run("key", "restore", "people.coffer", "keys").status == 0)
        #expect(try run("salvage", "people.coffer", "out.coffer").status == 0)
    }

    @Test("A salvage refuses a wrong key, what is no store, and a place that is taken, and changes nothing")
    func refused() throws {
        try work.write(Data(repeating: 9, count: 32), to: "other")
        let before = try work.contents(of: ".")
        #expect(try work.coffer("salvage", "people.coffer", "out.coffer", "--key", "raw+file:other").status == 12)
        #expect(try work.coffer("salvage", "people.coffer", "out.coffer").status == 12)
        #expect(try run("salvage", "missing.coffer", "out.coffer").status == 10)
        #expect(try run("salvage", "people.coffer", "people.coffer").status == 1)
        #expect(try run("salvage", "people.coffer", "people.coffer/out.coffer").status == 1)
        #expect(try run("salvage", "people.coffer", "no/out.coffer").status == 1)
        #expect(try run("salvage", "people.coffer", "out").status == 64)
        #expect(try run("salvage", "people.coffer", "out.coffer", "--new-key", "env:NONE").status == 13)
        #expect(try work.contents(of: ".") == before)
    }

    @Test("^C ends a salvage with 130 at any moment, and leaves nothing or all")
    func interrupted() throws {
        try work.write(Data(repeating: 2, count: 20 << 20), to: "large")
        #expect(try run("attach", "people.coffer", "d8", "large", "large").status == 0)
        let before = try work.contents(of: "people.coffer")
        var cancelledCount = 0
        // A busy machine may take much longer until it watches for signals.
        for round in 0..<600 where round <= 20 || cancelledCount == 0 {
            let delay = round * 10_000
            let result = try CofferProcess.run(
                ["salvage", "people.coffer", "out.coffer"] + key, in: work.folder
            ) { process in
                usleep(UInt32(delay))
                kill(process, round % 2 == 0 ? SIGINT : SIGTERM)
            }
            let isThere = FileManager.default.fileExists(atPath: work.folder.appending(path: "out.coffer").path)
            // Before it watches for signals they end it as they end any process.
            #expect([0, 130, 128 + SIGINT, 128 + SIGTERM].contains(result.status))
            #expect(isThere == (result.status == 0))
            if result.status == 130 {
                cancelledCount += 1
                let names = try FileManager.default.contentsOfDirectory(atPath: work.folder.path)
                #expect(names.filter { $0.hasPrefix(".coffer-") } == [])
            }
            if isThere { try FileManager.default.removeItem(at: work.folder.appending(path: "out.coffer")) }
        }
        #expect(cancelledCount > 0)
        #expect(try work.contents(of: "people.coffer") == before)
    }
}
