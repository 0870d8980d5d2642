import Coffer
import CofferModel
import CofferTesting
import Foundation
import TestSupport
import Testing

@testable import CofferSync

/// Replications that a client asks a server for: what CouchDB's documentation says of `_replicate` and `_active_tasks`.
@Suite("Replications that a client asks for") struct ReplicateTests {
    private let remote = TestServer()
    private let server: TestServer

    init() throws {
        let remote = remote
        server = TestServer(Self.patient, makeTransport: { _, _ in { remote } })
        for number in 0..<3 { try remote.database().write("doc-\(number)", [:]) }
    }

    /// However busy the machine, the answer waits for the replication's end.
    private static func patient(_ options: inout ListenerOptions) {
        options.replications = ReplicationOptions()
        options.idleTimeout = longestWait
    }

    private func replicate(
        _ json: JSONValue, on server: TestServer? = nil, fields: HTTPFields = [:]
    ) async throws -> TestServer.Answer {
        try await (server ?? self.server).call("POST", "/_replicate", json, fields: fields)
    }

    private func activeTasks() async throws -> [JSONValue] {
        try #require(try await server.call("GET", "/_active_tasks").json.arrayValue)
    }

    @Test("A pull says what it did, and that there was nothing more") func pulls() async throws {
        let question: JSONValue = ["source": "http://there/db", "target": "db", "create_target": true]
        let answer = try await replicate(question)
        #expect(answer.status == 200 && answer.json["ok"] == true && answer.json["no_changes"] == nil)
        #expect(answer.json["history"][0]["docs_written"] == 3)
        #expect(answer.json["history"][0]["doc_write_failures"] == 0)
        #expect(try server.database().documentCount == 3)
        let again = try await replicate(question)
        #expect(again.json["ok"] == true && again.json["no_changes"] == true)
        #expect(again.json["history"][0]["docs_written"] == 0)
        #expect(try await activeTasks().isEmpty)
    }

    @Test("A push makes the target where it is asked to") func pushes() async throws {
        try server.database().write("a", [:])
        let missing = try await replicate(["source": "db", "target": "http://there/copy"])
        #expect(missing.status == 404)
        let answer = try await replicate(["source": "db", "target": "http://there/copy", "create_target": true])
        #expect(answer.status == 200 && answer.json["history"][0]["docs_written"] == 1)
        #expect(try remote.database("copy").documentCount == 1)
    }

    @Test("A URL with the server's own host means a database here") func ownHost() async throws {
        try server.database().write("a", [:])
        let answer = try await replicate(
            ["source": "http://localhost:5984/db", "target": "http://there/db", "doc_ids": ["a"]],
            fields: ["Host": "localhost:5984"])
        #expect(answer.status == 200)
        #expect(try remote.database().documentCount == 4)
    }

    @Test("A continuous one goes on, shows among the tasks without its password, and ends when it is cancelled")
    func continuous() async throws {
        _ = try server.database()
        let question: JSONObject = [
            "source": [
                "url": "http://robin:s3cret@there/db", "auth": ["basic": ["username": "a", "password": "s3cret"]],
            ],
            "target": "db", "continuous": true,
        ]
        let answer = try await replicate(.object(question))
        #expect(answer.status == 202)
        let id = try #require(answer.json["_local_id"]?.stringValue)
        #expect(try await replicate(.object(question)).json["_local_id"] == .string(id))
        #expect(try await eventually { try server.database().documentCount >= 3 })
        try remote.database().write("later", [:])
        #expect(try await eventually { try server.database().documentCount >= 4 })
        // What was saved is counted a moment later.
        var tasks = try await activeTasks()
        while tasks.first?["docs_written"] != 4 {
            try await Task.sleep(for: .milliseconds(2))
            tasks = try await activeTasks()
        }
        #expect(tasks.count == 1)
        #expect(tasks[0]["type"] == "replication" && tasks[0]["replication_id"] == .string(id))
        #expect(tasks[0]["source"] == "http://there/db" && tasks[0]["target"] == "db")
        #expect(tasks[0]["continuous"] == true)
        #expect(!"\(tasks)".contains("s3cret"))
        let cancelled = try await replicate(["replication_id": .string(id), "cancel": true])
        #expect(cancelled.status == 200 && cancelled.json["_local_id"] == .string(id))
        #expect(try await activeTasks().isEmpty)
        #expect(try await replicate(["replication_id": .string(id), "cancel": true]).status == 404)
        // By what it was asked for with, too.
        #expect(try await replicate(.object(question)).status == 202)
        var cancellation = question
        cancellation["cancel"] = true
        #expect(try await replicate(.object(cancellation)).status == 200)
        #expect(try await activeTasks().isEmpty)
    }

    @Test("A request to replicate what can't be replicated is a 400, and nothing begins") func badRequests()
        async throws
    {
        _ = try server.database()
        let there: JSONValue = "http://there/db"
        let bad: [JSONValue] = [
            [], "db", [:], ["source": "db"], ["target": there], ["source": "db", "target": "db"],
            ["source": there, "target": there], ["source": "db", "target": 5], ["source": "db", "target": ""],
            ["source": "db", "target": "ftp://there/db"], ["source": "db", "target": "http://there"],
            ["source": "db", "target": there, "continuous": "yes"], ["source": "db", "target": there, "doc_ids": [1]],
            ["source": "db", "target": there, "doc_ids": "a"], ["source": "db", "target": there, "filter": 1],
            ["source": "db", "target": there, "selector": [:]], ["source": "db", "target": there, "since_seq": 0],
            ["source": "db", "target": there, "filter": "f", "doc_ids": ["a"]],
            ["source": "db", "target": ["url": there, "auth": ["basic": ["username": "a"]]]],
            ["source": "db", "target": ["url": there, "headers": ["a": 1]]],
        ]
        for json in bad { #expect(try await replicate(json).status == 400, "\(json)") }
        #expect(try await replicate(["source": "nothing", "target": there]).status == 404)
        #expect(try await server.call("GET", "/_replicate").status == 405)
        #expect(try await server.call("POST", "/_active_tasks").status == 405)
        #expect(try await activeTasks().isEmpty)
        #expect(try remote.database().documentCount == 3)
    }

    @Test("A request to replicate is a 403 unless the app allows it, and on a server that is read-only")
    func forbidden() async throws {
        let question: JSONValue = ["source": "http://there/db", "target": "db", "create_target": true]
        for allowed in [false, true] {
            let server = TestServer { options in
                options.replications = allowed ? ReplicationOptions() : nil
                options.isReadOnly = allowed
            } makeTransport: { [remote] _, _ in
                { remote }
            }
            #expect(try await replicate(question, on: server).status == 403)
            #expect(!server.stores.manager.databaseExists(named: "db"))
        }
    }

    @Test(
        "A refusal of the other side is none of the client's: 500, and 404 for what is not there",
        arguments: [401, 404])
    func refused(_ status: Int) async throws {
        let refusing = InterceptingTransport(remote) { _, _, _ in HTTPResponse(status) }
        let server = TestServer(Self.patient, makeTransport: { _, _ in { refusing } })
        _ = try server.database()
        let answer = try await replicate(["source": "http://there/db", "target": "db"], on: server)
        #expect(answer.status == (status == 401 ? 500 : 404))
        #expect(answer.fields["WWW-Authenticate"] == nil)
        #expect(try await server.call("GET", "/_active_tasks").json == [])
    }

    @Test(
        "Where a replication takes longer than a connection may be idle, its answer begins before the end",
        arguments: [200, 401])
    func slow(_ status: Int) async throws {
        let isOpen = Counter()
        let gate = InterceptingTransport(remote) { request, _, inner in
            #expect(try await eventually { isOpen.value != 0 })
            return status == 200 ? try await inner.send(request) : HTTPResponse(status)
        }
        let server = TestServer { options in
            options.replications = ReplicationOptions()
            options.idleTimeout = .milliseconds(90)
        } makeTransport: { _, _ in
            { gate }
        }
        _ = try server.database()
        let response = await server.service.respond(
            to: HTTPRequest(
                "POST", "/_replicate",
                body: .bytes(Array(#"{"source": "http://there/db", "target": "db"}"#.utf8))))
        #expect(response.status == 200)
        #expect(try await response.body.stream.next() == [UInt8(ascii: "\n")])
        isOpen.add(1)
        let json = try JSONValue(json: try await response.body.stream.collect(upTo: 1 << 20))
        #expect(json["ok"] == .bool(status == 200))
        #expect(try server.database().documentCount == (status == 200 ? 3 : 0))
    }

    @Test("A replication that was requested ends with the server, which begins no more") func ends() async throws {
        _ = try server.database()
        let question: JSONValue = ["source": "http://there/db", "target": "db", "continuous": true]
        #expect(try await replicate(question).status == 202)
        await server.service.endTasks()
        #expect(try await activeTasks().isEmpty)
        #expect(try await replicate(question).status == 503)
    }
}
