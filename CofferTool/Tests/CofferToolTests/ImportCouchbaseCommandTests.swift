import Foundation
import Testing

@Suite("Importing a store of Couchbase Lite with the command")
struct ImportCouchbaseCommandTests {
    let work: Workspace

    init() throws {
        work = try Workspace(inMemory: true)
        try work.makeCouchbaseStore("old.cblite2")
        try work.write(Workspace.key, to: "key")
    }

    private func source() throws -> [String: Data] { try work.contents(of: "old.cblite2") }

    @Test("The command import-couchbase makes a store that opens with its key, and leaves the source unchanged")
    func whole() throws {
        let before = try source()
        let result = try work.coffer("import-couchbase", "old.cblite2", "new.coffer", "--key", "raw+file:key", "--json")
        #expect(result.status == 0, "\(result.errors)")
        let object = try #require(try result.objects.first)
        #expect(object["type"] as? String == "couchbaseImport")
        #expect(object["documents"] as? Int == 1 && object["complete"] as? Bool == true)
        #expect(try work.coffer("get", "new.coffer", "robin", "--key", "raw+file:key").output.contains("hello"))
        #expect(try source() == before)
        // Now the name is taken.
        #expect(
            try work.coffer("import-couchbase", "old.cblite2", "new.coffer", "--key", "raw+file:key").status == 1)
    }

    @Test("The option --check of import-couchbase reports what an import would, and makes no store")
    func check() throws {
        let result = try work.coffer("import-couchbase", "old.cblite2", "--check", "--json")
        #expect(result.status == 0, "\(result.errors)")
        #expect(try result.objects.first?["documents"] as? Int == 1)
        #expect(!FileManager.default.fileExists(atPath: work.folder.appending(path: "new.coffer").path))
        #expect(try work.coffer("import-couchbase", "old.cblite2", "new.coffer", "--check").status == 64)
    }

    @Test("The command import-couchbase prints a line for each problem, and ends with 3")
    func partly() throws {
        try work.makeCouchbaseStore("bad.cblite2", body: "no JSON")
        let result = try work.coffer("import-couchbase", "bad.cblite2", "bad.coffer", "--unencrypted", "--json")
        #expect(result.status == 3)
        #expect(try result.objects.map { $0["type"] as? String } == ["problem", "couchbaseImport"])
        #expect(try result.objects.first?["id"] as? String == "robin")
        #expect(try work.coffer("ls", "bad.coffer").status == 0)
    }

    @Test("The command import-couchbase ends with 64 without a new key, 12 for an unneeded key, 10 without a source")
    func refusals() throws {
        #expect(try work.coffer("import-couchbase", "old.cblite2", "new.coffer").status == 64)
        #expect(try work.coffer("import-couchbase", "old.cblite2", "--key", "raw+file:key").status == 64)
        let needless = try work.coffer(
            "import-couchbase", "old.cblite2", "new.coffer", "--unencrypted", "--source-key", "raw+file:key")
        #expect(needless.status == 12)
        #expect(try work.coffer("import-couchbase", "none.cblite2", "new.coffer", "--unencrypted").status == 10)
        #expect(!FileManager.default.fileExists(atPath: work.folder.appending(path: "new.coffer").path))
    }
}

extension Workspace {
    /// Makes an unencrypted store of Couchbase Lite 1.x with one document, using Python's SQLite.
    func makeCouchbaseStore(_ name: String, body: String = #"{"text":"hello"}"#) throws {
        try FileManager.default.createDirectory(
            at: folder.appending(path: "\(name)/attachments"), withIntermediateDirectories: true)
        let script = """
            import sqlite3, sys
            db = sqlite3.connect(sys.argv[1] + "/db.sqlite3")
            db.executescript('''
                CREATE TABLE docs (doc_id INTEGER PRIMARY KEY, docid TEXT UNIQUE NOT NULL, expiry_timestamp INTEGER);
                CREATE TABLE revs (sequence INTEGER PRIMARY KEY, doc_id INTEGER, revid TEXT, parent INTEGER, current BOOLEAN,
                    deleted BOOLEAN DEFAULT 0, json BLOB, no_attachments BOOLEAN, doc_type TEXT);
                CREATE TABLE localdocs (docid TEXT UNIQUE NOT NULL, revid TEXT NOT NULL, json BLOB);
                CREATE TABLE views (view_id INTEGER PRIMARY KEY, name TEXT);
                CREATE TABLE info (key TEXT PRIMARY KEY, value TEXT);
                INSERT INTO docs VALUES (1, 'robin', NULL);
                PRAGMA user_version = 102;''')
            db.execute("INSERT INTO revs VALUES (1, 1, '1-' || ?, NULL, 1, 0, ?, 1, NULL)", ("a" * 32, sys.argv[2].encode()))
            db.commit()
            """
        let python = Process()
        python.executableURL = URL(filePath: "/usr/bin/python3")
        python.arguments = ["-c", script, folder.appending(path: name).path, body]
        try python.run()
        python.waitUntilExit()
        try #require(python.terminationStatus == 0)
    }
}
