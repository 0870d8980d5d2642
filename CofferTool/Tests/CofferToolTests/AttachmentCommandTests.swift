import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite("Attachments: attach, cat and rm")
struct AttachmentCommandTests {
    let work: Workspace

    init() throws {
        work = try Workspace()
        try work.makeStore()
    }

    @discardableResult
    private func coffer(
        _ command: String, _ arguments: String..., input: Data = Data()
    ) throws -> CofferProcess.Outcome {
        try CofferProcess.run(
            [command, "people.coffer", "--key", "raw+file:key"] + arguments, in: work.folder,
            CofferProcess.Surroundings(input: input))
    }

    /// Bytes without a pattern that any of the sizes in the store has.
    private func content(_ byteCount: Int) -> Data {
        Data((0..<byteCount).map { UInt8(truncatingIfNeeded: $0 % 251 + $0 / 16384) })
    }

    /// The files that hold content, whole or not.
    private var contentFiles: [String] {
        get throws {
            try work.contents(of: "people.coffer").filter { !$1.isEmpty }.keys
                .filter { $0.contains("/attachments/") || $0.contains("/incoming/") }
        }
    }

    @Test(
        "What was attached from a file or from standard input comes out byte for byte",
        arguments: [0, 1, 16383, 16384, 16385, 32768, 1 << 20, (1 << 20) + 1, 3_000_000])
    func roundTrip(byteCount: Int) throws {
        let content = content(byteCount)
        try work.write(content, to: "file")
        #expect(try coffer("attach", "a", "from file", "file").output.hasPrefix("1-"))
        #expect(try coffer("attach", "a", "from input", "-", input: content).output.hasPrefix("2-"))
        for name in ["from file", "from input"] {
            let got = try coffer("cat", "a", name)
            #expect(got.status == 0)
            #expect(got.outputBytes == content)
            #expect(got.errors.isEmpty)
        }
    }

    @Test("A document keeps its properties and its other attachments, and one of the same name is replaced")
    func revisions() throws {
        #expect(try coffer("put", "a", input: Data("{\"big\":9007199254740993}".utf8)).status == 0)
        #expect(try coffer("attach", "a", "x", "-", input: Data("old".utf8)).output.hasPrefix("2-"))
        #expect(try coffer("attach", "a", "y", "-", input: Data("other".utf8)).output.hasPrefix("3-"))
        #expect(try coffer("attach", "a", "x", "-", input: Data("new".utf8)).output.hasPrefix("4-"))
        #expect(try coffer("cat", "a", "x").output == "new")
        #expect(try coffer("cat", "a", "y").output == "other")
        #expect(try coffer("ls", "a").lines == ["x", "y"])
        #expect(try coffer("get", "a").output.contains("\"big\":9007199254740993"))
    }

    @Test("A document that is not there, or was removed, is made, and is empty")
    func newDocument() throws {
        #expect(try coffer("attach", "a", "x", "-", input: Data("1".utf8)).output.hasPrefix("1-"))
        #expect(try coffer("rm", "a").output.hasPrefix("2-"))
        #expect(try coffer("cat", "a", "x").status == 1)
        #expect(try coffer("attach", "a", "y", "-", input: Data("2".utf8)).output.hasPrefix("3-"))
        #expect(try coffer("ls", "a").lines == ["y"])
        let got = try #require(try coffer("get", "a").objects.first)
        #expect(Set(got.keys) == ["_id", "_attachments"])
    }

    @Test("The command get says what is known of an attachment, as ls --json and attach --json do")
    func known() throws {
        let attached = try #require(
            try coffer("attach", "a", "x", "-", "--type", "text/plain", "--json", input: Data("abc".utf8)).objects.first
        )
        let digest = "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="
        #expect(attached["type"] as? String == "attachment")
        #expect((attached["revision"] as? String)?.hasPrefix("1-") == true)
        try coffer("attach", "a", "y", "-")
        let listed = try coffer("ls", "a", "--json").objects
        #expect(listed.map { $0["name"] as? String } == ["x", "y"])
        for object in [attached, listed[0]] {
            #expect(object["id"] as? String == "a")
            #expect(object["contentType"] as? String == "text/plain")
            #expect(object["digest"] as? String == digest)
            #expect(object["length"] as? Int == 3)
        }
        #expect(listed[1]["contentType"] == nil)
        #expect(listed[1]["length"] as? Int == 0)
        let stub = "{\"content_type\":\"text/plain\",\"digest\":\"\(digest)\",\"length\":3,\"revpos\":1,\"stub\":true}"
        #expect(try coffer("get", "a").output.hasPrefix("{\"_id\":\"a\",\"_attachments\":{\"x\":\(stub),"))
    }

    @Test("What get writes of a document with attachments, put takes, and put without them keeps them")
    func getThenPut() throws {
        try coffer("attach", "a", "x", "-", input: Data("abc".utf8))
        let line = try coffer("get", "a").outputBytes
        #expect(try coffer("put", "a", input: line).status == 0)
        #expect(try coffer("get", "a").outputBytes == line)
        #expect(try coffer("put", "a", input: Data("{\"n\":1}".utf8)).status == 0)
        #expect(try coffer("cat", "a", "x").output == "abc")
        #expect(try coffer("get", "a").output.contains("\"n\":1"))
    }

    @Test("Attachments with names of all kinds work, and are listed on one line each")
    func names() throws {
        let names = ["-x", "a/b/../c.pdf", "two\nlines", "é", "e\u{301}", String(repeating: "long ", count: 500)]
        for name in names {
            #expect(try coffer("attach", "--", "a", name, "-", input: Data(name.utf8)).status == 0, "\(name)")
        }
        for name in names { #expect(try coffer("cat", "--", "a", name).outputBytes == Data(name.utf8), "\(name)") }
        let shown = try coffer("ls", "a").lines
        #expect(shown.count == names.count)
        #expect(shown.contains("\"two\\nlines\""))
    }

    // MARK: Ranges

    @Test("A range of an attachment is both its ends and what is between them")
    func ranges() throws {
        let content = content(2_200_000)
        try coffer("attach", "a", "x", "-", input: content)
        for (first, last) in [
            (0, 0), (0, 16383), (16383, 16384), (16384, 16384), (5, 1_048_580), (1, 1_048_576), (0, 2_199_999),
            (2_199_999, 2_199_999),
        ] {
            let got = try coffer("cat", "a", "x", "--range", "\(first)-\(last)")
            #expect(got.status == 0)
            #expect(got.outputBytes == content[first...last], "\(first)-\(last)")
        }
    }

    @Test("A range that ends beyond the content is a 400 with exit status 1, and nothing is written")
    func beyond() throws {
        try coffer("attach", "a", "x", "-", input: Data("0123456789".utf8))
        try coffer("attach", "a", "empty", "-")
        for (name, range) in [("x", "9-10"), ("x", "10-10"), ("x", "0-\(Int.max)"), ("empty", "0-0")] {
            let outcome = try coffer("cat", "a", name, "--range", range, "--json")
            #expect(outcome.status == 1, "\(range)")
            #expect(outcome.outputBytes.isEmpty)
            #expect(try outcome.failure["status"] as? Int == 400)
            #expect(try outcome.failure["code"] as? String == "invalidArgument")
        }
    }

    @Test(
        "A malformed range is exit status 64",
        arguments: [
            "", "5", "-", "5-", "-5", "a-b", "5-4", "1-2-3", "+1-2", " 1-2", "1 -2", "0x1-2", "١-٢",
            "0-9223372036854775808",
        ])
    func malformed(range: String) throws {
        try coffer("attach", "a", "x", "-", input: Data("0123456789".utf8))
        let outcome = try coffer("cat", "a", "x", "--range=\(range)")
        #expect(outcome.status == 64)
        #expect(outcome.outputBytes.isEmpty)
        #expect(outcome.errors.hasPrefix("coffer: error: "))
    }

    // MARK: What is not there, and what is damaged

    @Test("A missing document and a missing attachment are exit status 1, and a 404")
    func missing() throws {
        try coffer("attach", "a", "x", "-")
        try coffer("attach", "gone", "x", "-")
        try coffer("rm", "gone")
        let cases = [
            (["cat", "never", "x"], "documentNotFound"), (["cat", "gone", "x"], "documentNotFound"),
            (["cat", "a", "y"], "attachmentNotFound"), (["cat", "a", ""], "attachmentNotFound"),
            (["cat", "a", "y", "--range", "0-0"], "attachmentNotFound"),
            (["rm", "never", "x"], "documentNotFound"), (["rm", "gone", "x"], "documentNotFound"),
            (["ls", "never"], "documentNotFound"), (["ls", "gone"], "documentNotFound"),
        ]
        for (arguments, code) in cases {
            let all = [arguments[0], "people.coffer", "--key", "raw+file:key", "--json"] + arguments.dropFirst()
            let outcome = try CofferProcess.run(all, in: work.folder)
            #expect(outcome.status == 1, "\(arguments)")
            #expect(outcome.outputBytes.isEmpty)
            #expect(try outcome.failure["status"] as? Int == 404)
            #expect(try outcome.failure["code"] as? String == code, "\(arguments)")
        }
        #expect(try coffer("ls").lines == ["a"])
    }

    @Test("Changed content is damage, exit status 26, and only bytes from before it come out")
    func damage() throws {
        let content = content(3_000_000)
        try coffer("attach", "a", "x", "-", input: content)
        let name = try #require(try contentFiles.first)
        let file = work.folder.appending(path: "people.coffer").appending(path: name)
        let good = try Data(contentsOf: file)
        var flipped = good
        flipped[2_500_000] ^= 1
        chmod(file.path(percentEncoded: false), 0o600)
        for bad in [flipped, good.dropLast(), good.prefix(100), good + [0], Data()] {
            try bad.write(to: file)
            let outcome = try coffer("cat", "a", "x", "--json")
            #expect(outcome.status == 26)
            #expect(try outcome.failure["code"] as? String == "damaged")
            #expect(try outcome.failure["status"] as? Int == 500)
            #expect((try outcome.failure["message"] as? String)?.contains("attachment x of document a") == true)
            #expect(outcome.outputBytes.count < content.count)
            #expect(content.starts(with: outcome.outputBytes))
        }
        try flipped.write(to: file)
        let within = try coffer("cat", "a", "x", "--range", "2499900-2499900")
        #expect(within.status == 26)
        #expect(within.outputBytes.isEmpty)
        #expect(try coffer("cat", "a", "x", "--range", "0-9").outputBytes == content[0...9])
        try FileManager.default.removeItem(at: file)
        #expect(try coffer("cat", "a", "x").status == 26)
        #expect(try coffer("get", "a").status == 0)
        try good.write(to: file)
        #expect(try coffer("cat", "a", "x").outputBytes == content)
    }

    // MARK: Removing

    @Test("The command rm with a name removes that attachment alone")
    func remove() throws {
        try coffer("put", "a", input: Data("{\"n\":1}".utf8))
        try coffer("attach", "a", "x", "-", input: Data("x".utf8))
        try coffer("attach", "a", "y", "-", input: Data("y".utf8))
        #expect(try coffer("rm", "a", "x").output.hasPrefix("4-"))
        #expect(try coffer("cat", "a", "x").status == 1)
        #expect(try coffer("cat", "a", "y").output == "y")
        let removed = try #require(try coffer("rm", "a", "y", "--json").objects.first)
        #expect(removed["type"] as? String == "attachment")
        #expect(removed["name"] as? String == "y")
        #expect(removed["deleted"] as? Bool == true)
        #expect((removed["revision"] as? String)?.hasPrefix("5-") == true)
        #expect(try coffer("get", "a").output == "{\"_id\":\"a\",\"n\":1}\n")
    }

    @Test("Where there is no attachment of that name, rm changes nothing, and a note says so")
    func removeUnknown() throws {
        try coffer("attach", "a", "é", "-")
        let before = try coffer("get", "a", "--json").output
        for name in ["y", "e\u{301}", ""] {
            let outcome = try coffer("rm", "a", name)
            #expect(outcome.status == 0)
            #expect(outcome.outputBytes.isEmpty)
            #expect(outcome.errors.hasPrefix("coffer: note: attachment \(name) of document a: "))
        }
        #expect(try coffer("rm", "a", "y", "--json").objects.first?["deleted"] as? Bool == false)
        #expect(try coffer("get", "a", "--json").output == before)
    }

    // MARK: What cannot be attached

    @Test("A missing file, a folder, and no name are failures of attach, and nothing is stored")
    func refused() throws {
        try work.write("", to: "folder/file")
        for (name, file) in [("x", "none"), ("x", "folder"), ("", "key")] {
            let outcome = try coffer("attach", "a", name, file, "--json")
            #expect(outcome.status == 1, "\(file)")
            #expect(outcome.outputBytes.isEmpty)
            let message = try #require(try outcome.failure["message"] as? String)
            #expect(message.contains(name.isEmpty ? "without a name" : file))
        }
        #expect(try coffer("attach", "_a", "x", "key", "--json").failure["code"] as? String == "invalidDocumentID")
        #expect(try coffer("ls").output.isEmpty)
        #expect(try contentFiles.isEmpty)
    }

    @Test("Standard input cannot be both the key and the attachment")
    func inputTwice() throws {
        let outcome = try work.coffer("attach", "people.coffer", "a", "x", "-", "--key", "raw+stdin")
        #expect(outcome.status == 64)
    }

    @Test("An attachment that is cancelled leaves nothing, and ends with 130", arguments: [SIGINT, SIGTERM, SIGHUP])
    func cancelled(signal: Int32) throws {
        let pipe = work.folder.appending(path: "pipe").path(percentEncoded: false)
        #expect(mkfifo(pipe, 0o600) == 0)
        let outcome = try CofferProcess.run(
            ["attach", "people.coffer", "--key", "raw+file:key", "a", "x", "pipe"], in: work.folder
        ) { process in
            let writer = open(pipe, O_WRONLY | O_CLOEXEC)
            defer { close(writer) }
            let some = [UInt8](repeating: 7, count: 1 << 20)
            // A pipe holds 64 KiB, so that the rest has been read when this returns.
            #expect(write(writer, some, some.count) == some.count)
            kill(process, signal)
            // Before it sees the end of what it reads.
            try CofferProcess.waitForEnd(of: process)
        }
        #expect(outcome.status == 130)
        #expect(try coffer("ls").output.isEmpty)
        #expect(try contentFiles.isEmpty)
    }

    // MARK: Streams

    @Test("Content of any length needs little memory, in, out and by range")
    func memory() throws {
        // 256 MiB, where the command may have 128 for all it does.
        let outcome = try work.shell(
            """
            ulimit -d 131072
            with="people.coffer --key raw+file:key"
            head -c 268435456 /dev/zero | "$coffer" attach $with a x - >/dev/null || exit 1
            "$coffer" cat $with a x | cmp -n 268435456 - /dev/zero || exit 2
            "$coffer" cat $with a x --range 1-268435455 | wc -c
            """)
        #expect(outcome.status == 0)
        #expect(outcome.output.contains("268435455"))
    }

    @Test("Content that cannot be written is a failure, and a reader that goes away is none")
    func output() throws {
        try coffer("attach", "a", "x", "-", input: content(3_000_000))
        let cat = "\"$coffer\" cat people.coffer --key raw+file:key a x"
        #expect(try work.shell("\(cat) >/dev/full 2>/dev/null").status == 28)
        let head = try work.shell("\(cat) 2>&1 | head -c 3 | od -An -tu1")
        #expect(head.output.split(separator: " ").map { $0.trimmingCharacters(in: .newlines) } == ["0", "1", "2"])
    }

    @Test("Content is nowhere in the files of an encrypted store, and is in those of a readable one")
    func secrecy() throws {
        let marker = "Rosebud, 4711 Xanadu Road"
        try work.coffer("create", "notes.coffer", "--unencrypted")
        try work.coffer("attach", "notes.coffer", "a", "x", "-", input: marker)
        let attached = try coffer("attach", "a", "x", "-", input: Data(marker.utf8))
        #expect(attached.status == 0)
        for text in [attached.output, attached.errors] { #expect(!text.contains(marker)) }
        func holdsMarker(_ store: String) throws -> Bool {
            try work.contents(of: store).values.contains { $0.range(of: Data(marker.utf8)) != nil }
        }
        #expect(try holdsMarker("notes.coffer"))
        #expect(try !holdsMarker("people.coffer"))
    }
}
