import Coffer
import CofferModel
import Foundation
import Testing

@testable import CofferSync

@Suite("Messages of replication") struct MessageTests {
    private func value(_ text: String) throws -> JSONValue { try JSONValue(json: Array(text.utf8)) }

    @Test("A page of changes is read as CouchDB writes it, and written so that it is read the same") func page() throws
    {
        let page = try ChangesPage(
            value(
                """
                {"results":[
                {"seq":"3-g1AA","id":"conf","changes":[{"rev":"2-cccc"},{"rev":"2-bbbb"}]},
                {"seq":"4-g1AB","id":"gone","changes":[{"rev":"2-dddd"}],"deleted":true}
                ],
                "last_seq":"4-g1AB","pending":7}
                """))
        #expect(page.rows.map(\.id) == ["conf", "gone"])
        #expect(page.rows[0].revisions.map(\.description) == ["2-cccc", "2-bbbb"])
        #expect(page.rows.map(\.isDeletion) == [false, true])
        #expect(page.last.text == "4-g1AB")
        #expect(page.pendingCount == 7)
        let again = try ChangesPage(page.json)
        #expect(again.rows == page.rows && again.last == page.last && again.pendingCount == 7)
    }

    @Test(
        "Positions in the feed of changes are kept as they are, whatever they are",
        arguments: [("17", "17"), ("\"1:2\"", "1:2"), ("[3,\"x\"]", "[3,\"x\"]")])
    func positions(json: String, text: String) throws {
        let page = try ChangesPage(value("{\"results\":[],\"last_seq\":\(json)}"))
        #expect(page.last.text == text)
        #expect(page.pendingCount == nil)
    }

    @Test("A revision id that none can have here is noted, and keeps no row out") func foreignRevisions() throws {
        let text = #"{"results":[{"seq":1,"id":"a","changes":[{"rev":"x"},{"rev":"1-a"}]}],"last_seq":1}"#
        let page = try ChangesPage(value(text))
        #expect(page.rows.map(\.hasForeignRevisions) == [true])
        #expect(page.rows.first?.revisions.map(\.description) == ["1-a"])
    }

    @Test(
        "A page of changes that is malformed is a 502",
        arguments: [
            "{}", "[]", "{\"results\":[]}", "{\"results\":{},\"last_seq\":1}", "{\"results\":[{}],\"last_seq\":1}",
            "{\"results\":[],\"last_seq\":null}", "{\"results\":[{\"seq\":1,\"id\":\"a\"}],\"last_seq\":1}",
            "{\"results\":[{\"seq\":1,\"id\":5,\"changes\":[]}],\"last_seq\":1}",
        ])
    func badPages(text: String) throws {
        let error = #expect(throws: SyncError.self) { try ChangesPage(value(text)) }
        #expect(error?.status == 502)
    }

    @Test("Lines of a feed are found however their bytes come in", arguments: [1, 2, 5, 100]) func lines(count: Int)
        throws
    {
        let bytes = Array("{\"a\":1}\r\n\n{\"b\"".utf8)
        var splitter = LineSplitter()
        var lines: [String] = []
        for start in stride(from: 0, to: bytes.count, by: count) {
            let piece = Array(bytes[start..<min(start + count, bytes.count)])
            lines += try splitter.lines(piece).map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(lines == ["{\"a\":1}", ""])
        #expect(try splitter.lines(Array(":2}\n".utf8)) == [Array("{\"b\":2}".utf8)])
    }

    @Test("A line of a feed without an end is refused when it is too long") func endlessLine() {
        var splitter = LineSplitter()
        #expect(throws: SyncError.self) {
            for _ in 0..<2000 { _ = try splitter.lines([UInt8](repeating: 0x20, count: 1024)) }
        }
    }

    @Test("Members that a message leaves out are read as CouchDB says") func difference() throws {
        // What was not asked for is not sent, though a server says that it is missing.
        let question = try RevisionsQuestion(value(#"{"missing":["1-x"],"conf":["3-eeee","3-ffff"],"rest":["1-a"]}"#))
        let answer = try RevisionsDifference.answer(
            value(
                """
                {"missing":{"missing":["1-x"]},"other":{"missing":["1-x"]},"rest":{"missing":["2-b"]},
                "conf":{"missing":["3-eeee","2-secret","3-eeee"],"possible_ancestors":["2-cccc","junk"]}}
                """), to: question)
        #expect(answer.map(\.id) == ["missing", "conf"])
        #expect(answer[1].1.missing.map(\.description) == ["3-eeee"])
        #expect(answer[1].1.possibleAncestors.map(\.description) == ["2-cccc"])
        #expect(try RevisionsDifference(answer[1].1.json) == answer[1].1)
        // CouchDB says 32 hex digits in lower case.
        let digits = String(repeating: "AB", count: 16)
        var upper = RevisionsQuestion()
        upper.documents = [("a", [try #require(RevisionID("1-\(digits)")), try #require(RevisionID("1-x"))])]
        let lower = try RevisionsDifference.answer(
            ["a": ["missing": [.string("1-\(digits.lowercased())")]]], to: upper)
        #expect(lower.first?.1.missing.map(\.description) == ["1-\(digits)"])
        for text in ["[]", "{\"a\":{}}", "{\"a\":5}"] {
            #expect(throws: SyncError.self) { try RevisionsDifference.answer(value(text), to: question) }
        }
    }

    @Test("A question about revisions is written so that it is read the same") func question() throws {
        let question = try RevisionsQuestion(value(#"{"b":["1-a","2-b"],"a":[]}"#))
        #expect(question.documents.map(\.id) == ["b", "a"])
        #expect(try RevisionsQuestion(question.json).documents[0].revisions == question.documents[0].revisions)
        for text in ["[]", "{\"a\":{}}", "{\"a\":[5]}", "{\"a\":[\"x\"]}"] {
            let error = #expect(throws: SyncError.self) { try RevisionsQuestion(value(text)) }
            #expect(error?.status == 400)
        }
    }

    @Test("Revisions that _bulk_get brings, and reasons why not, are told apart") func bulkGet() throws {
        let answers = try RevisionAnswer.all(
            inBulkAnswer: value(
                """
                {"results":[{"id":"conf","docs":[{"ok":{"_id":"conf","_rev":"2-cccc","z":1,"a":2}}]},
                {"id":"none","docs":[{"error":{"rev":"undefined","reason":"missing","id":"none","error":"not_found"}}]}]}
                """))
        guard case .revision(let revision) = answers[0], case .failure(let id, _, let error) = answers[1] else {
            Issue.record("\(answers)")
            return
        }
        #expect(revision.keys == ["_id", "_rev", "z", "a"])
        #expect(id == "none" && error.status == 404)
        for text in ["{}", "{\"results\":[{}]}", "{\"results\":[{\"id\":\"a\",\"docs\":[{}]}]}"] {
            #expect(throws: SyncError.self) { try RevisionAnswer.all(inBulkAnswer: value(text)) }
        }
    }

    @Test("Requests for revisions are written so that they are read the same") func requests() throws {
        let requests = [
            RevisionRequest(id: "a", revision: RevisionID("2-b"), attachmentsSince: [try #require(RevisionID("1-a"))]),
            RevisionRequest(id: "b", revision: nil),
        ]
        #expect(try RevisionRequest.all(in: RevisionRequest.question(requests)) == requests)
        #expect(throws: SyncError.self) {
            try RevisionRequest.all(in: value("{\"docs\":[{\"id\":\"a\",\"rev\":\"x\"}]}"))
        }
    }

    @Test("Failures of _bulk_docs have the status of their names") func bulkFailures() throws {
        let failures = try BulkFailure.all(
            in: value(
                """
                [{"ok":true,"id":"a","rev":"1-a"},{"id":"b","rev":"1-b","error":"forbidden","reason":"no"},
                {"id":"c","error":"something","status":418},{"id":"d","error":"unheard_of"}]
                """))
        #expect(failures.map(\.id) == ["b", "c", "d"])
        #expect(failures.map(\.error.status) == [403, 418, 500])
        #expect(failures[0].revision?.description == "1-b")
        #expect(throws: SyncError.self) { try BulkFailure.all(in: value("{}")) }
    }
}

@Suite("Checkpoints") struct CheckpointTests {
    private func checkpoint(_ sessions: (String, FeedPosition)...) -> Checkpoint {
        Checkpoint(sessions: sessions.map { Checkpoint.Session(id: $0.0, position: $0.1) })
    }

    @Test("A checkpoint that is written is read back, CouchDB's too") func roundTrip() throws {
        let one = checkpoint(("b", FeedPosition("2-x")), ("a", FeedPosition(1)))
        #expect(Checkpoint(one.json) == one)
        let theirs = try JSONValue(
            json: Array(
                #"{"session_id":"s1","source_last_seq":"5","history":[{"session_id":"s1","recorded_seq":"5"}]}"#.utf8))
        #expect(Checkpoint(try #require(theirs.objectValue)) == checkpoint(("s1", FeedPosition("5"))))
        #expect(Checkpoint(["session_id": 5, "history": [[], 3, nil]]).sessions.isEmpty)
    }

    @Test("The latest record that both sides have says how far both have come") func common() {
        let (old, new) = (("s1", FeedPosition("1-x")), ("s2", FeedPosition("2-x")))
        #expect(Checkpoint.common(source: checkpoint(old), target: checkpoint(old)) == old.1)
        // One of them was put back to an earlier state, whichever it was.
        #expect(Checkpoint.common(source: checkpoint(new, old), target: checkpoint(old)) == old.1)
        #expect(Checkpoint.common(source: checkpoint(old), target: checkpoint(new, old)) == old.1)
        #expect(Checkpoint.common(source: checkpoint(new, old), target: checkpoint(new, old)) == new.1)
        #expect(Checkpoint.common(source: checkpoint(old), target: checkpoint()) == nil)
        #expect(Checkpoint.common(source: checkpoint(), target: checkpoint(old)) == nil)
        // Two that say something else under one name agree about nothing.
        #expect(Checkpoint.common(source: checkpoint(old), target: checkpoint(("s1", FeedPosition("9-x")))) == nil)
    }

    @Test("The history of a checkpoint is bounded, and a session stands in it once") func bounded() {
        var one = Checkpoint()
        for number in 0..<200 { one = one.recording("s\(number / 2)", at: FeedPosition(.number(.init(Int64(number))))) }
        #expect(one.sessions.count == 50)
        #expect(one.sessions[0] == .init(id: "s99", position: FeedPosition(199)))
        #expect(one.sessions[1].id == "s98")
    }

    @Test("Replications that differ in anything have their own checkpoints") func identities() throws {
        let one = ReplicationIdentity(database: UUID(), remote: "http://a/db", isPull: true)
        var all = [one]
        func add(_ change: (inout ReplicationIdentity) -> Void) {
            var other = one
            change(&other)
            all.append(other)
        }
        add { $0.database = UUID() }
        add { $0.remote = "http://a/db2" }
        add { $0.isPull = false }
        add { $0.filter = "f" }
        add { $0.filterParameters = ["a": 1] }
        add { $0.documentIDs = [] }
        add { $0.documentIDs = ["a", "b"] }
        add { $0.channels = ["a", "b"] }
        #expect(Set(try all.map { try $0.checkpointID }).count == all.count)
        var twin = one
        twin.documentIDs = ["b", "a"]
        #expect(try twin.checkpointID == all[7].checkpointID)
    }
}

@Suite("When a request is repeated") struct RetryPolicyTests {
    @Test("Pauses between attempts double up to the longest, and keep apart") func pauses() {
        let policy = RetryPolicy()
        #expect(policy.pause(after: 1, chance: 1) == .milliseconds(500))
        #expect(policy.pause(after: 1, chance: 0) == .milliseconds(250))
        #expect(policy.pause(after: 3, chance: 1) == .seconds(2))
        #expect(policy.pause(after: 8, chance: 1) == .seconds(60))
        #expect(policy.pause(after: .max, chance: 7) == .seconds(60))
    }

    @Test("A pause that the server asks for counts, within reason") func serverAsks() {
        let policy = RetryPolicy()
        #expect(policy.pause(after: 1, chance: 1, serverAsks: .seconds(90)) == .seconds(90))
        #expect(policy.pause(after: 1, chance: 1, serverAsks: .seconds(1 << 40)) == .seconds(3600))
        #expect(policy.pause(after: 2, chance: 1, serverAsks: .zero) == .seconds(1))
    }

    @Test("Only attempts that may go well later are repeated") func transient() {
        for status in [408, 429, 500, 502, 503, 504] { #expect(SyncError(status, "").mayPass) }
        for status in [400, 401, 403, 404, 409, 412, 413, 415, 499] { #expect(!SyncError(status, "").mayPass) }
    }
}
