import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// What others send, and what it costs the process that takes it. Memory is what the kernel says was in use at most.
@Suite(
    "Greedy requests and answers", .timeLimit(.minutes(30)),
    .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/status"), "memory is read from /proc"))
struct GreedyRequestTests {
    private let work: Workspace
    private let key = ["--key", "raw+file:key"]

    /// Under load a process of a debug build, its page caches, and what all requests may take by default.
    private static let byteLimit = 512_000_000
    /// What each of the greedy bodies has unpacked.
    private static let bodyByteCount = 64_000_000

    init() throws {
        work = try Workspace()
        try work.makeStore()
        try FileManager.default.createDirectory(
            at: work.folder.appending(path: "served"), withIntermediateDirectories: false)
    }

    /// The most memory that a process has had so far, in bytes; 0 where it has ended.
    private static func memory(of process: pid_t) -> Int {
        let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0) * 1024
    }

    /// Runs `coffer serve` with `body`, which is given the process and the URL. It is told to end afterwards, if not before.
    private func serving(_ body: (pid_t, String) throws -> Void) throws -> CofferProcess.Outcome {
        let output = work.folder.appending(path: "url").path
        var surroundings = CofferProcess.Surroundings()
        surroundings.outputPath = output
        return try CofferProcess.run(
            ["serve", "served", "--port", "0", "--no-authentication"] + key, in: work.folder, surroundings,
            goesOnForEver: true
        ) { process in
            let url = try #require(try CofferProcess.firstLine(of: output, by: process))
            try #require(work.shell("curl -s -X PUT \(url)/db").output.contains("true"))
            try body(process, url)
        }
    }

    /// Writes a body of JSON: the same element so many times, packed and as it is.
    ///
    /// - Returns: how many bytes it has.
    private func write(_ start: String, _ element: String, _ count: Int, _ end: String) throws -> Int {
        let text = start + String(repeating: element + ",", count: count) + element + end
        try work.write(text, to: "body")
        _ = try work.shell("gzip -1 -c body > packed")
        return text.utf8.count
    }

    @Test(
        "A body of 64 MB that a small request unpacks to costs little more than its bytes",
        arguments: [
            ("POST", "db/_bulk_docs", #"{"docs":["#, "0"), ("PUT", "db/x", #"{"a":["#, "[]"),
            ("POST", "db/_all_docs", #"{"keys":["#, "\"\""), ("POST", "db/_revs_diff", #"{"a":["#, "{}"),
        ])
    func unpacked(method: String, target: String, start: String, element: String) throws {
        let byteCount = try write(start, element, Self.bodyByteCount / (element.count + 1), "]}")
        #expect(byteCount > Self.bodyByteCount)
        let outcome = try serving { process, url in
            #expect((1...Self.byteLimit / 2).contains(Self.memory(of: process)), "the control")
            let status = try work.shell(
                "curl -s -o /dev/null -w '%{http_code}' -X \(method) -H 'Content-Encoding: gzip' "
                    + "-H 'Content-Type: application/json' --data-binary @packed \(url)/\(target)"
            ).output
            #expect(status == "413")
            let memory = Self.memory(of: process)
            #expect(memory < Self.byteLimit, "\(memory) bytes")
            #expect(memory > byteCount, "it was not even read")
        }
        #expect(outcome.status == 0, "\(outcome.errors)")
    }

    @Test("The most values that are taken, and a million keys, stay within the bound")
    func most() throws {
        let outcome = try serving { process, url in
            let send = "curl -s -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' --data-binary @body"
            _ = try write(#"{"a":["#, #"{"b":0}"#, 524_000, "]}")
            #expect(try work.shell("\(send) -X PUT \(url)/db/x").output == "201")
            _ = try write(#"{"keys":["#, #""x""#, 1_000_000, "]}")
            #expect(try work.shell("\(send) -X POST \(url)/db/_all_docs").output == "413")
            let memory = Self.memory(of: process)
            #expect(memory < Self.byteLimit, "\(memory) bytes")
        }
        #expect(outcome.status == 0, "\(outcome.errors)")
    }

    @Test("A request that takes longer than an orderly end may is taken back, and the process ends with 0")
    func end() throws {
        let count = 99_000
        _ = try write(#"{"docs":["#, #"{"a":"\#(String(repeating: "\\n", count: 300))"}"#, count - 1, "]}")
        let outcome = try serving { process, url in
            // Foundation waits for a process until nobody has what it was given, those that it leaves behind included.
            let closing = #"for n in {3..99}; do eval "exec $n>&-"; done"#
            let send =
                "curl -s -v --stderr said -o /dev/null -H Content-Type:application/json -H Expect: "
                + "--data-binary @body \(url)/db/_bulk_docs"
            _ = try work.shell("bash -c '\(closing); \(send); touch finished' > /dev/null 2>&1 < /dev/null &")
            let sent = "grep -qi 'upload.*sent off\\|completely uploaded' said && echo yes"
            #expect(try eventually { try work.shell(sent).output.contains("yes") })
            kill(process, SIGTERM)
        }
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(try eventually { try work.shell("ls finished").status == 0 })
        // A fast machine may have come to the end. Otherwise nothing of it is there, where nobody was told that it is.
        let wasAnswered = try String(contentsOf: work.folder.appending(path: "said"), encoding: .utf8)
            .contains("< HTTP/1.1 201")
        let list = try CofferProcess.run(["ls", "served/db.coffer"] + key, in: work.folder)
        #expect(list.status == 0, "\(list.errors)")
        #expect(list.lines.count == (wasAnswered ? count : 0))
        let check = try CofferProcess.run(["check", "served/db.coffer"] + key, in: work.folder)
        #expect(check.status == 0, "\(check.errors)")
    }

    @Test("A record with more values than a document may have is not imported, nor one put")
    func entries() throws {
        _ = try write(#"{"id":"x","a":["#, "0", 1_048_576, "]}")
        for command in [
            ["import", "people.coffer", "body", "--id", "id"], ["put", "people.coffer", "x", "body"],
        ] {
            let outcome = try CofferProcess.run(command + key, in: work.folder)
            #expect(outcome.status != 0 && outcome.errors.contains("values"), "\(outcome.errors)")
        }
        #expect(try CofferProcess.run(["ls", "people.coffer"] + key, in: work.folder).output.isEmpty)
    }

    /// Answers `_changes` with one row, or with more than anybody asked for; and `_bulk_get` with that.
    private static let server = """
        import http.server, os, sys
        os.closerange(3, 1000)
        greedy = b'{"results":[' + b'0,' * 32000000 + b'0]}'
        row = b'{"results":[{"seq":1,"id":"a","changes":[{"rev":"1-a"}]}],"last_seq":1}'
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'
            def answer(self):
                length = int(self.headers.get('Content-Length') or 0)
                self.rfile.read(length)
                status, body = 200, b'{}'
                if '_local' in self.path: status, body = 404, b'{"error":"not_found"}'
                elif '_changes' in self.path: body = greedy if sys.argv[1] == '_changes' else row
                elif '_bulk_get' in self.path or self.path.startswith('/db/a'): body = greedy
                self.send_response(status)
                self.send_header('Content-Type', 'application/json')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                try: self.wfile.write(body)
                except OSError: pass
            do_GET = do_POST = do_PUT = answer
            def log_message(self, *arguments): pass
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        print(server.server_address[1], flush=True)
        server.serve_forever()
        """

    @Test(
        "A server that answers a pull with 64 MB of values has the process hold little more than their bytes",
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/python3")),
        arguments: ["_changes", "_bulk_get"])
    func pull(answer: String) throws {
        try work.write(Self.server, to: "server.py")
        let start = "python3 server.py \(answer) > port 2>/dev/null < /dev/null & echo $!"
        let server = try #require(pid_t(try work.shell(start).output.filter(\.isNumber)))
        defer { kill(server, SIGKILL) }
        #expect(try eventually { try !work.shell("cat port").output.isEmpty })
        let port = try work.shell("cat port").output.filter(\.isNumber)
        var memory = 0
        let outcome = try CofferProcess.run(
            ["pull", "people.coffer", "http://127.0.0.1:\(port)/db"] + key, in: work.folder
        ) { process in
            while !CofferProcess.hasEnded(process) {
                memory = max(memory, Self.memory(of: process))
                usleep(1_000)
            }
        }
        #expect(outcome.status != 0, "\(outcome.output)")
        #expect(memory > Self.bodyByteCount, "it was not even read")
        #expect(memory < Self.byteLimit, "\(memory) bytes")
    }
}
