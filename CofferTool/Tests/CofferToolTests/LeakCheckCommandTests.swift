import Foundation
import Testing

@Suite("Looking for plaintext: leakcheck")
struct LeakCheckCommandTests {
    let work: Workspace
    private let secret = "the sea at Ostende"

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeStore()
        for (name, arguments) in [("people", ["--key", "raw+file:key"]), ("readable", [])] {
            if arguments.isEmpty { #expect(try work.coffer("create", "readable.coffer", "--unencrypted").status == 0) }
            try work.write(#"{"place":"\#(secret)"}"#, to: "body")
            try work.write("a letter from \(secret), and more", to: "letter")
            for command in [
                ["put", "\(name).coffer", secret, "body"], ["attach", "\(name).coffer", "b", "a", "letter"],
            ] {
                #expect(try CofferProcess.run(command + arguments, in: work.folder).status == 0)
            }
        }
    }

    @Test(
        "The command leakcheck finds nothing in an encrypted store, and in a readable one it says where, and not what")
    func stores() throws {
        let nothing = try work.coffer("leakcheck", "people.coffer", "--marker", secret)
        #expect(nothing.status == 0)
        #expect(nothing.output.hasSuffix("bytes: nothing found\n"))
        #expect(nothing.errors.isEmpty)
        let found = try work.coffer("leakcheck", "readable.coffer/", "--marker", "nowhere at all", "--marker", secret)
        #expect(found.status == 26)
        #expect(found.lines.count == 3)
        #expect(found.lines[0].contains("/attachments/"))
        #expect(found.lines[0].hasSuffix(".blob: marker 2 as UTF-8 at byte 14"))
        #expect(found.lines[1].contains("/db.sqlite3"))
        #expect(!found.output.contains("Ostende") && !found.errors.contains("Ostende"))
        let json = try work.coffer("leakcheck", "readable.coffer", "--marker", secret, "--json")
        let objects = try json.objects
        #expect(objects.map { $0["type"] as? String } == ["leak", "leak", "leakcheck"])
        #expect(objects[0]["encoding"] as? String == "UTF-8")
        #expect(objects[0]["offset"] as? Int == 14)
        #expect(objects[2]["leaks"] as? Int == 2)
        let files = try work.contents(of: "readable.coffer").values
        #expect(objects[2]["bytes"] as? Int == files.reduce(0) { $0 + $1.count })
        #expect(try json.failure["exit"] as? Int == 26)
    }

    @Test("Markers come from files and from standard input, one on each line")
    func sources() throws {
        try work.write("nowhere at all\r\n\r\n\(secret)\n", to: "markers")
        let file = try work.coffer("leakcheck", "readable.coffer", "--marker-file", "markers", "--json")
        #expect(file.status == 26)
        #expect(try file.objects[0]["marker"] as? Int == 2)
        #expect(try work.coffer("leakcheck", "readable.coffer", "--marker-file", "-", input: secret).status == 26)
        #expect(try work.coffer("leakcheck", "people.coffer", "--marker-file", "-", input: secret).status == 0)
        #expect(try work.coffer("leakcheck", "people.coffer", "--marker-file", "none").status == 1)
    }

    @Test(
        "The command leakcheck finds every encoding in any file, at any alignment",
        arguments: ["UTF-8", "UTF-16LE", "UTF-16BE", "hex", "HEX", "base64", "base64 1", "base64 2"])
    func encodings(encoding: String) throws {
        let data = Data(secret.utf8)
        let written: Data
        switch encoding {
        case "UTF-16LE": written = secret.data(using: .utf16LittleEndian) ?? Data()
        case "UTF-16BE": written = secret.data(using: .utf16BigEndian) ?? Data()
        case "hex": written = Data(data.map { String(format: "%02x", $0) }.joined().utf8)
        case "HEX": written = Data(data.map { String(format: "%02X", $0) }.joined().utf8)
        case "base64": written = data.base64EncodedData()
        case "base64 1": written = (Data("x".utf8) + data + Data("y".utf8)).base64EncodedData()
        case "base64 2": written = (Data("xx".utf8) + data).base64EncodedData()
        default: written = data
        }
        // Across what is read at once.
        let before = (1 << 20) - 7
        try work.write(Data(count: before) + written + Data(count: 100), to: "log/app.log")
        let outcome = try work.coffer("leakcheck", "log", "--marker", secret, "--json")
        #expect(outcome.status == 26)
        let leaks = try outcome.objects.filter { $0["type"] as? String == "leak" }
        #expect(
            leaks.contains {
                ($0["encoding"] as? String)?.lowercased() == encoding.split(separator: " ")[0].lowercased()
            })
        #expect(
            leaks.allSatisfy { abs(($0["offset"] as? Int ?? 0) - before) < 4 && $0["path"] as? String == "app.log" })
    }

    @Test("Arguments of leakcheck that make no sense are exit status 64, and a missing place is 10")
    func usage() throws {
        #expect(try work.coffer("leakcheck", "people.coffer").status == 64)
        let short = try work.coffer("leakcheck", "people.coffer", "--marker", secret, "--marker", "seven77")
        #expect(short.status == 64)
        #expect(short.errors.contains("marker 2 has fewer than 8 bytes"))
        #expect(!short.errors.contains("seven77"))
        #expect(try work.coffer("leakcheck", "people.coffer", "--marker-file", "-", input: "\n").status == 64)
        try work.write(Data(repeating: 0xFF, count: 20), to: "bytes")
        #expect(try work.coffer("leakcheck", "people.coffer", "--marker-file", "bytes").status == 64)
        #expect(mkdir(work.folder.appending(path: "empty").path, 0o700) == 0)
        let empty = try work.coffer("leakcheck", "empty", "--marker", secret)
        #expect(empty.status == 1)
        #expect(empty.output.isEmpty)
        let missing = try work.coffer("leakcheck", "none.coffer", "--marker", secret, "--json")
        #expect(missing.status == 10)
        #expect(try missing.failure["status"] as? Int == 404)
    }

    /// Terabytes of zeros were read, and nobody was told of what was not.
    @Test(
        "The command leakcheck searches a sparse file of terabytes by its data, and names what it does not look into",
        .timeLimit(.minutes(30)))
    func oddFiles() throws {
        try work.write("nothing", to: "log/file")
        let folder = work.folder.appending(path: "log").path
        let sparse = Foundation.open(folder + "/sparse", O_CREAT | O_RDWR, 0o600)
        try #require(sparse >= 0)
        #expect(ftruncate(sparse, 8 << 40) == 0)
        let text = Array(secret.utf8)
        #expect(pwrite(sparse, text, text.count, 4 << 40) == text.count)
        close(sparse)
        #expect(mkfifo(folder + "/fifo", 0o600) == 0)
        #expect(symlink("file", folder + "/link") == 0)
        let outcome = try work.coffer("leakcheck", "log", "--marker", secret, "--json")
        #expect(outcome.status == 26)
        let objects = try outcome.objects
        let skipped = objects.filter { $0["type"] as? String == "skipped" }
        #expect(skipped.map { $0["path"] as? String } == ["fifo", "link"])
        #expect(skipped.map { $0["detail"] as? String } == ["a FIFO", "a symbolic link"])
        #expect(objects.first { $0["type"] as? String == "leak" }?["offset"] as? Int == 4 << 40)
        let report = try #require(objects.last)
        let byteCount = try #require(report["bytes"] as? Int)
        #expect(byteCount < 1 << 20)
        #expect(report["holeBytes"] as? Int == (8 << 40) + 7 - byteCount)
        #expect(report["skipped"] as? Int == 2)
        let lines = try work.coffer("leakcheck", "log", "--marker", "nowhere at all").lines
        #expect(lines.prefix(2) == ["fifo: a FIFO, not looked into", "link: a symbolic link, not looked into"])
        #expect(lines.last?.hasSuffix("bytes of holes, which hold nothing, skipped 2: nothing found") == true)
        let alone = try work.coffer("leakcheck", "log/fifo", "--marker", secret)
        #expect(alone.status == 1)
        #expect(alone.output == "fifo: a FIFO, not looked into\n")
    }

    @Test("The command leakcheck searches a store that somebody has open, and changes nothing")
    func open() throws {
        let before = try work.contents(of: "people.coffer")
        let pipe = work.folder.appending(path: "pipe").path(percentEncoded: false)
        #expect(mkfifo(pipe, 0o600) == 0)
        let other = try CofferProcess.run(
            ["import", "people.coffer", "--key", "raw+file:key", "pipe"], in: work.folder
        ) { _ in
            let writer = Foundation.open(pipe, O_WRONLY | O_CLOEXEC)
            defer { close(writer) }
            let meanwhile = try work.coffer("leakcheck", "people.coffer", "--marker", secret)
            #expect(meanwhile.status == 0)
        }
        #expect(other.status == 0)
        #expect(try work.coffer("leakcheck", "people.coffer", "--marker", secret).status == 0)
        #expect(try work.contents(of: "people.coffer").keys == before.keys)
    }
}
