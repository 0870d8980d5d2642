import Foundation
import Testing

/// A command as every bad input meets it: one that does what it should where nothing is bad.
struct MatrixCommand: Sendable, CustomTestStringConvertible {
    /// Its name, such as `key add`.
    let name: String
    /// The store, or what the command takes instead.
    var subject: String? = "people.coffer"
    /// What stands behind the store. `SLOT` is the id of a key that isn't the one given, `SERVER` the URL of a server.
    var arguments: [String] = []
    /// How the key is given; nil where the command takes none.
    var key: String? = "raw+file:key"
    /// What it does without a key and without a terminal.
    var withoutKey: Int32 = 12
    /// How another key is given; nil where the command takes none.
    var newKey: String?
    var input = ""
    /// Whether it changes the store.
    var writes = false
    /// What it makes beside the store.
    var makes: [String] = []
    /// Whether it looks at the store without its lock.
    var ignoresLock = false
    /// Whether it is stopped by others who only read.
    var needsStoreAlone = false
    /// Whether it goes on until it is told to stop.
    var goesOnForEver = false

    var testDescription: String { isOfManyStores ? "\(name) of many" : name }

    /// Whether it takes a folder of stores or a list of their paths.
    var isOfManyStores: Bool { ["rotate", "audit"].contains(name) || (name == "info" && subject == "stores") }

    /// The whole command line, but for `--json`.
    func line(subject: String? = nil, key: String?? = nil, newKey: String? = nil, slot: String) -> [String] {
        var line = name.split(separator: " ").map(String.init)
        if let subject = subject ?? self.subject { line.append(subject) }
        line += arguments.map { argument in
            if argument == "SLOT" { return slot }
            return argument.hasPrefix("SERVER") ? MatrixServer.url + argument.dropFirst("SERVER".count) : argument
        }
        if let key = key ?? self.key, self.key != nil { line += ["--key", key] }
        if let newKey = newKey ?? self.newKey { line += ["--new-key", newKey] }
        return line
    }

    static let all: [MatrixCommand] = [
        MatrixCommand(name: "create", subject: "new.coffer", makes: ["new.coffer"]),
        MatrixCommand(name: "put", arguments: ["robin"], input: #"{"a":1}"#, writes: true),
        MatrixCommand(name: "get", arguments: ["robin"]),
        MatrixCommand(name: "ls"),
        MatrixCommand(name: "rm", arguments: ["robin"], writes: true),
        MatrixCommand(name: "log", arguments: ["robin"]),
        MatrixCommand(name: "changes"),
        MatrixCommand(name: "attach", arguments: ["robin", "other", "large"], writes: true),
        MatrixCommand(name: "cat", arguments: ["robin", "file"]),
        MatrixCommand(name: "import", arguments: ["records"], writes: true),
        MatrixCommand(
            name: "import-couchbase", subject: "old.cblite2", arguments: ["--check"], key: nil, withoutKey: 0,
            ignoresLock: true),
        MatrixCommand(
            name: "export", arguments: ["out.ndjson", "--attachments", "contents"], makes: ["out.ndjson", "contents"]),
        MatrixCommand(name: "query", arguments: ["--where", "n = 1"]),
        MatrixCommand(name: "search", arguments: ["texts", "word"], writes: true),
        MatrixCommand(name: "index add", arguments: ["other", "n"], writes: true),
        MatrixCommand(name: "index list"),
        MatrixCommand(name: "index update", writes: true),
        MatrixCommand(name: "index remove", arguments: ["by-n"], writes: true),
        MatrixCommand(name: "info", withoutKey: 0),
        MatrixCommand(name: "info", subject: "stores", withoutKey: 0),
        MatrixCommand(name: "key list"),
        MatrixCommand(name: "key add", newKey: "raw+file:new-key", writes: true),
        MatrixCommand(name: "key remove", arguments: ["SLOT"], writes: true),
        MatrixCommand(name: "key replace", newKey: "raw+file:new-key", writes: true),
        MatrixCommand(name: "key generate", subject: "generated", key: nil, withoutKey: 0, makes: ["generated"]),
        MatrixCommand(name: "key backup", arguments: ["kept"], withoutKey: 0, makes: ["kept"]),
        MatrixCommand(name: "key restore", arguments: ["keys"], writes: true),
        MatrixCommand(name: "rekey", arguments: ["--drop-other-keys"], newKey: "raw+file:new-key", writes: true),
        MatrixCommand(name: "convert", arguments: ["--storage", "sealed"], writes: true),
        MatrixCommand(
            name: "rotate", subject: "stores", arguments: ["--drop-other-keys"], newKey: "raw+file:new-key",
            writes: true),
        MatrixCommand(name: "receipts verify", subject: "receipts", key: nil, withoutKey: 0),
        MatrixCommand(name: "audit", subject: "stores", key: nil, withoutKey: 0, ignoresLock: true),
        MatrixCommand(
            name: "encrypt", subject: "plain.coffer", key: nil, withoutKey: 0, newKey: "raw+file:new-key", writes: true),
        MatrixCommand(name: "decrypt", arguments: ["--yes-remove-encryption", "--drop-other-keys"], writes: true),
        MatrixCommand(name: "compact", writes: true),
        MatrixCommand(name: "backup", arguments: ["copy.coffer"], newKey: "raw+file:new-key", makes: ["copy.coffer"]),
        MatrixCommand(name: "restore", arguments: ["copy.coffer"], makes: ["copy.coffer"]),
        MatrixCommand(name: "check"),
        MatrixCommand(name: "salvage", arguments: ["copy.coffer"], makes: ["copy.coffer"]),
        MatrixCommand(
            name: "leakcheck", arguments: ["--marker", "a text that is nowhere"], key: nil, withoutKey: 0,
            ignoresLock: true),
        MatrixCommand(name: "doctor", subject: ".", key: nil, withoutKey: 0),
        MatrixCommand(name: "pull", arguments: ["SERVER/given"], writes: true),
        MatrixCommand(name: "download", arguments: ["SERVER/given"], writes: true),
        MatrixCommand(name: "push", arguments: ["SERVER/taken", "--create-target"], writes: true),
        MatrixCommand(
            name: "serve", subject: "stores", arguments: ["--no-authentication", "--port", "0"], goesOnForEver: true),
    ]

    static let ofStores = all.filter {
        !["create", "import-couchbase", "key generate", "doctor", "serve", "receipts verify"].contains($0.name)
    }
    static let writers = all.filter(\.writes)
}

/// A server for the commands that need one, with a database `given` to pull from, for as long as the tests run: a process of
/// its own, since tests that wait for processes take up the threads that a server here would need.
enum MatrixServer {
    static let url: String = (try? start()) ?? "no server"

    private static func start() throws -> String {
        let work = try Workspace()
        try work.coffer("create", "given.coffer", "--unencrypted")
        let records = (0..<20).map { #"{"_id":"given-\#($0)","n":\#($0),"text":"\#(MatrixFolder.canary)"}"# }
        try work.write(records.joined(separator: "\n"), to: "records.ndjson")
        try work.coffer("import", "given.coffer", "records.ndjson")
        let shell = Process()
        shell.executableURL = URL(filePath: "/bin/sh")
        shell.environment = ["PATH": "/usr/bin:/bin"]
        // It ends with its parent, and the folder with it. Other signals may be blocked, as they are in this thread.
        let script = """
            "$0" serve "$1" --no-authentication --unencrypted --port 0 >"$1/url" & server=$!
            while kill -0 $PPID; do sleep 1; done; kill -9 $server; wait; rm -rf "$1"
            """
        shell.arguments = ["-c", script, CofferProcess.executable.path, work.folder.path]
        for keyPath in [\Process.standardOutput, \Process.standardError] {
            shell[keyPath: keyPath] = FileHandle.nullDevice
        }
        try shell.run()
        _ = Unmanaged.passRetained(work)
        let url = try CofferProcess.firstLine(
            of: work.folder.appending(path: "url").path, by: shell.processIdentifier)
        return try #require(url)
    }
}

/// A folder in which each command of the matrix works: two stores, one in the clear, keys, and files to bring.
final class MatrixFolder: Sendable {
    let work: Workspace
    /// A key of the store that isn't the one in `key`.
    let slot: String

    static let secret = "Correct-Horse-7421-Staple"
    static let canary = "CANARY-of-the-document"

    private static let original: MatrixFolder? = try? MatrixFolder(empty: Workspace(inMemory: true))

    /// A copy of one that is made once.
    init(at folder: URL? = nil) throws {
        let original = try #require(Self.original)
        work = try folder.map(Workspace.init(at:)) ?? Workspace(inMemory: true)
        slot = original.slot
        for name in try FileManager.default.contentsOfDirectory(atPath: original.work.folder.path)
        where !name.hasPrefix(".") {
            try FileManager.default.copyItem(
                at: original.work.folder.appending(path: name), to: work.folder.appending(path: name))
        }
    }

    private init(empty work: Workspace) throws {
        self.work = work
        try work.makeStore()
        try work.write(Data(repeating: 9, count: 32), to: "wrong-key")
        try work.write(Data((0..<32).map { $0 + 100 }), to: "new-key")
        try work.write(Data((0..<31)), to: "short-key")
        try work.write(Workspace.key.map { String(format: "%02x", $0) }.joined() + "\r\n", to: "crlf-key")
        try work.write(Self.secret, to: "secret")
        try work.write(Data(repeating: 7, count: 3 << 20), to: "large")
        try work.write((0..<50).map { #"{"_id":"r\#($0)","n":\#($0)}"# }.joined(separator: "\n"), to: "records")
        let body = #"{"n":1,"text":"\#(Self.canary)"}"#
        let key = ["--key", "raw+file:key"]
        func run(_ arguments: String..., input: String = "", key: [String]) throws {
            let outcome = try CofferProcess.run(
                arguments + key, in: work.folder, CofferProcess.Surroundings(input: Data(input.utf8)))
            try #require(outcome.status == 0, "\(arguments): \(outcome.errors)")
        }
        try run("put", "people.coffer", "robin", input: body, key: key)
        try run("put", "people.coffer", "robin", input: body, key: key)
        try run("attach", "people.coffer", "robin", "file", "records", key: key)
        try run("index", "add", "people.coffer", "by-n", "n", key: key)
        try run("index", "add", "people.coffer", "texts", "n", "--text", key: key)
        try run("key", "backup", "people.coffer", "keys", key: key)
        try work.write(Data(repeating: 11, count: 32), to: "another-key")
        try run("key", "add", "people.coffer", "--new-key", "raw+file:another-key", "--label", "another", key: key)
        let list = try CofferProcess.run(["key", "list", "people.coffer", "--json"] + key, in: work.folder)
        slot = try #require(list.objects.first { $0["label"] as? String == "another" }?["id"] as? String)
        try run("create", "plain.coffer", "--unencrypted", key: [])
        try run("put", "plain.coffer", "robin", input: body, key: [])
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "stores"), withIntermediateDirectories: false)
        for name in ["a", "b"] {
            try FileManager.default.copyItem(
                at: work.folder.appending(path: "people.coffer"),
                to: work.folder.appending(path: "stores/\(name).coffer"))
        }
        try work.write("nothing", to: "stores/notes.txt")
        try work.makeCouchbaseStore("old.cblite2")
        try run("create", "rotated.coffer", key: key)
        try run("rotate", "rotated.coffer", "--new-key", "raw+file:new-key", "--receipts", "receipts", key: key)
        try FileManager.default.removeItem(at: work.folder.appending(path: "rotated.coffer"))
    }

    /// Runs a command line in both ways of writing; the second outcome is that of `--json`.
    func run(
        _ command: MatrixCommand, _ line: [String], environment: [String: String] = [:],
        meanwhile: (pid_t) throws -> Void = { _ in }
    ) throws -> CofferProcess.Outcome {
        var surroundings = CofferProcess.Surroundings(input: Data(command.input.utf8))
        surroundings.environment.merge(environment) { $1 }
        return try CofferProcess.run(
            line, in: work.folder, surroundings, goesOnForEver: command.goesOnForEver, meanwhile: meanwhile)
    }

    /// Removes what a command has made.
    func removeProducts(of command: MatrixCommand) throws {
        for name in command.makes where FileManager.default.fileExists(atPath: work.folder.appending(path: name).path) {
            try FileManager.default.removeItem(at: work.folder.appending(path: name))
        }
    }
}
