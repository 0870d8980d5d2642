import Coffer
import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite("Exporting")
struct ExportCommandTests {
    let work: Workspace
    private let key = ["--key", "raw+file:key"]

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
    }

    private func run(_ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments + key, in: work.folder)
    }

    private func open(_ name: String = "people", _ body: (Database) throws -> Void) throws {
        var options = DatabaseOptions()
        options.encryptionKey = try SymmetricKey(data: Workspace.key)
        options.create = true
        let database = try Manager(directory: work.folder).openDatabase(named: name, options: options)
        try body(database)
        try database.close()
    }

    private func path(_ name: String) -> String { work.folder.appending(path: name).path(percentEncoded: false) }
    private func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: path(name)) }

    private func mode(_ name: String) -> mode_t {
        var status = stat()
        return lstat(path(name), &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    /// Documents with attachments and blobs, in several revisions.
    private func fill(_ database: Database) throws {
        try database.inTransaction {
            for number in 0..<3_000 {
                let text = number % 100 == 0 ? String(repeating: "long ", count: 2_000) : "short"
                try database.save(json: Data(#"{"n":\#(number),"t":"\#(text)"}"#.utf8), withID: "doc \(number)")
            }
            let numbers =
                #"{"z":-0.0,"i":9007199254740993,"m":18446744073709551615,"l":-9223372036854775808,"e":1e300}"#
            for id in ["e\u{301}", "\u{E9}", "a/../../b", "..", "\n\t\u{7F}", "\"\\", "🙂", "_design/x"] {
                try database.save(json: Data(numbers.utf8), withID: id)
            }
            try database.save(json: Data(#"{"\u0000":"\u2028\u001f","A":{"_attachments":1}}"#.utf8), withID: "empty")
        }
        for round in 0..<3 {
            let draft = try database.document(withID: "doc 5").newRevision()
            draft["round"] = round
            draft.setAttachment(named: "../\(round)/x", contentType: "text/plain", content: Data("round \(round)".utf8))
            draft.setAttachment(named: "e\u{301}", contentType: nil, content: Data())
            draft.setAttachment(named: "\u{E9}", contentType: "", content: Data("shared".utf8))
            try draft.save()
        }
        let draft = try database.document(withID: "media").newRevision()
        draft.setAttachment(
            named: "_attachments", contentType: nil,
            content: Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 >> 3) }))
        draft["revpos"] = 7
        draft["blobs"] = [
            Blob(contentType: "image/png", data: Data("shared".utf8)).jsonValue,
            ["deep": [Blob(data: Data("x".utf8)).jsonValue]],
        ]
        try draft.save()
        try database.save(json: Data("{}".utf8), withID: "deleted")
        try database.document(withID: "deleted").delete()
    }

    @Test("An export that is imported into another store gives the same documents: another export has the same bytes")
    func roundTrip() throws {
        try open { try fill($0) }
        let first = try run("export", "people.coffer", "first.ndjson", "--attachments", "first", "--json")
        #expect(first.status == 0)
        #expect(first.errors.isEmpty)
        let summary = try #require(try first.objects.first)
        #expect(summary["type"] as? String == "export")
        #expect(summary["documents"] as? Int == 3_010)
        #expect(summary["contents"] as? Int == 7)
        #expect(summary["leftOut"] as? Int == 0)
        let text = try String(contentsOfFile: path("first.ndjson"), encoding: .utf8)
        #expect(summary["bytes"] as? Int == text.utf8.count)
        let lines = text.split(separator: "\n")
        #expect(lines.count == 3_010)
        #expect(lines.allSatisfy { $0.hasPrefix(#"{"_id":""#) })
        #expect(!text.contains("deleted"))
        let imported = try run("create", "other.coffer")
        #expect(imported.status == 0)
        let result = try run("import", "other.coffer", "first.ndjson", "--attachments", "first")
        #expect(result.errors.isEmpty)
        #expect(result.output == "3010 documents from 1 file\n")
        #expect(try run("export", "other.coffer", "second.ndjson", "--attachments", "second").status == 0)
        #expect(try Data(contentsOf: work.folder.appending(path: "second.ndjson")) == Data(text.utf8))
        #expect(try work.contents(of: "first") == work.contents(of: "second"))
        #expect(try run("export", "other.coffer").output == text)
        #expect(try run("cat", "other.coffer", "doc 5", "../2/x").output == "round 2")
        #expect(try run("cat", "other.coffer", "doc 5", "e\u{301}").output == "")
        #expect(
            try run("ls", "other.coffer", "doc 5", "--json").objects.map { $0["contentType"] as? String } == [
                "text/plain", "text/plain", "text/plain", nil, "",
            ])
        try open("other") { database in
            let blobs = try #require(try database["media"]?.properties?["blobs"])
            #expect(blobs[0]?.blobValue?.contentType == "image/png")
            #expect(try blobs[1]?["deep"]?[0]?.blobValue?.content == Data("x".utf8))
        }
    }

    @Test("A line of an export has the id first, and attachments as a first revision has them")
    func line() throws {
        try open { database in
            for round in 1...2 {
                let draft = try database.document(withID: "a").newRevision()
                draft["A"] = round
                draft["z"] = ["_attachments": ["x": ["revpos": 5]]]
                draft.setAttachment(named: "\(round)", contentType: nil, content: Data("1".utf8))
                try draft.save()
            }
        }
        let stub = #"{"digest":"sha1-NWoZK3kTsExUV00Ywo1G5jlUKKs=","length":1,"revpos":1,"stub":true}"#
        let outcome = try run("export", "people.coffer", "-")
        #expect(
            outcome.output
                == #"{"_id":"a","A":2,"_attachments":{"1":\#(stub),"2":\#(stub)},"z":{"_attachments":{"x":{"revpos":5}}}}"#
                + "\n")
        #expect(
            outcome.errors == "coffer: note: 2 attachments and blobs were left out: --attachments exports them too\n")
        let note = try run("export", "people.coffer", "--json")
        #expect(try note.failure["type"] as? String == "note")
    }

    @Test("An export of an empty store is an empty file")
    func empty() throws {
        #expect(
            try run("export", "people.coffer", "out", "--attachments", "d").output
                == "0 documents, 0 contents of 0 bytes\n")
        #expect(try Data(contentsOf: work.folder.appending(path: "out")).isEmpty)
        #expect(try run("import", "people.coffer", "out", "--attachments", "d").status == 0)
    }

    @Test("Files of an export are for their owner alone, and none is overwritten")
    func files() throws {
        try open { try fill($0) }
        #expect(try run("export", "people.coffer", "out", "--attachments", "d/").status == 0)
        #expect(mode("out") == 0o600)
        #expect(mode("d") == 0o700)
        let contents = try work.contents(of: "d")
        #expect(contents.count == 7)
        for name in contents.keys {
            #expect(mode("d/" + name) == 0o600)
            #expect(name.wholeMatch(of: /[0-9a-f]{40}\.blob/) != nil)
        }
        let file = try Data(contentsOf: work.folder.appending(path: "out"))
        for arguments in [["out"], ["other", "--attachments", "d"], ["out", "--attachments", "new"]] {
            let outcome = try CofferProcess.run(["export", "people.coffer"] + arguments + key, in: work.folder)
            #expect(outcome.status == 1)
            #expect(outcome.errors.contains("nothing is overwritten"))
        }
        #expect(try Data(contentsOf: work.folder.appending(path: "out")) == file)
        #expect(try work.contents(of: "d") == contents)
        #expect(!exists("other") && !exists("new") && !exists("other.partial"))
        #expect(symlink("nowhere", path("link")) == 0)
        #expect(try run("export", "people.coffer", "link").status == 1)
        #expect(!exists("nowhere"))
        #expect(try run("export", "people.coffer", "none/out").status == 1)
    }

    @Test(
        "An export writes nothing into the store itself",
        arguments: ["people.coffer/x", "./people.coffer/../people.coffer/x/", "link/x"])
    func insideStore(place: String) throws {
        #expect(symlink("people.coffer", path("link")) == 0)
        let before = try work.contents(of: "people.coffer")
        if !place.hasSuffix("/") { #expect(try run("export", "people.coffer", place).status == 64) }
        #expect(try run("export", "people.coffer", "out", "--attachments", place).status == 64)
        #expect(try work.contents(of: "people.coffer") == before)
        #expect(!exists("out"))
    }

    @Test("A revision that another one won against is not exported, and that is said")
    func conflicts() throws {
        try open { database in
            let first = try database.save(json: Data(#"{"n":1}"#.utf8), withID: "a")
            for number in 2...3 {
                let draft = try first.createRevision()
                draft["n"] = number
                try draft.saveAllowingConflict()
            }
        }
        let outcome = try run("export", "people.coffer")
        #expect(outcome.lines.count == 1)
        #expect(outcome.errors == "coffer: note: 1 document has a conflict, and its winning revision was exported\n")
    }

    @Test("Contents that were never downloaded end an export with 3, and everything else is there")
    func neverDownloaded() throws {
        try open { database in
            let there = try database.document(withID: "b").newRevision()
            there.setAttachment(named: "x", contentType: nil, content: Data("x".utf8))
            try there.save()
            let json =
                #"{"_id":"a","_rev":"1-a","_attachments":{"p":{"digest":"md5-abc","length":3,"revpos":1,"stub":true}}}"#
            try database.putExistingRevision(json: Data(json.utf8))
        }
        let outcome = try run("export", "people.coffer", "out", "--attachments", "d", "--json")
        #expect(outcome.status == 3)
        #expect(try outcome.failure["status"] as? Int == 404)
        #expect(try outcome.objects.first?["contents"] as? Int == 1)
        #expect(try String(contentsOfFile: path("out"), encoding: .utf8).split(separator: "\n").count == 2)
        #expect(try work.contents(of: "d").count == 1)
    }
}

@Suite("An export that fails")
struct FailingExportTests {
    let work: Workspace
    private let key = ["--key", "raw+file:key"]

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        for number in 1...3 {
            try work.write(Data(repeating: UInt8(number), count: 3_000_000), to: "content")
            #expect(try run("attach", "people.coffer", "d\(number)", "film", "content").status == 0)
        }
        try work.write((0..<5_000).map { "{\"_id\":\"\($0)\",\"text\":\"some text\"}\n" }.joined(), to: "in.ndjson")
        #expect(try run("import", "people.coffer", "in.ndjson").status == 0)
    }

    private func run(_ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments + key, in: work.folder)
    }

    private var names: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: work.folder.path(percentEncoded: false)).sorted()
        }
    }

    /// Returns when there is a file or folder of that name, or when the process that should make it has ended.
    private func wait(for name: String, by process: pid_t) {
        let path = work.folder.appending(path: name).path
        _ = eventually { FileManager.default.fileExists(atPath: path) || CofferProcess.hasEnded(process) }
    }

    @Test("An export that fails for damage in a content leaves nothing, names it, and ends with 26")
    func damagedContent() throws {
        let blobs = try work.contents(of: "people.coffer").keys.filter { $0.hasSuffix(".blob") }.sorted()
        let file = work.folder.appending(path: "people.coffer/" + blobs[1])
        var bytes = try Data(contentsOf: file)
        bytes[2_000_000] ^= 1
        try bytes.write(to: file)
        let before = try names
        let outcome = try run("export", "people.coffer", "out", "--attachments", "d", "--json")
        #expect(outcome.status == 26)
        #expect(outcome.output.isEmpty)
        #expect(try outcome.failure["code"] as? String == "damaged")
        #expect((try outcome.failure["message"] as? String)?.contains("attachment film of document d") == true)
        #expect(try names == before)
        // A folder that was there stays.
        try FileManager.default.createDirectory(at: work.folder.appending(path: "d"), withIntermediateDirectories: true)
        #expect(try run("export", "people.coffer", "out", "--attachments", "d").status == 26)
        #expect(try names == (before + ["d"]).sorted())
        #expect(try work.contents(of: "d").isEmpty)
        // Without contents there is no damage.
        #expect(try run("export", "people.coffer", "out").status == 0)
    }

    @Test("An export that fails since another one writes into the same folder leaves the other's files alone")
    func otherExport() throws {
        let pipe = work.folder.appending(path: "pipe").path(percentEncoded: false)
        let before = try names
        #expect(mkfifo(pipe, 0o600) == 0)
        let ends = open(pipe, O_RDWR | O_CLOEXEC | O_NONBLOCK)
        let outcome = try CofferProcess.run(
            ["export", "people.coffer", "--attachments", "d"] + key, in: work.folder, .init(outputPath: pipe)
        ) { process in
            // It waits in the documents that come before those with contents.
            wait(for: "d", by: process)
            try work.write("half of it", to: "d/ab767e3e5b35d41848dcfac801276ee9634d7e9d.blob")
            var bytes = [UInt8](repeating: 0, count: 65_536)
            _ = eventually { read(ends, &bytes, bytes.count) <= 0 && CofferProcess.hasEnded(process) }
        }
        close(ends)
        unlink(pipe)
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains("ab767e3e5b35d41848dcfac801276ee9634d7e9d.blob: File exists"))
        #expect(try names == (before + ["d"]).sorted())
        #expect(try work.contents(of: "d").values.map { $0 } == [Data("half of it".utf8)])
    }

    @Test("An export that fails for damage in the database leaves nothing, and ends with 26")
    func damagedDatabase() throws {
        let name = try #require(try work.contents(of: "people.coffer").keys.first { $0.hasSuffix("db.sqlite3") })
        let file = work.folder.appending(path: "people.coffer/" + name)
        var bytes = try Data(contentsOf: file)
        for page in 20..<(bytes.count / 4096) { bytes[page * 4096 + 100] ^= 1 }
        try bytes.write(to: file)
        let before = try names
        #expect(try run("export", "people.coffer", "out", "--attachments", "d").status == 26)
        #expect(try names == before)
    }

    @Test("An export to a full disk fails, one whose reader went away ends quietly, and neither leaves anything")
    func output() throws {
        let before = try names
        let command = "\"$coffer\" export people.coffer --key raw+file:key --attachments d"
        #expect(try work.shell("\(command) >/dev/full 2>/dev/null").status == 28)
        #expect(try names == before)
        let shown = try work.shell("{ \(command) 2>errors; echo $? >status; } | head -c 100 | wc -c").output
        #expect(shown.trimmingCharacters(in: .whitespacesAndNewlines) == "100")
        // Ended by SIGPIPE, as others are, and without a word.
        #expect(try work.shell("cat status").output == "141\n")
        #expect(try work.shell("cat errors").output.isEmpty)
        #expect(try names == (before + ["errors", "status"]).sorted())
    }

    @Test(
        "An export that is ended by ^C or another orderly signal leaves nothing, and ends with 130",
        arguments: [SIGINT, SIGTERM, SIGHUP])
    func signalled(signal: Int32) throws {
        let pipe = work.folder.appending(path: "pipe").path(percentEncoded: false)
        let before = try names
        #expect(mkfifo(pipe, 0o600) == 0)
        // Nobody reads it, so that the process waits there.
        let ends = open(pipe, O_RDWR | O_CLOEXEC)
        let outcome = try CofferProcess.run(
            ["export", "people.coffer", "--attachments", "d"] + key, in: work.folder, .init(outputPath: pipe)
        ) { process in
            wait(for: "d", by: process)
            usleep(500_000)
            kill(process, signal)
        }
        close(ends)
        unlink(pipe)
        #expect(outcome.status == 130)
        #expect(outcome.errors == "coffer: error: cancelled, and nothing was changed\n")
        #expect(try names == before)
    }

    @Test("An export that is killed leaves no file under its name, and the next says what is left")
    func killed() throws {
        let outcome = try CofferProcess.run(
            ["export", "people.coffer", "out", "--attachments", "d"] + key, in: work.folder
        ) { process in
            wait(for: "out.partial", by: process)
            kill(process, SIGKILL)
        }
        #expect(outcome.status == 128 + SIGKILL)
        #expect(try !names.contains("out"))
        let again = try run("export", "people.coffer", "out")
        #expect(again.status == 1)
        #expect(again.errors.contains("out.partial: it exists already\ncoffer: hint: "))
        #expect(unlink(work.folder.appending(path: "out.partial").path) == 0)
        #expect(try run("export", "people.coffer", "out").status == 0)
    }
}

@Suite("Importing an export whose contents are not what they were")
struct DamagedExportTests {
    let work: Workspace
    private let key = ["--key", "raw+file:key"]

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        for (number, content) in ["first", "second", ""].enumerated() {
            try work.write(content, to: "content")
            #expect(try run("attach", "people.coffer", "d\(number)", "a", "content").status == 0)
        }
        #expect(try run("export", "people.coffer", "out.ndjson", "--attachments", "d").status == 0)
        #expect(try run("create", "other.coffer").status == 0)
    }

    private func run(_ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments + key, in: work.folder)
    }

    /// The file with the content `second`, of the record on the second line.
    private let file = "d/352f7829a2384b001cc12b0c2613c756454a1f6a.blob"

    private func expectRefused(_ code: String, status: Int, hasHint: Bool = false) throws {
        let outcome = try run("import", "other.coffer", "out.ndjson", "--attachments", "d", "--json")
        #expect(outcome.status == 1)
        let failure = try outcome.failure
        #expect(failure["code"] as? String == code)
        #expect(failure["status"] as? Int == status)
        #expect(failure["line"] as? Int == 2)
        #expect(failure["file"] as? String == "out.ndjson")
        #expect((failure["message"] as? String)?.hasPrefix("out.ndjson:2: ") == true)
        #expect((failure["hint"] != nil) == hasHint)
        #expect(try run("ls", "other.coffer").output.isEmpty)
        let kept = try work.contents(of: "other.coffer").keys.filter {
            $0.contains(".blob") || $0.contains("incoming/")
        }
        #expect(kept.isEmpty)
    }

    @Test("An import of an export names a content that is missing with its record, and stores nothing")
    func missing() throws {
        #expect(unlink(work.folder.appending(path: file).path) == 0)
        try expectRefused("attachmentNotFound", status: 404, hasHint: true)
    }

    @Test(
        "An import of an export refuses a content with other bytes, or more, or fewer",
        arguments: ["Second", "second ", "secon", ""])
    func changed(content: String) throws {
        try work.write(content, to: file)
        try expectRefused("invalidAttachment", status: 400)
    }

    @Test("An import of an export refuses a content that is no file", arguments: ["folder", "link", "pipe"])
    func noFile(kind: String) throws {
        let path = work.folder.appending(path: file).path
        #expect(rename(path, path + ".moved") == 0)
        switch kind {
        case "folder": #expect(mkdir(path, 0o700) == 0)
        case "link": #expect(symlink(path + ".moved", path) == 0)
        default: #expect(mkfifo(path, 0o600) == 0)
        }
        let code = kind == "link" ? "ioFailed" : "invalidAttachment"
        try expectRefused(code, status: kind == "link" ? 500 : 400)
    }

    @Test("An import of an export refuses a length that is not the content's, and an invalid digest")
    func lies() throws {
        let text = try String(contentsOf: work.folder.appending(path: "out.ndjson"), encoding: .utf8)
        let digest = "sha1-NS94KaI4SwAcwSsMJhPHVkVKH2o="
        #expect(text.contains(digest))
        try work.write(text.replacing(#""length":6"#, with: #""length":7"#), to: "out.ndjson")
        try expectRefused("invalidAttachment", status: 400)
        for lie in ["md5-abc", "sha1-", "../key", "sha1-../../key"] {
            try work.write(text.replacing(digest, with: lie), to: "out.ndjson")
            try expectRefused("attachmentNotFound", status: 404, hasHint: true)
        }
        // Another text for the same bytes.
        try work.write(text.replacing(digest, with: "sha1-NS94KaI4SwAcwSsMJhPHVkVKH2p="), to: "out.ndjson")
        try expectRefused("invalidAttachment", status: 400)
    }

    @Test("A folder of contents that is not there is a failure, and --attach does not take one")
    func folder() throws {
        #expect(try run("import", "other.coffer", "out.ndjson", "--attachments", "none").status == 1)
        #expect(try run("import", "other.coffer", "out.ndjson", "--attachments", "out.ndjson").status == 1)
        #expect(try run("import", "other.coffer", "d", "--attach", "--attachments", "d").status == 64)
    }

    @Test("Contents that the store has already need no file in an import")
    func known() throws {
        #expect(try run("import", "other.coffer", "out.ndjson", "--attachments", "d").status == 0)
        for id in ["d0", "d1", "d2"] { #expect(try run("rm", "other.coffer", id).status == 0) }
        #expect(try run("import", "other.coffer", "out.ndjson").status == 0)
        #expect(try run("cat", "other.coffer", "d1", "a").output == "second")
    }
}
