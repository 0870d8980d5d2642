import Foundation
import Testing

@Suite("Schemas of what --json writes", .timeLimit(.minutes(30)))
struct SchemaTests {
    /// Sees that every line is as the schema of its type says.
    private func check(
        _ outcome: CofferProcess.Outcome, _ line: [String], sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        for text in outcome.lines + outcome.errors.split(separator: "\n").map(String.init) {
            let object = try #require(
                try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(line): \(text)",
                sourceLocation: sourceLocation)
            let type = try #require(object["type"] as? String, "\(text)", sourceLocation: sourceLocation)
            let schema = try #require(
                try JSONSchema(type: type), "\(type) has no schema", sourceLocation: sourceLocation)
            #expect(try schema.problems(object) == [], "\(line): \(text)", sourceLocation: sourceLocation)
        }
    }

    @Test(
        "Each command's lines are as their schemas say, where all is well, and where a key is wrong",
        arguments: MatrixCommand.all)
    func matrix(command: MatrixCommand) throws {
        let folder = try MatrixFolder()
        let wrong = command.line(key: "raw+file:wrong-key", slot: folder.slot) + ["--json"]
        if command.key != nil, command.name != "create", !command.goesOnForEver {
            try check(folder.run(command, wrong), wrong)
        }
        let line = command.line(slot: folder.slot) + ["--json"]
        let outcome = try folder.run(command, line)
        #expect(outcome.status == 0, "\(outcome.errors)")
        // It writes what the attachment has.
        if command.name != "cat" { try check(outcome, line) }
    }

    @Test("What is said of work under way, of damage, of leaks and of what is not as asked is as the schemas say")
    func others() throws {
        let folder = try MatrixFolder()
        let work = folder.work
        let key = ["--key", "raw+file:key"], newKey = ["--new-key", "raw+file:new-key"]
        func run(_ arguments: [String], input: String = "") throws {
            let line = arguments + ["--json"]
            try check(CofferProcess.run(line, in: work.folder, .init(input: Data(input.utf8))), line)
        }
        try run(["ls", "stores"])
        try run(["ls", "people.coffer", "robin"] + key)
        try run(["query", "people.coffer", "--where", "n = 1", "--explain"] + key)
        try run(["pull", "people.coffer", "\(MatrixServer.url)/given", "--no-attachments"] + key)
        try run(["download", "people.coffer", "\(MatrixServer.url)/given", "--progress"] + key)
        try run(["download", "people.coffer", "given", "none", "\(MatrixServer.url)/given"] + key)
        try run(["pull", "people.coffer", "\(MatrixServer.url)/given", "--failed"] + key)
        try run(["key", "generate"])
        try run(["rm", "people.coffer", "robin", "nothing"] + key)
        try run(["import", "people.coffer", "-"] + key, input: #"{"_id":"x","a":}"#)
        try work.write("short", to: "short")
        try run(["key", "add", "people.coffer", "--new-key", "file:short"] + key)
        try work.write("nothing", to: "stores/c.coffer/MANIFEST")
        try run(["create", "stores/plain.coffer", "--unencrypted"])
        try run(["audit", "stores", "--encrypted", "--weaker-than", "scrypt:1048576:8:1"])
        try run(["info", "stores"] + key)
        let rotate = ["rotate", "stores", "--keep-going", "--progress"] + key + newKey
        try run(rotate + ["--dry-run"])
        try run(rotate + ["--receipts", "r", "--drop-other-keys"])
        try run(rotate + ["--receipts", "r"])
        let receipts = try String(contentsOf: work.folder.appending(path: "r"), encoding: .utf8)
        try check(.init(status: 0, outputBytes: Data(receipts.utf8), errors: ""), ["r"])
        try run(["check", "people.coffer", "--progress"] + key)
        let names = try FileManager.default.subpathsOfDirectory(
            atPath: work.folder.appending(path: "people.coffer").path)
        let name = try #require(names.first { $0.hasSuffix("db.sqlite3") })
        let file = work.folder.appending(path: "people.coffer/\(name)")
        var bytes = try Data(contentsOf: file)
        bytes[bytes.count / 2] ^= 1
        try bytes.write(to: file)
        try FileManager.default.createSymbolicLink(
            at: work.folder.appending(path: "people.coffer/link"), withDestinationURL: file)
        try run(["check", "people.coffer"] + key)
        try run(["salvage", "people.coffer", "saved.coffer"] + key)
        try work.makeCouchbaseStore("bad.cblite2", body: "no JSON")
        try run(["import-couchbase", "bad.cblite2", "imported.coffer", "--progress"] + key)
        try run(["leakcheck", ".", "--marker", "Correct-Horse"])
    }

    @Test("Every type of line in the tool's source has a schema, and every schema a type of line")
    func complete() throws {
        let sources = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../../Sources/CofferTool"
        )
        .standardizedFileURL
        // Named by what is done.
        var types: Set<String> = ["pull", "push"]
        for path in try FileManager.default.subpathsOfDirectory(atPath: sources.path) where path.hasSuffix(".swift") {
            let text = try String(contentsOf: sources.appending(path: path), encoding: .utf8)
            // Those of a file of receipts are begun by a function of their own.
            types.formUnion(text.matches(of: /(?:JSONLine\(type: |Self\.line\()"([a-zA-Z]+)"/).map { String($0.1) })
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: JSONSchema.folder.path)
        let schemas = names.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }
        #expect(types == Set(schemas))
    }

    @Test(
        "The schemas themselves refuse what is missing, too much, or of another type",
        arguments: [
            #"{"type":"note"}"#, #"{"type":"note","message":1}"#, #"{"type":"note","message":"a","b":1}"#,
            #"{"type":"doctor","problems":true}"#, #"{"type":"doctor","problems":-1}"#,
            #"{"type":"store","path":"a","keys":[]}"#,
            #"{"type":"begun","path":"a","run":"b"}"#, #"{"type":"done","outcome":"due"}"#, #"{"type":"end"}"#,
            #"{"type":"key","hex":"00"}"#, #"{"type":"backups"}"#,
        ])
    func refuses(line: String) throws {
        let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        let schema = try JSONSchema(type: object["type"] as? String ?? "")
        #expect(try schema.map { try !$0.problems(object).isEmpty } ?? true)
    }
}
