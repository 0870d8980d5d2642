import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// `coffer serve` with what `body` does meanwhile. The process has to end well when it is told to.
///
/// - Parameter body: is given the URL.
@discardableResult func serving(
    _ work: Workspace, _ arguments: [String], surroundings: CofferProcess.Surroundings = .init(),
    folder: String = "served", sourceLocation: SourceLocation = #_sourceLocation, _ body: (String) throws -> Void
) throws -> CofferProcess.Outcome {
    var surroundings = surroundings
    let output = work.folder.appending(path: ".served-\(UUID())").path
    surroundings.outputPath = output
    let outcome = try CofferProcess.run(
        ["serve", folder, "--port", "0"] + arguments, in: work.folder, surroundings, goesOnForEver: true
    ) { process in
        try body(try CofferProcess.firstLine(of: output, by: process) ?? "http://127.0.0.1:1")
    }
    #expect(outcome.status == 0, "\(outcome.errors)", sourceLocation: sourceLocation)
    try FileManager.default.removeItem(atPath: output)
    return outcome
}

@Suite("Exchanging revisions: pull, push and serve", .timeLimit(.minutes(30)))
struct SyncCommandTests {
    let work: Workspace
    let key = ["--key", "raw+file:key"]
    let who = ["--user", "robin", "--password", "file:password"]
    static let password = "CANARY-of-the-password"
    static let canary = "CANARY-of-a-document-that-nobody-may-read"

    init() throws {
        work = try Workspace()
        try work.makeStore()
        try work.write(Self.password + "\n", to: "password")
        try work.write(Data(repeating: 9, count: 32), to: "other-key")
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "served"), withIntermediateDirectories: false)
        try work.write(Data("\(Self.canary)-attached ".utf8) + Data(repeating: 7, count: 3 << 20), to: "large")
        let records = (0..<30).map { #"{"_id":"p\#($0)","n":\#($0),"text":"\#(Self.canary)"}"# }
        try work.write(records.joined(separator: "\n"), to: "records.ndjson")
        let brought = try work.coffer("import", "people.coffer", "records.ndjson", "--key", "raw+file:key")
        try #require(brought.status == 0, "\(brought.errors)")
        try #require(
            work.coffer(
                "attach", "people.coffer", "p1", "large", "large", "--type", "a/b", "--key", "raw+file:key"
            ).status == 0)
    }

    func run(
        _ arguments: [String], environment: [String: String] = [:], input: String = "",
        meanwhile: (pid_t) throws -> Void = { _ in }
    ) throws -> CofferProcess.Outcome {
        var surroundings = CofferProcess.Surroundings(input: Data(input.utf8))
        surroundings.environment.merge(environment) { $1 }
        let outcome = try CofferProcess.run(arguments, in: work.folder, surroundings, meanwhile: meanwhile)
        #expect(!outcome.errors.contains(Self.password) && !outcome.output.contains(Self.password))
        return outcome
    }

    func export(_ store: String, _ key: [String]) throws -> String {
        let outcome = try run(["export", store] + key)
        #expect(outcome.status == 0, "\(outcome.errors)")
        return outcome.output
    }

    /// How many of those files hold that text.
    func count(_ text: String, in folder: String) throws -> Int {
        try work.contents(of: folder).values.count { $0.range(of: Data(text.utf8)) != nil }
    }

    @Test("A push and a pull that makes its store bring everything, and nothing of it is readable on the disk")
    func everything() throws {
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "temporary"), withIntermediateDirectories: false)
        let environment = ["TMPDIR": work.folder.appending(path: "temporary").path]
        var surroundings = CofferProcess.Surroundings()
        surroundings.environment.merge(environment) { $1 }
        try serving(work, key + who, surroundings: surroundings) { url in
            let push = try run(
                ["push", "people.coffer", "\(url)/people", "--create-target", "--json"] + key + who,
                environment: environment)
            #expect(push.status == 0, "\(push.errors)")
            let result = try #require(try push.objects.first)
            #expect(result["type"] as? String == "push" && result["documents"] as? Int == 30)
            #expect(result["failed"] as? Int == 0 && result["url"] as? String == "\(url)/people")
            for (store, flags) in [
                ("new.coffer", ["--key", "raw+file:other-key"]), ("readable.coffer", ["--unencrypted"]),
            ] {
                let pull = try run(
                    ["pull", store, "\(url)/people", "--create", "--session"] + flags + who, environment: environment)
                #expect(pull.status == 0, "\(pull.errors)")
                #expect(pull.output == "30 documents\n")
            }
            // Nothing new is nothing to do.
            let again = try run(["pull", "new.coffer", "\(url)/people", "--key", "raw+file:other-key"] + who)
            #expect(again.output == "0 documents\n", "\(again.errors)")
        }
        let documents = try export("people.coffer", key)
        #expect(documents.contains(Self.canary))
        #expect(try export("new.coffer", ["--key", "raw+file:other-key"]) == documents)
        let attached = try run(["cat", "new.coffer", "p1", "large", "--key", "raw+file:other-key"])
        #expect(try attached.outputBytes == Data(contentsOf: work.folder.appending(path: "large")))
        for folder in ["new.coffer", "served", "temporary"] {
            #expect(try count(Self.canary, in: folder) == 0, "\(folder)")
        }
        // The control: the search finds what is there.
        #expect(try count(Self.canary, in: "readable.coffer") > 1)
    }

    @Test("A server that refuses a password is exit status 1 with its own code, and a wrong key of the store is 12")
    func passwords()
        throws
    {
        try serving(work, key + who) { url in
            for wrong in [["--user", "robin", "--password", "env:WRONG"], []] {
                let outcome = try run(
                    ["push", "people.coffer", "\(url)/people", "--json"] + key + wrong,
                    environment: ["WRONG": "wrong-password"])
                #expect(outcome.status == 1)
                let failure = try outcome.failure
                #expect(failure["code"] as? String == "serverUnauthorized" && failure["status"] as? Int == 401)
                #expect((failure["hint"] as? String)?.contains("not about the store's key") == true)
                #expect(!outcome.errors.contains("wrong-password"))
            }
            let wrongKey = try run(
                ["push", "people.coffer", "\(url)/people", "--json", "--key", "raw+file:other-key"] + who)
            #expect(wrongKey.status == 12)
            #expect(try wrongKey.failure["code"] as? String == "wrongKey")
            let missing = try run(["push", "people.coffer", "\(url)/none", "--json"] + key + who)
            #expect(missing.status == 1)
            #expect(try missing.failure["code"] as? String == "serverNotFound")
            // A pull that brings nothing leaves no store.
            let none = try run(["pull", "new.coffer", "\(url)/none", "--create"] + key + who)
            #expect(none.status == 1)
            #expect(!FileManager.default.fileExists(atPath: work.folder.appending(path: "new.coffer").path))
        }
    }

    @Test("A server that can't be reached is exit status 1, with a message that says so") func unreachable() throws {
        let outcome = try run(["push", "people.coffer", "http://127.0.0.1:1/people", "--json"] + key)
        #expect(outcome.status == 1)
        let failure = try outcome.failure
        #expect(failure["code"] as? String == "serverUnreachable" && failure["status"] as? Int == 503)
        #expect((failure["message"] as? String)?.hasPrefix("http://127.0.0.1:1/people: ") == true)
    }

    @Test(
        "A command line of an exchange that makes no sense, or holds a secret, is 64, and changes nothing",
        arguments: [
            ["pull", "people.coffer", "http://robin:CANARY-of-the-password@127.0.0.1/x"],
            [
                "pull", "people.coffer", "http://robin:CANARY-of-the-password@127.0.0.1/x", "--password",
                "file:password",
            ],
            ["pull", "people.coffer", "x"],
            ["pull", "people.coffer", "ftp://example.com/x"], ["pull", "people.coffer", "http://example.com"],
            ["pull", "people.coffer", "http://example.com/x?y"], ["pull", "people.coffer"],
            ["pull", "people.coffer", "http://example.com/x", "--user", "robin"],
            ["pull", "people.coffer", "http://example.com/x", "--password", "file:password"],
            ["pull", "people.coffer", "http://example.com/x", "--session"],
            ["pull", "people.coffer", "http://example.com/x", "--header", "Authorization: CANARY-of-the-password"],
            ["pull", "people.coffer", "http://example.com/x", "--header", "cookie: CANARY-of-the-password"],
            ["pull", "people.coffer", "http://example.com/x", "--header", "no field"],
            [
                "pull", "people.coffer", "http://example.com/x", "--secret-header",
                "Authorization=CANARY-of-the-password",
            ],
            ["pull", "people.coffer", "http://example.com/x", "--filter", "a/b", "--document-id", "p1"],
            ["pull", "people.coffer", "http://example.com/x", "--filter", "a/b", "--channel", "p1"],
            ["pull", "people.coffer", "http://example.com/x", "--filter-parameter", "no"],
            ["pull", "people.coffer", "http://example.com/x", "--unencrypted"],
            ["pull", "people.coffer", "http://example.com/x", "--proxy", "http://a:b@c"],
            ["pull", "people.coffer", "https://example.com/x", "--trust", "password"],
            ["push", "people.coffer", "http://example.com/x", "--user", "a", "--password", "hex+file:password"],
            ["push", "people.coffer", "http://example.com/x", "--user", "a", "--password", "CANARY-of-the-password"],
            ["serve", "served"], ["serve", "served", "--user", "robin"],
            ["serve", "served", "--user", "a:b", "--password", "file:password"],
            ["serve", "served", "--no-authentication", "--user", "robin", "--password", "file:password"],
            ["serve", "served", "--no-authentication", "--unencrypted"],
            ["serve", "served", "--no-authentication", "--host", "0.0.0.0"],
            ["serve", "served", "--no-authentication", "--host", "0.0.0.0", "--allow-plain-http"],
            ["serve", "served", "--user", "robin", "--password", "file:password", "--host", "0.0.0.0"],
            ["serve", "served", "--no-authentication", "--tls-certificate", "password"],
            ["serve", "served", "--no-authentication", "--tls-certificate", "password", "--tls-key", "password"],
            ["serve", "served", "--no-authentication", "--port", "70000"],
            ["serve", "served", "--no-authentication", "--max-connections", "0"],
        ])
    func usage(_ line: [String]) throws {
        let before = try work.contents(of: ".")
        let outcome = try run(line + key)
        #expect(outcome.status == 64, "\(outcome.status) \(outcome.errors)")
        #expect(try work.contents(of: ".") == before)
    }

    @Test("Missing sources of passwords are exit status 13") func sources() throws {
        for source in ["env:NOT_SET", "file:missing", "cmd:false"] {
            for line in [
                ["push", "people.coffer", "http://127.0.0.1:1/x"], ["serve", "served", "--port", "0"],
            ] {
                let outcome = try run(line + key + ["--user", "robin", "--password", source])
                #expect(outcome.status == 13, "\(outcome.errors)")
            }
        }
        let both = try run(
            [
                "push", "people.coffer", "http://127.0.0.1:1/x", "--key", "raw+stdin", "--user", "a", "--password",
                "stdin",
            ])
        #expect(both.status == 64)
    }

    @Test("A document that is refused keeps no other from coming across, is named, and makes exit status 3")
    func refused() throws {
        try work.write(#"{"text":"\#(String(repeating: "x", count: 5_000))"}"#, to: "long")
        try #require(run(["put", "people.coffer", "too-long", "long"] + key).status == 0)
        try serving(work, key + who + ["--max-body", "4000"]) { url in
            let outcome = try run(["push", "people.coffer", "\(url)/people", "--create-target", "--json"] + key + who)
            #expect(outcome.status == 3, "\(outcome.errors)")
            let objects = try outcome.objects
            #expect(objects.map { $0["type"] as? String } == ["failure", "push"])
            #expect(objects.first?["id"] as? String == "too-long" && objects.first?["status"] as? Int == 413)
            #expect(objects.last?["documents"] as? Int == 30 && objects.last?["failed"] as? Int == 1)
            #expect(try outcome.failure["code"] as? String == "documentsRefused")
        }
    }

    @Test("^C ends a replication that goes on with 130; what has come stays, and how far it was") func interrupted()
        throws
    {
        try serving(work, key + who) { url in
            try #require(run(["push", "people.coffer", "\(url)/people", "--create-target"] + key + who).status == 0)
            try #require(run(["create", "new.coffer"] + key).status == 0)
            // All that a pull has the server write is how far it is, once it has noted that itself. Reading touches the log's
            // index, too.
            let written = "stat -c '%y %s' served/people.coffer/g*/db.sqlite3 served/people.coffer/g*/db.sqlite3-wal"
            let before = try work.shell(written).output
            let outcome = try run(["pull", "new.coffer", "\(url)/people", "--continuous", "--json"] + key + who) {
                process in
                let hasCome = try? eventually {
                    try work.shell("ls new.coffer/g*/attachments").output.contains(".blob")
                        && work.shell(written).output != before || CofferProcess.hasEnded(process)
                }
                #expect(hasCome == true)
                kill(process, SIGINT)
            }
            #expect(outcome.status == 130, "\(outcome.errors)")
            #expect(try outcome.failure["code"] as? String == "cancelled")
            #expect((try outcome.failure["message"] as? String)?.contains("everything exchanged stays") == true)
            let again = try run(["pull", "new.coffer", "\(url)/people"] + key + who)
            #expect(again.output == "0 documents\n", "\(again.errors)")
        }
        #expect(try export("new.coffer", key) == export("people.coffer", key))
    }

    @Test("^C ends one that waits for a server that is not there, which says nothing of its return") func nobodyThere()
        throws
    {
        let outcome = try run(["pull", "people.coffer", "http://127.0.0.1:1/people", "--continuous"] + key) { process in
            let waits = try? eventually {
                try work.shell("cat .process-*/errors").output.contains("waiting for the server")
                    || CofferProcess.hasEnded(process)
            }
            #expect(waits == true)
            kill(process, SIGINT)
        }
        #expect(outcome.status == 130, "\(outcome.errors)")
        #expect(outcome.errors.contains("waiting for the server"))
        #expect(!outcome.errors.contains("there again"), "\(outcome.errors)")
    }

    @Test("Of a document in conflict rm deletes one revision, and says which one is left") func conflict() throws {
        for store in ["served/theirs.coffer", "ours.coffer"] {
            try #require(run(["create", store] + key).status == 0)
            try work.write(#"{"from":"\#(store)"}"#, to: "document")
            try #require(run(["put", store, "d", "document"] + key).status == 0)
        }
        try serving(work, key + who) { url in
            try #require(run(["pull", "ours.coffer", "\(url)/theirs"] + key + who).status == 0)
        }
        let first = try run(["rm", "ours.coffer", "d"] + key)
        #expect(first.status == 0 && first.errors.contains("still there as revision 1-"), "\(first.errors)")
        #expect(try run(["get", "ours.coffer", "d"] + key).status == 0)
        let last = try run(["rm", "ours.coffer", "d"] + key)
        #expect(last.status == 0 && last.errors.isEmpty, "\(last.errors)")
        #expect(try run(["get", "ours.coffer", "d"] + key).status != 0)
    }

    @Test("Options for documents, a proxy, header fields and trust are passed on to the replication") func choices()
        throws
    {
        try serving(work, key + who) { url in
            try #require(run(["push", "people.coffer", "\(url)/people", "--create-target"] + key + who).status == 0)
            let some = try run(
                ["pull", "new.coffer", "\(url)/people", "--create", "--document-id", "p1", "--document-id", "p2"]
                    + key + who)
            #expect(some.output == "2 documents\n", "\(some.errors)")
            #expect(try run(["ls", "new.coffer"] + key).lines == ["p1", "p2"])
            let token = "Basic " + Data("robin:\(Self.password)".utf8).base64EncodedString()
            try work.write(token, to: "token")
            let byHeader = try run(
                [
                    "pull", "third.coffer", "\(url)/people", "--create", "--document-id", "p1", "--header", "X-A: b",
                    "--secret-header", "Authorization=file:token",
                ] + key)
            #expect(byHeader.output == "1 document\n", "\(byHeader.errors)")
            let filtered = try run(
                ["pull", "new.coffer", "\(url)/people", "--filter", "no/such", "--json"] + key + who)
            #expect(filtered.status == 1)
            #expect(try filtered.failure["code"] as? String == "serverNotFound")
        }
    }

    @Test(
        "A server with a certificate is served by https alone, and believed where its authority is named",
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl"), "there is no command openssl"))
    func tls() throws {
        let made = try work.shell(
            """
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tls.key -out tls.pem -days 2 \
            -subj /CN=server -addext subjectAltName=IP:127.0.0.1 2>&1
            """)
        try #require(made.status == 0, "\(made.output)")
        let tls = ["--tls-certificate", "tls.pem", "--tls-key", "tls.key", "--host", "127.0.0.1"]
        try serving(work, key + who + tls) { url in
            #expect(url.hasPrefix("https://127.0.0.1:"))
            let refused = try run(["push", "people.coffer", "\(url)/people", "--create-target", "--json"] + key + who)
            #expect(refused.status == 1)
            #expect(try refused.failure["code"] as? String == "serverUntrusted")
            let trust = ["--trust", "tls.pem"]
            let push = try run(["push", "people.coffer", "\(url)/people", "--create-target"] + key + who + trust)
            #expect(push.status == 0, "\(push.errors)")
            let pull = try run(["pull", "new.coffer", "\(url)/people", "--create"] + key + who + trust)
            #expect(pull.output == "30 documents\n", "\(pull.errors)")
        }
        #expect(try export("new.coffer", key) == export("people.coffer", key))
    }
}
