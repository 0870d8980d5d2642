import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

extension SyncCommandTests {
    private func curl(_ arguments: String) throws -> String {
        try work.shell("curl -s --max-time 300 -u robin:$(cat password) \(arguments)").output
    }

    @Test("The command serve answers for a store that its key does not open with an error, and serves the others")
    func otherKey() throws {
        try FileManager.default.copyItem(
            at: work.folder.appending(path: "people.coffer"), to: work.folder.appending(path: "served/people.coffer"))
        try #require(run(["create", "served/other.coffer", "--key", "raw+file:other-key"]).status == 0)
        try serving(work, key + who) { url in
            let refused = try curl("-w ' %{http_code}' \(url)/other/_all_docs")
            #expect(refused.contains("the server's key does not open this database"), "\(refused)")
            #expect(refused.hasSuffix(" 500"))
            let served = try curl("\(url)/people/p1")
            #expect(served.contains(Self.canary))
            let again = try curl("-w ' %{http_code}' \(url)/other")
            #expect(again.hasSuffix(" 500"))
        }
    }

    @Test("The command serve tries no key before it listens: a folder of stores under passwords is served at once")
    func slowKeys() throws {
        // What a password costs is the point here: each try takes a quarter of a second at the least.
        try #require(run(["create", "slow.coffer", "--key", "file:password"]).status == 0)
        for number in 0..<40 {
            try FileManager.default.copyItem(
                at: work.folder.appending(path: "slow.coffer"),
                to: work.folder.appending(path: "served/s\(number).coffer"))
        }
        let start = ContinuousClock.now
        try #require(run(["info", "slow.coffer", "--key", "file:password"]).status == 0)
        let once = ContinuousClock.now - start
        let beginning = ContinuousClock.now
        try serving(work, ["--key", "file:password"] + who) { _ in
            #expect(ContinuousClock.now - beginning < once * 20)
        }
    }

    @Test("The command serve refuses a folder that is not there, and a port that is taken") func serveFails() throws {
        #expect(try run(["serve", "missing", "--port", "0", "--no-authentication"] + key).status == 10)
        #expect(try run(["serve", "key", "--port", "0", "--no-authentication"] + key).status == 10)
        try serving(work, key + who) { url in
            let port = try #require(url.split(separator: ":").last)
            let taken = try run(["serve", "served", "--port", String(port), "--no-authentication", "--json"] + key)
            #expect(taken.status == 1)
            #expect((try taken.failure["message"] as? String)?.contains("can't be listened at") == true)
        }
    }

    @Test(
        "The command serve takes stores as they are, makes encrypted ones, changes no others, and lets go of all")
    func serve() throws {
        for name in ["people", "read-only"] {
            try FileManager.default.copyItem(
                at: work.folder.appending(path: "people.coffer"),
                to: work.folder.appending(path: "served/\(name).coffer"))
        }
        try #require(run(["create", "served/plain.coffer", "--unencrypted"]).status == 0)
        try #require(run(["put", "served/plain.coffer", "a"], input: "{}").status == 0)
        try serving(work, key + who + ["--serve-unencrypted"]) { url in
            do {
                let said = try curl("\(url)/_all_dbs")
                #expect(said == "[\"people\",\"plain\",\"read-only\"]\n")
            }
            do {
                let said = try curl("\(url)/people/p1")
                #expect(said.contains(Self.canary))
            }
            do {
                let said = try curl("\(url)/plain/a")
                #expect(said.contains("_rev"))
            }
            do {
                let said = try curl("-X PUT \(url)/made")
                #expect(said.contains("true"))
            }
            do {
                let said = try curl("-X PUT \(url)/made/x -d '{\"text\":\"\(Self.canary)\"}'")
                #expect(said.contains("true"))
            }
            // Who has none of the stores open may have them, and nobody else one that is open.
            do {
                let status = try run(["ls", "served/people.coffer"] + key).status
                #expect(status == 11)
            }
            do {
                let status = try run(["ls", "served/read-only.coffer"] + key).status
                #expect(status == 0)
            }
        }
        #expect(try run(["get", "served/made.coffer", "x"] + key).output.contains(Self.canary))
        #expect(try count(Self.canary, in: "served") == 0)
        #expect(try run(["check", "served/people.coffer"] + key).status == 0)
        try serving(work, key + who + ["--read-only"]) { url in
            let answer = try curl("-o /dev/null -w '%{http_code}' -X PUT \(url)/people/new -d '{}'")
            #expect(answer == "403")
            do {
                let said = try curl("\(url)/people/p1")
                #expect(said.contains(Self.canary))
            }
        }
    }

    @Test("An encrypted store that is exchanged for an unencrypted one is not served with a key, and stays unwritten")
    func exchangedStore() throws {
        try #require(run(["create", "served/swapped.coffer"] + key).status == 0)
        try #require(run(["create", "served/plain.coffer", "--unencrypted"]).status == 0)
        let put = "-w ' %{http_code}' -X PUT \(Self.placeholder)/swapped/x -d '{\"text\":\"\(Self.canary)\"}'"
        try serving(work, key + who) { url in
            // Before it was ever asked for.
            _ = try work.shell("rm -rf served/swapped.coffer && mv served/plain.coffer served/swapped.coffer")
            let said = try curl(put.replacing(Self.placeholder, with: url))
            #expect(said.hasSuffix(" 500"))
            let read = try curl("-w ' %{http_code}' \(url)/swapped/_all_docs")
            #expect(read.hasSuffix(" 500"))
        }
        #expect(try count(Self.canary, in: "served") == 0)
        // The same search finds it where plaintext was asked for.
        try serving(work, key + who + ["--serve-unencrypted"]) { url in
            let said = try curl(put.replacing(Self.placeholder, with: url))
            #expect(said.hasSuffix(" 201"))
        }
        #expect(try count(Self.canary, in: "served") > 0)
    }

    private static let placeholder = "URL"

    @Test("The option --read-only of serve changes no byte of a store with expired documents and a compaction due")
    func readOnlyBytes() throws {
        try work.write(String(repeating: "large ", count: 4_000_000), to: "large.txt")
        try #require(run(["create", "served/people.coffer"] + key).status == 0)
        for id in ["a", "b"] {
            try #require(run(["put", "served/people.coffer", id] + key, input: "{}").status == 0)
            try #require(run(["attach", "served/people.coffer", id, "large.txt", "large.txt"] + key).status == 0)
            try #require(run(["rm", "served/people.coffer", id] + key).status == 0)
        }
        let bytes = "find served -type f | sort | xargs sha256sum; find served -printf '%p %s %T@\\n' | sort"
        let before = try work.shell(bytes).output
        try serving(work, key + who + ["--read-only"]) { url in
            let said = try curl("\(url)/people/_all_docs")
            #expect(said.contains("rows"))
        }
        let after = try work.shell(bytes).output
        #expect(after == before)
    }

    @Test("A crash of the command prints neither registers nor memory") func crash() throws {
        let output = work.folder.appending(path: "url").path
        var surroundings = CofferProcess.Surroundings()
        surroundings.outputPath = output
        let outcome = try CofferProcess.run(
            ["serve", "served", "--port", "0"] + key + who, in: work.folder, surroundings
        ) { process in
            _ = try #require(try CofferProcess.firstLine(of: output, by: process))
            kill(process, SIGSEGV)
        }
        #expect(outcome.errors.isEmpty, "\(outcome.errors.prefix(200))")
    }

    @Test("A signal lets a request under way end, and serve ends with 0", arguments: [SIGINT, SIGTERM])
    func graceful(signal: Int32) throws {
        let output = work.folder.appending(path: "url").path
        var surroundings = CofferProcess.Surroundings()
        surroundings.outputPath = output
        let curl = Process()
        let outcome = try CofferProcess.run(
            ["serve", "served", "--port", "0"] + key + who, in: work.folder, surroundings
        ) { process in
            let url = try #require(try CofferProcess.firstLine(of: output, by: process))
            try #require(
                work.shell("curl -s -u robin:$(cat password) -X PUT \(url)/people").output.contains("true"))
            // Slowly, so that it is under way when the signal comes.
            curl.executableURL = URL(filePath: "/usr/bin/curl")
            curl.arguments = [
                "-s", "-o", work.folder.appending(path: "answer").path, "-u", "robin:\(Self.password)", "-X", "PUT",
                "--limit-rate", "1M", "-H", "Content-Type: a/b", "--data-binary", "@large", "\(url)/people/doc/large",
            ]
            curl.currentDirectoryURL = work.folder
            try curl.run()
            let incoming = "ls served/people.coffer/g*/incoming"
            _ = try eventually { try !work.shell(incoming).output.isEmpty || !curl.isRunning }
            kill(process, signal)
        }
        curl.waitUntilExit()
        #expect(outcome.status == 0, "\(outcome.errors)")
        let answer = try String(contentsOf: work.folder.appending(path: "answer"), encoding: .utf8)
        #expect(answer.contains("\"ok\":true"), "\(answer)")
        let attached = try run(["cat", "served/people.coffer", "doc", "large"] + key)
        #expect(try attached.outputBytes == Data(contentsOf: work.folder.appending(path: "large")))
    }
}
