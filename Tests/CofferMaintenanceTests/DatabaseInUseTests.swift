import Coffer
import CofferSealing
import CofferTesting
import Foundation
import Synchronization
import TestSupport
import Testing

@_spi(Tool) @testable import CofferMaintenance

@Suite("A database that another process has open")
struct DatabaseInUseTests {
    private let key = SymmetricKey(password: "app")

    private func open(_ fixture: Fixture, _ key: SymmetricKey, _ name: String = "notes") throws -> Database {
        try #require(try fixture.stores.manager.existingDatabase(named: name, encryptionKey: key))
    }

    /// Saves documents of a few hundred bytes, one after another.
    private static func fill(_ database: Database, _ count: Int) throws {
        try database.inTransaction {
            for number in 0..<count {
                let revision = try database.document(withID: "filled-\(number)").newRevision()
                revision["text"] = .string(String(repeating: "\(number) ", count: 60))
                try revision.save()
            }
        }
    }

    @Test("A database in use is found by its directory and name while it is open, and by nothing else")
    func finding() throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", key)
        #expect(try fixture.find("notes", key) == nil, "nobody listens")
        let listener = try fixture.listen()
        defer { listener.stop() }
        #expect(try fixture.find("notes", key) != nil)
        let copy = fixture.stores.url(ofDatabaseNamed: "copy")
        try FileManager.default.copyItem(at: fixture.stores.url(ofDatabaseNamed: "notes"), to: copy)
        #expect(try fixture.find("copy", key) == nil, "a copy has the same UUID and is not open")
        try database.close()
        #expect(try fixture.find("notes", key) == nil, "it was closed")
        let error = #expect(throws: CofferError.self) { try fixture.find("missing", key) }
        #expect(error?.status == 404)
    }

    @Test(
        "A database in use is not opened by a wrong key, by none, or by one where it has none: 401, nothing is changed")
    func wrongKeys() throws {
        let fixture = Fixture()
        let encrypted = try fixture.create("notes", key)
        let plain = try fixture.create("plain", nil)
        let listener = try fixture.listen()
        defer { listener.stop() }
        try expectUnauthorized(at: fixture.stores.url(ofDatabaseNamed: "notes"), key: key) { key in
            guard try fixture.find("notes", key) != nil else { throw CofferError(.busy) }
        }
        #expect(throws: CofferError(.keyRequired)) { try fixture.find("notes", nil) }
        #expect(throws: CofferError(.notEncrypted)) { try fixture.find("plain", key) }
        #expect(try fixture.find("plain", nil)?.isEncrypted == false)
        _ = (encrypted, plain)
    }

    @Test("A database in use changes its key while a writer and a reader go on, and each write is under the new key")
    func keyChange() async throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", key)
        try Self.fill(database, 500)
        let listener = try fixture.listen()
        defer { listener.stop() }
        let isEnding = Flag()
        // On a thread of its own: the work is done by tasks of this process, too.
        async let saved = onThread {
            var count = 0
            while !isEnding.value.load(ordering: .relaxed) {
                try database.createDocument().newRevision().save()
                count += 1
            }
            return count
        }
        let inUse = try #require(try fixture.find("notes", key))
        let phases = Lock<Set<String>>([])
        let result = try await inUse.changeKey(
            KeyChangeOrder(newKey: SymmetricKey(password: "next"), keptKeys: [], dropsOtherKeys: false)
        ) { progress in phases.withLock { _ = $0.insert(progress.phase.description) } }
        isEnding.value.store(true, ordering: .relaxed)
        let count = try await saved
        #expect(result.oldGeneration == 1 && result.newGeneration == 2 && result.formerKey == .refused)
        #expect(phases.withLock { $0.contains("database") })
        let error = #expect(throws: CofferError.self) { try inUse.describe() }
        #expect(error?.status == 401, "the key that opened the connection has ended")
        try await database.close()
        let reopened = try open(fixture, SymmetricKey(password: "next"))
        #expect(try reopened.documentCount == 500 + count)
        let findings = try await reopened.verify().findings
        #expect(findings.isEmpty)
    }

    @Test("A database in use is converted to another storage engine, and goes on in the process that has it open")
    func convert() async throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", key)
        try Self.fill(database, 200)
        let listener = try fixture.listen()
        defer { listener.stop() }
        let inUse = try #require(try fixture.find("notes", key))
        let phases = Lock<Set<String>>([])
        let result = try await inUse.converted(to: .sealed) { progress in
            phases.withLock { _ = $0.insert(progress.phase.description) }
        }
        #expect(result?.newStorageType == .sealed && result?.documentCount == 200)
        #expect(phases.withLock { $0.contains("database") })
        #expect(database.storageType == .sealed)
        let nothing = try await inUse.converted(to: .sealed, nil)
        #expect(nothing == nil)
        await #expect(throws: CofferError(.storageTypeUnavailable)) { try await inUse.converted(to: "RocksDB", nil) }
        // The connection goes on under the same key.
        #expect(try inUse.count().documentCount == 200)
        try await database.createDocument().newRevision().save()
        try await database.close()
        let reopened = try open(fixture, key)
        #expect(reopened.storageType == .sealed)
        #expect(try reopened.documentCount == 201)
    }

    @Test("A database in use ends the key that was given, and not the one that the process opened it with")
    func endingKey() async throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", key)
        let operators = SymmetricKey(password: "operator")
        let id = try await database.addKey(operators, label: "operator").id
        let listener = try fixture.listen()
        defer { listener.stop() }
        let inUse = try #require(try fixture.find("notes", operators))
        #expect(try inUse.describe().keys.filter(\.isCurrent).map(\.id) == [id])
        let new = SymmetricKey(password: "new")
        await #expect(throws: CofferError(.otherKeysExist)) {
            try await inUse.changeKey(KeyChangeOrder(newKey: new, keptKeys: [], dropsOtherKeys: false), nil)
        }
        let result = try await inUse.changeKey(KeyChangeOrder(newKey: new, keptKeys: [key], dropsOtherKeys: false), nil)
        #expect(result.endedKeys.map(\.id) == [id])
        // The app's own key is still the one that it opened the database with: its user can change the password.
        let own = try #require(try database.keys.first(where: \.isCurrent))
        #expect(own.id != result.keys[0].id)
        let changed = SymmetricKey(password: "changed")
        try await database.replaceKey(with: changed)
        #expect(throws: CofferError(.wrongKey)) { try fixture.find("notes", key) }
        #expect(try fixture.find("notes", new) != nil)
        try await database.close()
        _ = try open(fixture, changed)
    }

    @Test("A database in use does nothing for a key that ended while it waited for its turn")
    func endedMeanwhile() async throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", key)
        try Self.fill(database, 3_000)
        let second = SymmetricKey(password: "second")
        try await database.addKey(second)
        let listener = try fixture.listen()
        defer { listener.stop() }
        let bySecond = try #require(try fixture.find("notes", second))
        let byFirst = try #require(try fixture.find("notes", key))
        let hasBegun = Flag()
        async let change = byFirst.changeKey(
            KeyChangeOrder(newKey: SymmetricKey(password: "next"), keptKeys: [], dropsOtherKeys: true)
        ) { _ in hasBegun.value.store(true, ordering: .relaxed) }
        #expect(try await eventually { hasBegun.value.load(ordering: .relaxed) })
        await #expect(throws: CofferError(.wrongKey)) {
            try await onThread { try bySecond.addKey(SymmetricKey(password: "third"), label: nil) }
        }
        await #expect(throws: CofferError(.wrongKey)) { try await bySecond.compacted() }
        await #expect(throws: CofferError(.wrongKey)) { try await bySecond.verified(.keys, nil) }
        let count = try await change.keys.count
        #expect(count == 1)
        #expect(try database.keys.count == 1)
    }

    @Test("A database in use is waited for no longer than somebody wants to when its process says nothing")
    func silent() async throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", key)
        try fixture.runtimeDirectory.make()
        let place = try FileIdentity(ofDirectoryAt: fixture.stores.directory.path(percentEncoded: false))
        let silent = try UnixSocket.listening(at: fixture.runtimeDirectory.newSocketPath(forStoresIn: place))
        let isInterrupted = Flag()
        var target = fixture.target()
        target.isInterrupted = { isInterrupted.value.load(ordering: .relaxed) }
        let asking = Task { [target, key] in
            try await onThread { try DatabaseInUse.find(target, key) != nil }
        }
        try await Task.sleep(for: .milliseconds(200))
        isInterrupted.value.store(true, ordering: .relaxed)
        await #expect(throws: CofferError(.cancelled)) { try await asking.value }
        _ = (database, silent)
    }

    private final class Flag: Sendable {
        let value = Atomic(false)
    }

    @Test(
        "A database in use has keys added, replaced and removed; its own key is replaced unless another is named")
    func keys() throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", key)
        let listener = try fixture.listen()
        defer { listener.stop() }
        let second = SymmetricKey(password: "second")
        let added = try #require(try fixture.find("notes", key)).addKey(second, label: "second")
        #expect(try database.keys.map(\.label) == [nil, "second"])
        let bySecond = try #require(try fixture.find("notes", second))
        let replaced = try bySecond.replaceKey(nil, with: SymmetricKey(password: "third"), label: nil)
        #expect(replaced.label == "second" && replaced.id != added.id)
        #expect(try database.keys.count == 2, "the app's own is still there")
        #expect(throws: CofferError(.wrongKey)) { try bySecond.describe() }
        let byFirst = try #require(try fixture.find("notes", key))
        try byFirst.removeKey(replaced.id)
        #expect(try database.keys.count == 1)
        #expect(throws: CofferError(.conflict)) { try byFirst.removeKey(try database.keys[0].id) }
        #expect(throws: CofferError(.invalidArgument)) { try byFirst.removeKey("0123456789abcdef") }
    }

    @Test("A database in use is verified, compacted, counted and copied, as the process itself would have it")
    func housekeeping() async throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", key)
        try Self.fill(database, 50)
        try Self.fill(database, 1)
        let listener = try fixture.listen()
        defer { listener.stop() }
        let inUse = try #require(try fixture.find("notes", key))
        let counts = try inUse.count()
        #expect(try counts.documentCount == 50 && counts.lastSequence == database.lastSequenceNumber)
        let verification = try await inUse.verified(.everything, nil)
        #expect(verification.isSound && verification.documentCount == 50 && verification.level == .everything)
        try inUse.setMaxRevTreeDepth(7)
        #expect(try database.maxRevTreeDepth == 7)
        #expect(try await inUse.compacted().revisionCount == 1)
        let copy = fixture.stores.url(ofDatabaseNamed: "copy")
        let other = SymmetricKey(password: "copy")
        let backup = try await inUse.backUp(to: copy, other, nil)
        #expect(backup.documentCount == 50)
        let opened = try open(fixture, other, "copy")
        #expect(try opened.documentCount == 50)
        await #expect(throws: CofferError(.databaseExists)) {
            try await inUse.backUp(to: copy, other, nil)
        }
    }

    @Test("A database in use gives its documents in order, with what belongs to each, and contents in pieces")
    func documents() throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", key)
        let content = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) })
        let revision = try database.document(withID: "b").newRevision()
        revision["picture"] = .blob(Blob(contentType: "image/png", data: Data("blob".utf8)))
        revision.setAttachment(named: "large", contentType: nil, content: content)
        try revision.save()
        try database.document(withID: "a").newRevision().save()
        let listener = try fixture.listen()
        defer { listener.stop() }
        let inUse = try #require(try fixture.find("notes", key))
        var found: [String: DatabaseInUse.Document] = [:]
        var ids: [String] = []
        try inUse.forEachDocument {
            ids.append($0.id)
            found[$0.id] = $0
        }
        #expect(ids == ["a", "b"])
        let document = try #require(found["b"])
        #expect(document.json == (try database.document(withID: "b").currentRevision?.json))
        #expect(document.contents.map(\.name) == ["large", nil])
        var read = Data()
        #expect(
            try inUse.forEachChunk(
                ofContent: document.contents[0].digest, byteCount: content.count, { read.append($0) }))
        #expect(read == content)
        #expect(throws: CofferError(.attachmentNotFound)) {
            try inUse.forEachChunk(ofContent: "sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=", byteCount: 1) { _ in }
        }
        struct Stop: Error {}
        #expect(throws: Stop.self) { try inUse.forEachDocument { _ in throw Stop() } }
        #expect(throws: CofferError(.closed)) { try inUse.count() }
        #expect(try fixture.find("notes", key)?.count().documentCount == 2)
    }

    @Test("A database in use leaves its key as it was when the task that changes it is cancelled, or its process ends")
    func cancelling() async throws {
        let fixture = Fixture()
        let database = try fixture.create("notes", key)
        try Self.fill(database, 3_000)
        let listener = try fixture.listen()
        defer { listener.stop() }
        let before = try #require(try fixture.find("notes", key))
        let isHeld = DispatchSemaphore(value: 0)
        let early = Task.detached {
            isHeld.wait()
            return try await before.changeKey(
                KeyChangeOrder(newKey: SymmetricKey(password: "next"), keptKeys: [], dropsOtherKeys: false), nil)
        }
        early.cancel()
        isHeld.signal()
        await #expect(throws: CofferError(.cancelled)) { try await early.value }
        for isLost in [false, true] {
            let inUse = try #require(try fixture.find("notes", key))
            // The first progress comes before the database is copied.
            let channel = try fixture.connect()
            if isLost {
                try channel.send(.hello, fixture.hello())
                #expect(try channel.receive(maximumByteCount: 1000).kind == .welcome)
                try channel.send(key)
                #expect(try channel.receive(maximumByteCount: 1000).kind == .result)
                try channel.send(SymmetricKey(password: "next"))
                try channel.send(.request, MaintenanceRequest.changeKey(dropsOtherKeys: false, keyedNames: nil))
                channel.socket.shutDown()
            } else {
                let task = Task {
                    try await inUse.changeKey(
                        KeyChangeOrder(newKey: SymmetricKey(password: "next"), keptKeys: [], dropsOtherKeys: false), nil
                    )
                }
                task.cancel()
                await #expect(throws: CofferError(.cancelled)) { try await task.value }
            }
            // Whatever is under way has its turn before this.
            _ = try await database.compact()
        }
        try await database.close()
        _ = try open(fixture, key)
    }
}
