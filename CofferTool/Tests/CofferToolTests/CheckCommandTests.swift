import Foundation
import Testing

@Suite("Checking a store")
struct CheckCommandTests {
    let work: Workspace
    private let key = ["--key", "raw+file:key"]
    static let levels = ["keys", "pages", "documents", "attachments", "everything"]

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        try work.write(#"{"text":"\#(String(repeating: "long ", count: 2000))"}"#, to: "body")
        #expect(try run("put", "people.coffer", "robin", "body").status == 0)
        try work.write(Data(repeating: 1, count: 50_000), to: "file")
        #expect(try run("attach", "people.coffer", "robin", "file", "file").status == 0)
    }

    private func run(_ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments + key, in: work.folder)
    }

    private func file(_ suffix: String) throws -> URL {
        let store = work.folder.appending(path: "people.coffer")
        let names = try FileManager.default.subpathsOfDirectory(atPath: store.path)
        return store.appending(path: try #require(names.first { $0.hasSuffix(suffix) }))
    }

    private func flip(_ url: URL, at offset: Int) throws {
        var data = try Data(contentsOf: url)
        data[offset] ^= 1
        try data.write(to: url)
    }

    @Test("A check of a sound one ends with 0 at every level, and says how much it has looked at", arguments: levels)
    func sound(level: String) throws {
        let result = try run("check", "people.coffer", "--level", level, "--json")
        #expect(result.status == 0)
        let object = try #require(result.objects.first)
        #expect(object["type"] as? String == "check")
        #expect(object["sound"] as? Bool == true)
        #expect(object["level"] as? String == level)
        #expect((object["attachments"] as? Int) == (["attachments", "everything"].contains(level) ? 1 : nil))
        #expect(try run("check", "people.coffer", "--level", level).lines.first == "sound")
    }

    @Test("A check of a damaged one ends with 26, and names the page, the document and the attachment")
    func damaged() throws {
        let database = try file("db.sqlite3"), content = try file(".blob")
        try flip(content, at: 30_000)
        let attachment = try run("check", "people.coffer", "--json")
        #expect(attachment.status == 26)
        #expect(try attachment.objects.map { $0["type"] as? String } == ["finding", "check"])
        #expect(try attachment.objects.first?["kind"] as? String == "attachment")
        #expect(try attachment.objects.first?["id"] as? String == "robin")
        #expect(attachment.errors.contains("damaged"))
        #expect(try run("check", "people.coffer", "--level", "documents").status == 0)
        try flip(content, at: 30_000)
        try flip(database, at: 4096 + 100)
        let page = try run("check", "people.coffer", "--level", "pages", "--json")
        #expect(page.status == 26)
        #expect(try page.objects.first?["page"] as? Int == 2)
        #expect(try run("check", "people.coffer", "--level", "pages").lines.first?.hasPrefix("page 2 of ") == true)
        try flip(database, at: 4096 + 100)
        try flip(database, at: 100)
        // It opens no more, and is checked all the same.
        #expect(try run("get", "people.coffer", "robin").status == 26)
        #expect(try run("check", "people.coffer", "--json").objects.first?["page"] as? Int == 1)
        try flip(database, at: 100)
        try flip(work.folder.appending(path: "people.coffer/MANIFEST"), at: 70)
        #expect(try run("check", "people.coffer", "--json").objects.first?["kind"] as? String == "manifest")
    }

    @Test("The command check says what a page of zeros means, and what to do about a damaged store")
    func zeroPage() throws {
        let database = try file("db.sqlite3")
        var data = try Data(contentsOf: database)
        data.resetBytes(in: 4096..<3 * 4096)
        try data.write(to: database)
        let result = try run("check", "people.coffer", "--level", "pages")
        #expect(result.status == 26)
        let first = try #require(result.lines.first)
        #expect(first.contains("page 2 of db.sqlite3, page 3 of db.sqlite3: it is all zeros, which an encrypted "))
        let verbose = try run("check", "people.coffer", "--level", "pages", "--verbose")
        #expect(verbose.lines.count(where: { $0.contains("it is all zeros, which an encrypted page never is") }) == 2)
        #expect(result.errors.contains("hint: coffer salvage copies all that can still be read to a new store"))
        let json = try run("check", "people.coffer", "--level", "pages", "--json").objects
        #expect(json.map { $0["page"] as? Int } == [2, 3, nil])
        #expect((json.first?["detail"] as? String)?.contains("it was never written, or was lost") == true)
    }

    /// Two bad pages brought 760 lines and "documents 0".
    @Test("The command check sums up by cause, says how much can be read, and lists all with --verbose and --json")
    func summary() throws {
        let records = (0..<2_000).map { #"{"_id":"doc-\#($0)","text":"\#(String(repeating: "words ", count: 30))"}"# }
        try work.write(records.joined(separator: "\n"), to: "records.ndjson")
        #expect(try run("import", "people.coffer", "records.ndjson").status == 0)
        let database = try file("db.sqlite3")
        let pageCount = try Data(contentsOf: database).count / 4096
        for page in [pageCount / 4, pageCount / 2] { try flip(database, at: page * 4096 + 100) }
        let all = try run("check", "people.coffer", "--json")
        let findings = try all.objects.filter { $0["type"] as? String == "finding" }
        #expect(findings.count > 20)
        let readable = try #require(all.objects.last?["documents"] as? Int)
        #expect((1_900..<2_001).contains(readable))
        let verbose = try run("check", "people.coffer", "--verbose")
        #expect(verbose.lines.firstIndex(of: "damaged") == findings.count)
        let short = try run("check", "people.coffer")
        let lines = short.lines
        #expect(try #require(lines.firstIndex(of: "damaged")) < 15, "\(short.output)")
        #expect(lines.first?.hasSuffix("its MAC doesn't match its bytes") == true)
        let lost = findings.count { $0["detail"] as? String == "its current revision can't be read" }
        #expect(lost > 3)
        #expect(lines.contains { $0.hasSuffix(" and \(lost - 3) more: its current revision can't be read") })
        #expect(lines.contains("documents    \(readable) can be read"))
        for outcome in [short, verbose, all] { #expect(outcome.status == 26) }
        #expect(short.errors.contains("\(findings.count) findings"))
        #expect(short.errors.contains("coffer salvage copies") && short.errors.contains("--verbose lists all of it"))
        #expect(!verbose.errors.contains("--verbose"))
    }

    @Test(
        "The command check reads the data of a sparse file alone, and names what it doesn't look into",
        .timeLimit(.minutes(30)))
    func oddFiles() throws {
        let store = work.folder.appending(path: "people.coffer").path
        #expect(mkfifo(store + "/fifo", 0o600) == 0)
        #expect(symlink("MANIFEST", store + "/link") == 0)
        let sound = try run("check", "people.coffer", "--json")
        #expect(sound.status == 0)
        #expect(try sound.objects.map { $0["type"] as? String } == ["skipped", "skipped", "check"])
        #expect(try sound.objects.map { $0["path"] as? String } == ["fifo", "link", nil])
        #expect(try sound.objects.last?["skipped"] as? Int == 2)
        #expect(try run("check", "people.coffer").lines.first == "fifo: a FIFO, not looked into")
        let database = try file("db.sqlite3")
        let count = try Data(contentsOf: database).count / 4096
        #expect(truncate(database.path, 4 << 40) == 0)
        let result = try run("check", "people.coffer", "--level", "pages", "--json")
        #expect(result.status == 26)
        let findings = try result.objects.filter { $0["type"] as? String == "finding" }
        #expect(findings.map { $0["page"] as? Int } == [count + 1, 262_146])
        #expect(try result.objects.last?["pages"] as? Int == (4 << 40) / 4096)
    }

    @Test("A check changes no byte, and refuses what it can't check")
    func refused() throws {
        let before = try work.contents(of: "people.coffer")
        #expect(try run("check", "people.coffer").status == 0)
        #expect(try CofferProcess.run(["check", "people.coffer"], in: work.folder).status == 12)
        try work.write(Data(repeating: 9, count: 32), to: "other")
        #expect(
            try CofferProcess.run(["check", "people.coffer", "--key", "raw+file:other"], in: work.folder).status == 12)
        #expect(try run("check", "missing.coffer").status == 10)
        #expect(try run("check", "people.coffer", "--level", "some").status == 64)
        try FileManager.default.removeItem(at: work.folder.appending(path: "other"))
        #expect(try work.contents(of: "people.coffer") == before)
    }
}
