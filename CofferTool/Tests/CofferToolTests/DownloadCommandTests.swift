import Foundation
import Testing

/// Contents that a pull leaves on the server, and documents that a server refuses.
@Suite("Contents that come later, and documents that don't", .timeLimit(.minutes(30)))
struct DownloadCommandTests {
    private let work: Workspace
    private let key = ["--key", "raw+file:key"]
    private let none = ["--no-authentication"]

    init() throws {
        work = try Workspace()
        try work.makeStore()
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "served"), withIntermediateDirectories: false)
        for number in 0..<4 {
            _ = try run(["put", "people.coffer", "d\(number)"], input: #"{"n":\#(number)}"#)
            try work.write(Data(repeating: UInt8(number), count: 20_000 + number), to: "file\(number)")
            _ = try run(["attach", "people.coffer", "d\(number)", "f", "file\(number)", "--type", "a/b"])
        }
    }

    private func run(_ arguments: [String], input: String = "") throws -> CofferProcess.Outcome {
        try CofferProcess.run(arguments + key, in: work.folder, .init(input: Data(input.utf8)))
    }

    /// What the last line of a command says under that name.
    private func number(_ name: String, _ arguments: [String]) throws -> Int? {
        let outcome = try run(arguments + ["--json"])
        return try outcome.objects.last?[name] as? Int
    }

    @Test("Contents that stayed away are counted, fetched one by one or all, and by a later pull") func later() throws {
        try serving(work, key + none) { url in
            #expect(try run(["push", "people.coffer", "\(url)/people", "--create-target"]).status == 0)
            let first = try run(["pull", "new.coffer", "\(url)/people", "--create", "--no-attachments"])
            #expect(first.output == "4 documents; 4 contents not here\n", "\(first.errors)")
            #expect(try number("missingContents", ["info", "new.coffer"]) == 4)
            #expect(try number("missingContents", ["check", "new.coffer"]) == 4)
            #expect(try run(["info", "new.coffer"]).output.contains("not here    4 contents"))
            #expect(try run(["check", "new.coffer"]).output.contains("not here     4, left out by a pull"))
            let backup = ["backup", "new.coffer", "copy.coffer", "--new-key", "raw+file:key"]
            #expect(try number("missingContents", backup) == 4)
            #expect(try run(["cat", "new.coffer", "d1", "f"]).status == 1)

            let one = try run(["download", "new.coffer", "d1", "f", "\(url)/people"])
            #expect(one.status == 0 && one.output == "1 content, and 3 not here\n", "\(one.errors)")
            #expect(
                try run(["cat", "new.coffer", "d1", "f"]).outputBytes
                    == Data(contentsOf: work.folder.appending(path: "file1")))
            #expect(
                try run(["download", "new.coffer", "d1", "\(url)/people"]).output == "0 contents, and 3 not here\n")
            #expect(try run(["download", "new.coffer", "d1", "none", "\(url)/people"]).status == 1)
            #expect(try run(["download", "new.coffer", "none", "\(url)/people"]).status == 1)
            let small = ["download", "new.coffer", "\(url)/people", "--max-attachment", "20000"]
            #expect(try run(small).output == "1 content, and 2 not here\n")
            let missing = try run(["download", "new.coffer", "\(url)/none"])
            #expect(missing.status == 1)

            let again = try run(["pull", "new.coffer", "\(url)/people"])
            #expect(again.output == "0 documents, and 2 contents that earlier pulls left out\n", "\(again.errors)")
            #expect(try number("missingContents", ["info", "new.coffer"]) == 0)
            #expect(try run(["download", "new.coffer", "\(url)/people"]).output == "0 contents\n")
        }
        let documents = try run(["export", "people.coffer"]).output
        #expect(try run(["export", "new.coffer"]).output == documents)
    }

    @Test("A content that the server doesn't have is named, and the others come") func partly() throws {
        try serving(work, key + none) { url in
            #expect(try run(["push", "people.coffer", "\(url)/people", "--create-target"]).status == 0)
            let pull = ["pull", "new.coffer", "\(url)/people", "--create", "--no-attachments"]
            #expect(try run(pull).status == 0)
            // The same documents in another database, of which one is missing.
            _ = try run(["rm", "people.coffer", "d2"])
            _ = try run(["pull", "part.coffer", "\(url)/people", "--create"])
            _ = try run(["push", "part.coffer", "\(url)/part", "--create-target", "--document-id", "d0"])
            let outcome = try run(["download", "new.coffer", "\(url)/part", "--json"])
            #expect(outcome.status == 3, "\(outcome.errors)")
            #expect(try outcome.objects.count { $0["type"] as? String == "failure" } == 3)
            #expect(try outcome.objects.last?["contents"] as? Int == 1)
            let nothing = try run(["download", "new.coffer", "d2", "\(url)/part"])
            #expect(nothing.status == 1 && nothing.output.contains("refused: f of d2: "), "\(nothing.errors)")
        }
    }

    @Test("A document that the server refused is named, with 3, by the next push too, until it is settled")
    func refused() throws {
        let long = String(repeating: "x", count: 3_000)
        _ = try run(["put", "people.coffer", "large"], input: #"{"text":"\#(long)"}"#)
        try serving(work, key + none + ["--max-body", "2000"]) { url in
            let push = ["push", "people.coffer", "\(url)/people", "--create-target"]
            let first = try run(push)
            #expect(first.status == 3 && first.output.contains("refused: large: "), "\(first.errors)")
            let second = try run(push + ["--json"])
            #expect(second.status == 3, "\(second.output)")
            #expect(try second.objects.contains { $0["id"] as? String == "large" })
            #expect(try second.objects.last?["failed"] as? Int == 1)
            #expect(try second.objects.last?["documents"] as? Int == 0)
            let listed = try run(["push", "people.coffer", "\(url)/people", "--failed"])
            #expect(listed.status == 3 && listed.output.hasPrefix("refused: large: "))
            #expect(listed.output.split(separator: "\n").count == 1)
            let wrong = try run(push + ["--failed", "--continuous"])
            #expect(wrong.status == 64)
            #expect(try run(push + ["--retry-failed"]).status == 3)
            _ = try run(["put", "people.coffer", "large"], input: #"{"text":"short"}"#)
            let settled = try run(push)
            #expect(settled.status == 0, "\(settled.output) \(settled.errors)")
            #expect(try run(push + ["--failed"]).output == "")
        }
    }

    @Test("A proxy's password comes from a source, and needs a proxy") func proxy() throws {
        for wrong in [
            ["--proxy-user", "robin"], ["--proxy", "127.0.0.1:9", "--proxy-password", "file:key"],
            ["--proxy", "127.0.0.1:9", "--proxy-user", "a:b", "--proxy-password", "file:key"],
            ["--proxy", "127.0.0.1:9", "--proxy-user", "robin"],
        ] {
            let outcome = try run(["pull", "people.coffer", "http://example.invalid/db"] + wrong)
            #expect(outcome.status == 64, "\(wrong): \(outcome.errors)")
        }
    }
}
