import Foundation
import Testing

@testable import CofferTool

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite("Importing files as attachments")
struct FileImportCommandTests {
    let work: Workspace

    init() throws {
        work = try Workspace()
        try work.makeStore()
    }

    @discardableResult
    private func coffer(_ command: String, _ arguments: String...) throws -> CofferProcess.Outcome {
        try CofferProcess.run([command, "people.coffer", "--key", "raw+file:key"] + arguments, in: work.folder)
    }

    private var ids: [String] { get throws { try coffer("ls").lines } }

    private func path(_ name: String) -> String { work.folder.appending(path: name).path(percentEncoded: false) }

    @Test("The files of a folder become a document each, down to the last folder, hidden and empty ones too")
    func folder() throws {
        let files = [
            "b.TXT": Data("text".utf8), "a/b/scan.pdf": Data(0..<100), "a/.hidden": Data([0]), "a/empty": Data(),
            "z/b.TXT": Data(repeating: 7, count: 100_000), "a b/é.unknown": Data("x".utf8),
        ]
        for (name, content) in files { try work.write(content, to: "folder/" + name) }
        let outcome = try coffer("import", "--attach", "folder/", "--json")
        #expect(outcome.status == 0)
        #expect(outcome.errors.isEmpty)
        let summary = try #require(try outcome.objects.first)
        #expect(summary["type"] as? String == "import")
        #expect(summary["documents"] as? Int == 6)
        #expect(summary["files"] as? Int == 6)
        #expect(summary["bytes"] as? Int == 100_106)
        #expect(Set(try ids) == Set(files.keys))
        for (id, content) in files {
            let name = String(id.split(separator: "/").last ?? "")
            #expect(try coffer("ls", id).lines == [name])
            #expect(try coffer("cat", id, name).outputBytes == content)
        }
        #expect(try coffer("ls", "b.TXT", "--json").objects[0]["contentType"] as? String == "text/plain")
        #expect(try coffer("ls", "a/b/scan.pdf", "--json").objects[0]["contentType"] as? String == "application/pdf")
        for id in ["a/.hidden", "a/empty", "a b/é.unknown"] {
            #expect(try coffer("ls", id, "--json").objects[0]["contentType"] == nil)
        }
    }

    @Test("A file that is named itself has its name as its id, and several paths go in together")
    func files() throws {
        try work.write("1", to: "folder/one.txt")
        try work.write("2", to: "other/two.txt")
        #expect(try coffer("import", "--attach", "folder/one.txt", "other").output == "2 documents from 2 files\n")
        #expect(try ids == ["one.txt", "two.txt"])
        #expect(try coffer("cat", "one.txt", "one.txt").output == "1")
    }

    @Test("A document with the id of an imported file is a 409 with the file's name, and nothing stays")
    func conflict() throws {
        try work.write("1", to: "folder/a")
        try work.write("2", to: "folder/b/c")
        try work.write("3", to: "other/b/c")
        let twice = try coffer("import", "--attach", "--json", "folder", "other")
        #expect(twice.status == 1)
        #expect(try twice.failure["status"] as? Int == 409)
        #expect(try ids == [])
        #expect(try coffer("import", "--attach", "other").status == 0)
        let there = try coffer("import", "--attach", "--json", "folder")
        #expect(there.status == 1)
        #expect(there.output.isEmpty)
        #expect(try there.failure["code"] as? String == "conflict")
        #expect((try there.failure["message"] as? String)?.hasPrefix("folder/b/c: ") == true)
        #expect(try ids == ["b/c"])
        #expect(try coffer("rm", "b/c").status == 0)
        #expect(try coffer("import", "--attach", "folder").status == 0)
        #expect(try coffer("cat", "b/c", "c").output == "2")
    }

    @Test("A path that is no id is a 400 with the file's name, and nothing stays")
    func invalidID() throws {
        try work.write("1", to: "folder/a")
        try work.write("2", to: "folder/_b")
        let outcome = try coffer("import", "--attach", "--json", "folder")
        #expect(outcome.status == 1)
        #expect(try outcome.failure["code"] as? String == "invalidDocumentID")
        #expect((try outcome.failure["message"] as? String)?.hasPrefix("folder/_b: ") == true)
        #expect(try ids == [])
    }

    @Test(
        "Links, pipes and sockets are refused by name, wherever they are, and nothing is saved",
        arguments: ["link to a file", "link to a folder", "link to nothing", "pipe", "socket"])
    func special(kind: String) throws {
        try work.write("1", to: "folder/a")
        try work.write("1", to: "target/file")
        let place = path("folder/sub/" + kind)
        try FileManager.default.createDirectory(atPath: path("folder/sub"), withIntermediateDirectories: true)
        switch kind {
        case "link to a file": #expect(symlink("../a", place) == 0)
        case "link to a folder": #expect(symlink("../../target", place) == 0)
        case "link to nothing": #expect(symlink("nowhere", place) == 0)
        case "pipe": #expect(mkfifo(place, 0o600) == 0)
        default: #expect(mknod(place, S_IFSOCK | 0o600, 0) == 0)
        }
        for argument in ["folder", "folder/sub/" + kind] {
            let outcome = try coffer("import", "--attach", "--json", argument)
            #expect(outcome.status == 1)
            #expect(try outcome.failure["code"] as? String == "invalidAttachment")
            #expect((try outcome.failure["message"] as? String)?.hasPrefix("folder/sub/\(kind): ") == true)
        }
        #expect(try ids == [])
    }

    @Test(
        "A folder or a file that another has come in the place of, after it was listed, is refused",
        arguments: ["link to a folder", "another folder", "another file"])
    func exchanged(kind: String) throws {
        try work.write("1", to: "folder/sub/a")
        try work.write("secret", to: "elsewhere/a")
        let tree = try FileTree([path("folder")], importedTo: path("people.coffer"))
        let file = try #require(tree.files.first)
        #expect(tree.files.count == 1 && file.id == "sub/a")
        #expect(try OpenFile(file.path, .regular, identity: file.identity).byteCount == 1)
        let manager = FileManager.default
        switch kind {
        case "link to a folder":
            try manager.removeItem(atPath: path("folder/sub"))
            #expect(symlink("../elsewhere", path("folder/sub")) == 0)
        case "another folder":
            try manager.moveItem(atPath: path("folder/sub"), toPath: path("folder/old"))
            try manager.moveItem(atPath: path("elsewhere"), toPath: path("folder/sub"))
        default:
            try manager.moveItem(atPath: path("folder/sub/a"), toPath: path("folder/sub/b"))
            try manager.moveItem(atPath: path("elsewhere/a"), toPath: path("folder/sub/a"))
        }
        // It can be opened: only that it is another one keeps it out.
        #expect(try OpenFile(file.path, .regular).byteCount == 6)
        let refused = #expect(throws: Failure.self) { try OpenFile(file.path, .regular, identity: file.identity) }
        #expect(refused?.message.contains("another file took its place") == true)
    }

    /// Makes a file in the folder whose name is not UTF-8, and says whether there can be one.
    private static func makeStrangeName(in folder: String) -> Bool {
        let name = "\(folder)/".utf8.map { CChar(bitPattern: $0) } + [CChar(bitPattern: 0xFF), 0x62, 0]
        return close(open(name, O_CREAT | O_WRONLY, 0o600)) == 0
    }

    private static let hasStrangeNames: Bool = {
        guard let work = try? Workspace() else { return false }
        return withExtendedLifetime(work) { makeStrangeName(in: work.folder.path) }
    }()

    @Test(
        "A name that is not UTF-8 is a failure, and nothing is saved",
        .enabled(if: hasStrangeNames, "this file system has names in UTF-8 alone"))
    func notUTF8() throws {
        try work.write("1", to: "folder/a")
        try #require(Self.makeStrangeName(in: path("folder")))
        #expect(try coffer("import", "--attach", "folder").status == 1)
        #expect(try ids == [])
    }

    @Test("The store itself is not among the files")
    func ownStore() throws {
        let outcome = try coffer("import", "--attach", ".")
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains("people.coffer: it is the store itself"))
        #expect(try ids == [])
    }

    @Test("An import of files refuses --id, and nothing to attach")
    func nothing() throws {
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "folder/sub"), withIntermediateDirectories: true)
        #expect(try coffer("import", "--attach", "folder").status == 64)
        #expect(try coffer("import", "--attach", "--id", "code", "key").status == 64)
        let missing = try coffer("import", "--attach", "none")
        #expect(missing.status == 1)
        #expect(missing.errors.contains("none"))
    }

    @Test("An import attaches more files than a process may have open")
    func many() throws {
        for number in 0..<300 { try work.write("file \(number)", to: "folder/\(number)") }
        let outcome = try work.shell(
            "ulimit -n 128; \"$coffer\" import --attach people.coffer --key raw+file:key folder")
        #expect(outcome.output == "300 documents from 300 files\n")
        #expect(try coffer("cat", "299", "299").output == "file 299")
    }

    @Test("^C in the middle of a file leaves nothing, and ends with 130")
    func cancelled() throws {
        try work.write("1", to: "folder/a")
        try work.write("", to: "folder/b")
        #expect(truncate(path("folder/b"), 4 << 30) == 0)
        let terminal = try FakeTerminal()
        let outcome = try CofferProcess.run(
            ["import", "people.coffer", "--key", "raw+file:key", "--attach", "folder"], in: work.folder,
            .init(terminal: terminal, showsErrorsOnTerminal: true)
        ) { _ in
            try terminal.wait(for: "MiB")
            terminal.type("\u{3}")
        }
        #expect(outcome.status == 130)
        #expect(try ids == [])
    }
}
