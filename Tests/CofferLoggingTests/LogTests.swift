import Coffer
import CofferSync
import CofferTesting
import Foundation
import Testing

#if SwiftLog
import Logging
import Synchronization

@testable import CofferLogging
#endif

@Suite("What Coffer tells a log", .serialized, .timeLimit(.minutes(30)))
struct LogTests {
    let stores = TemporaryStores()
    let name = uniqueName()

    private func open(_ key: SymmetricKey? = nil) throws -> Database {
        try stores.manager.database(named: name, encryptionKey: try key ?? makeKey(1))
    }

    private func events(_ recorder: LogRecorder, _ category: LogMessage.Category) -> [String] {
        recorder.messages(about: name).filter { $0.category == category }.map(\.event)
    }

    @Test("The log tells of a database that is created, closed, opened, verified, compacted and deleted")
    func life() throws {
        let recorder = LogRecorder()
        try open().close()
        let database = try open()
        try database.save(["n": 1], withID: "a")
        #expect(try database.verify().isSound)
        try database.compact()
        try database.delete()
        #expect(
            events(recorder, .storage) == ["created", "closed", "opened", "verified", "compacted", "deleted"])
        #expect(recorder.messages(about: name).allSatisfy { $0.subject == "database \(name)" })
        #expect(recorder.messages(about: name).first?.level == .info)
        #expect(recorder.messages(about: name).first?.description == "database \(name): created (encrypted yes)")
    }

    @Test("Messages below the level are not made, and none without a handler")
    func levels() throws {
        let recorder = LogRecorder(level: .info)
        try open().close()
        try open().close()
        #expect(events(recorder, .storage) == ["created"])
        CofferLog.setHandler(nil)
        try open().delete()
        try open().close()
        #expect(events(recorder, .storage) == ["created"])
    }

    @Test("A wrong key is a notice in the log about keys, and damage is an error")
    func refusals() throws {
        try open().close()
        let recorder = LogRecorder()
        #expect(throws: CofferError.self) { try open(makeKey(2)) }
        let refusal = try #require(recorder.messages(about: name).first)
        #expect(refusal.level == .notice && refusal.category == .keys)
        #expect(refusal.details == ["error": "wrongKey", "status": "401"])

        let manifest = stores.url(ofDatabaseNamed: name).appending(path: "MANIFEST")
        try Data("nothing".utf8).write(to: manifest)
        #expect(throws: CofferError.self) { try open() }
        let damage = try #require(recorder.messages(about: name).last)
        #expect(damage.level == .error && damage.category == .storage)
        #expect(damage.details["status"] == "500")
    }

    @Test("The log tells of keys that are changed, added, replaced and removed, with counts and no key")
    func keys() throws {
        let database = try open()
        try database.save(["n": 1], withID: "a")
        let recorder = LogRecorder()
        try database.changeEncryptionKey(to: makeKey(2))
        let added = try database.addKey(makeKey(3))
        try database.removeKey(added.id)
        try database.changeEncryptionKey(to: nil)
        #expect(
            events(recorder, .keys) == [
                "encrypted under another key", "a key was added", "a key was removed", "decrypted",
            ])
        let change = try #require(recorder.messages(about: name).first { $0.category == .keys })
        #expect(change.details["documents"] == "1" && change.details["generation"] == "2")
        #expect(change.details["keys"] == "1" && change.level == .notice)
    }

    @Test("A change of the key that fails is a warning in the log with its code")
    func failedChange() throws {
        let database = try open()
        _ = try database.addKey(makeKey(3))
        let recorder = LogRecorder()
        #expect(throws: CofferError.self) { try database.changeEncryptionKey(to: makeKey(2)) }
        let failure = try #require(recorder.messages(about: name).first)
        #expect(failure.level == .warning && failure.category == .keys)
        #expect(failure.details == ["error": "otherKeysExist", "status": "409"])
    }

    @Test("A slow query is logged with how it found its documents, also when only some were taken; a fast one is not")
    func queries() throws {
        let database = try open()
        try database.inTransaction {
            for number in 0..<2_000 { try database.save(json: json(number), withID: "d\(number)") }
        }
        let recorder = LogRecorder()
        let query = DocumentQuery(where: Property("n") >= 100)
        #expect(try database.documents(query).all.count == 1_900)
        var some: Rows<SavedRevision>.Iterator? = database.documents(query).makeIterator()
        _ = try some?.next()
        some = nil
        try database.createIndex(named: "by n", on: "n")
        #expect(try database.documents(query).all.count == 1_900)
        let slow = recorder.messages(about: name).filter { $0.event == "a query was slow" }
        #expect(slow.map { $0.details["index"] } == ["none", "none", "used"])
        #expect(slow.first?.details["rows"] == "1900" && slow.first?.details["checksDocuments"] == "yes")
        #expect(try #require(Int(slow[1].details["rows"] ?? "")) < 1_900)
        #expect(events(recorder, .queries).contains("an index was brought up to date slowly"))

        let fast = LogRecorder(slowQueryThreshold: .seconds(3_600))
        #expect(try database.documents(query).all.count == 1_900)
        #expect(events(fast, .queries) == [])
    }

    @Test("Views and reductions that are slow are logged")
    func views() throws {
        let database = try open()
        for number in 0..<3 { try database.save(json: json(number), withID: "d\(number)") }
        let view = database.view(named: "numbers")
        try view.setMap(version: "1", reduction: .count) { revision, emit in
            emit(try revision["n"] ?? .null, 1)
        }
        let recorder = LogRecorder()
        #expect(try view.rows().all.count == 3)
        #expect(try view.reduce() == 3)
        #expect(events(recorder, .queries).contains("a view was slow"))
        #expect(events(recorder, .queries).contains("a reduction was slow"))
    }

    @Test("The log counts the documents that expired")
    func expiration() throws {
        let database = try open()
        let recorder = LogRecorder()
        for number in 0..<3 {
            try database.save(["n": 1], withID: "d\(number)")
            try database.document(withID: "d\(number)").setExpirationDate(Date(timeIntervalSinceNow: -1))
        }
        func purgedCount() -> Int {
            recorder.messages(about: name).filter { $0.event == "expired documents were purged" }
                .compactMap { $0.details["documents"].flatMap { Int($0) } }.reduce(0, +)
        }
        let end = ContinuousClock.now + .seconds(1_200)
        while purgedCount() < 3, .now < end { Thread.sleep(forTimeInterval: 0.01) }
        #expect(purgedCount() == 3)
        #expect(try database.documentCount == 0)
    }

    // MARK: Sync

    @Test("The log says that a replication started and ended, and with which status it gave up")
    func replication() async throws {
        let key = try makeKey(1)
        let server = Service.open(stores.manager, key: key)
        let remote = uniqueName()
        let database = try open()
        let there = try await stores.manager.database(named: remote, encryptionKey: key)
        for number in 0..<3 { try await there.save(json: json(number), withID: "d\(number)") }
        let recorder = LogRecorder()
        let url = try RemoteURL(try #require(URL(string: "http://localhost/\(remote)")))
        let pull = try Replication(.pull, database, url, ReplicationOptions()) { ServiceTransport(service: server) }
        try await pull.run()
        let ended = try #require(recorder.messages(about: "pull into database \(name)").last)
        #expect(events(recorder, .sync) == ["started", "ended"])
        #expect(ended.details["documents"] == "3" && ended.details["failed"] == "0" && ended.level == .info)

        let missing = try RemoteURL(try #require(URL(string: "http://localhost/\(uniqueName())x")))
        let push = try Replication(.push, database, missing, ReplicationOptions()) { ServiceTransport(service: server) }
        await #expect(throws: SyncError.self) { try await push.run() }
        let failure = try #require(recorder.messages(about: "push of database \(name)").first { $0.level == .error })
        #expect(failure.event == "given up" && failure.details == ["status": "404"])
    }

    @Test("A listener logs requests by method and status, and repeats no text of a stranger's")
    func requests() async throws {
        let server = Service.open(stores.manager, key: try makeKey(1))
        let recorder = LogRecorder()
        let created = await server.respond(to: HTTPRequest("PUT", "/\(name)"))
        let odd = await server.respond(to: HTTPRequest("CANARY-method", "/\(name)/canary-id"))
        #expect(created.status == 201 && odd.status == 405)
        let messages = recorder.messages(about: "listener")
        #expect(messages.contains { $0.details["method"] == "PUT" && $0.details["status"] == "201" })
        #expect(messages.contains { $0.details["method"] == "other" && $0.details["status"] == "405" })
        #expect(!messages.contains { $0.description.lowercased().contains("canary") })
    }

    // MARK: Secrets

    @Test("No log message holds content, ids, names of indexes, what is asked for, keys or passwords")
    func secrets() async throws {
        let canary = "Canary\(UInt32.random(in: 0 ... .max))"
        let recorder = LogRecorder()
        let key = SymmetricKey(password: "\(canary) password")
        let database = try await stores.manager.database(named: name, encryptionKey: key)
        let draft = try database.document(withID: "\(canary) id").newRevision()
        draft["\(canary) property"] = .string("\(canary) value")
        draft.setAttachment(named: "\(canary) file", contentType: "text/plain", content: Data("\(canary) bytes".utf8))
        try await draft.save()
        try await database.createIndex(named: "\(canary) index", on: [PropertyPath("\(canary) property")])
        let query = DocumentQuery(where: Coffer.Property(PropertyPath("\(canary) property")) == "\(canary) value")
        for try await _ in database.documents(query) {}
        #expect(throws: CofferError.self) { try database.save(["a": 1], withID: "_\(canary)") }
        _ = try await database.addKey(SymmetricKey(password: "\(canary) second"), label: "\(canary) label")
        try await database.changeEncryptionKey(to: SymmetricKey(password: "\(canary) new"), droppingOtherKeys: true)
        try await database.compact()
        let server = Service.open(stores.manager, key: key)
        let url = try RemoteURL(
            try #require(URL(string: "http://\(canary):\(canary)@localhost/\(canary.lowercased())")))
        let push = try Replication(.push, database, url, ReplicationOptions()) { ServiceTransport(service: server) }
        await #expect(throws: (any Error).self) { try await push.run() }
        _ = await server.respond(to: HTTPRequest("GET", "/\(name)/\(canary)"))
        try await database.close()
        await #expect(throws: CofferError.self) {
            try await stores.manager.database(named: name, encryptionKey: SymmetricKey(password: "\(canary) wrong"))
        }
        let messages = recorder.all
        #expect(messages.contains { $0.description.contains(name) }, "the search finds what is there")
        #expect(recorder.messages(about: name).count > 8)
        #expect(!messages.contains { $0.description.lowercased().contains(canary.lowercased()) })
    }

    // MARK: Handlers

    @Test("A log handler may use databases, and a slow one keeps nobody: what is lost is counted")
    func slowHandler() throws {
        let database = try open()
        let mayGoOn = DispatchSemaphore(value: 0)
        let seen = LogSightings()
        CofferLog.setHandler(level: .info, slowQueryThreshold: .seconds(3_600)) { [database, name] message in
            if seen.note(message) == 1 { mayGoOn.wait() }
            guard message.subject == "database \(name)", message.event == "compacted" else { return }
            // What it writes in turn is told later, and not waited for.
            CofferLog.flush()
            _ = try? database.documentCount
        }
        defer { CofferLog.setHandler(nil) }
        for _ in 0..<1_200 { try database.compact() }
        mayGoOn.signal()
        CofferLog.flush()
        // The first was taken when the others began to wait.
        #expect(seen.count(of: "compacted", about: name) >= 500)
        #expect(seen.count(of: "compacted", about: name) < 1_200)
        #expect(seen.count(of: "messages were lost", about: "the log") == 1)
    }

    #if SwiftLog
    @Test("The package swift-log gets messages with label, level and metadata")
    func swiftLog() throws {
        let handler = RecordingLogHandler.Records()
        CofferLog.useSwiftLog(level: .info, slowQueryThreshold: .seconds(3_600)) { label in
            Logger(label: label) { RecordingLogHandler(label: $0, records: handler) }
        }
        defer { CofferLog.setHandler(nil) }
        try open().close()
        #expect(throws: CofferError.self) { try open(makeKey(2)) }
        CofferLog.flush()
        let lines = handler.lines.filter { $0.contains("database \(name)") }
        #expect(
            lines == [
                "coffer.storage info created encrypted=yes subject=database \(name)",
                "coffer.keys notice not opened by the key that was given error=wrongKey status=401 subject=database \(name)",
            ])
    }
    #endif
}
