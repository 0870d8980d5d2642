import CofferSealing
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite
@testable import CofferVault

@Suite("Changing the encryption key")
struct KeyChangeTests {
    let stores = TestStores()

    @Test("A key change puts everything under the new one, and the old one is a 401", arguments: Protection.transitions)
    func transitions(from: Protection, to: Protection) throws {
        let database = try stores.open(key: from.key)
        try KeyChangeContent.fill(database)
        let before = try KeyChangeContent.describe(database)
        let sequence = try database.lastSequenceNumber
        let oldGeneration = try stores.generation()

        let result = try database.changeEncryptionKey(to: to.key)
        #expect(result.oldGeneration == 1)
        #expect(result.newGeneration == 2)
        #expect(result.formerKey == .refused)
        #expect(result.oldGenerationIsGone)
        #expect(result.documentCount == KeyChangeContent.bodyLengths.count + 3)
        #expect(result.attachmentCount == KeyChangeContent.attachmentLengths.count + 2)
        #expect(result.keys.count == (to == .none ? 0 : 1))
        #expect(result.endedKeys.count == (from == .none ? 0 : 1))
        #expect(result.databaseByteCount > 80_000)

        // The same instance goes on, and so does everything that comes after.
        #expect(database.isEncrypted == (to != .none))
        #expect(try KeyChangeContent.describe(database) == before)
        #expect(try database.lastSequenceNumber == sequence)
        #expect(!FileManager.default.fileExists(atPath: oldGeneration.path))
        #expect(try stores.generations().count == 1)
        try database.saveDocument(MutableDocument(id: "new", ["n": 1]))
        let draft = try database.document(withID: "new").newRevision()
        draft.setAttachment(named: "x", contentType: nil, content: Data("new".utf8))
        try draft.save()
        try database.compact()
        try database.close()

        let wrong: CofferError.Code = to == .none ? .notEncrypted : from == .none ? .keyRequired : .wrongKey
        #expect(thrown { try stores.existing(key: from.key) }?.code == wrong)
        let again = try stores.existing(key: to.key)
        #expect(try again["new"]?.currentRevision?.attachment(named: "x")?.content == Data("new".utf8))
        try again["new"]?.delete()
        #expect(try KeyChangeContent.describe(again) == before)
    }

    @Test("A store changes its key again and again, each time in a generation of its own")
    func repeated() throws {
        let database = try stores.open(key: nil)
        try KeyChangeContent.fill(database)
        let before = try KeyChangeContent.describe(database)
        for (number, protection) in [Protection.bytes, .otherBytes, .none, .bytes, .bytes].enumerated() {
            let result = try database.changeEncryptionKey(to: protection.key)
            #expect(result.newGeneration == number + 2)
            #expect(result.formerKey == (number == 4 ? .stillOpens : .refused))
            #expect(try KeyChangeContent.describe(database) == before)
        }
        #expect(try stores.generations().count == 1)
    }

    @Test("A key change keeps other keys where they are given, and refuses to end them unless that is asked for")
    func otherKeys() throws {
        let database = try stores.open(key: testKey(1))
        try KeyChangeContent.fill(database)
        let both = try database.changeEncryptionKey(to: testKey(1))
        #expect(both.formerKey == .stillOpens)
        #expect(thrown { try database.changeEncryptionKey(to: testKey(3), keeping: [testKey(2)]) }?.code == .wrongKey)
        #expect(thrown { try database.changeEncryptionKey(to: nil, keeping: [testKey(1)]) }?.code == .invalidArgument)

        // Kept and new at once: two slots.
        let two = try database.changeEncryptionKey(to: testKey(2), keeping: [testKey(1)])
        #expect(two.keys.count == 2)
        #expect(two.endedKeys.isEmpty)
        #expect(two.formerKey == .stillOpens)
        try database.close()
        for byte in [1, 2] as [UInt8] {
            let database = try stores.existing(key: testKey(byte))
            #expect(thrown { try database.changeEncryptionKey(to: testKey(9)) }?.code == .otherKeysExist)
            #expect(thrown { try database.changeEncryptionKey(to: nil) }?.code == .otherKeysExist)
            try database.close()
        }
        let again = try stores.existing(key: testKey(2))
        let one = try again.changeEncryptionKey(to: testKey(3), droppingOtherKeys: true)
        #expect(one.keys.count == 1)
        #expect(one.endedKeys.count == 2)
        #expect(Set(one.endedKeys.map(\.id)) == Set(two.keys.map(\.id)))
        #expect(one.formerKey == .refused)
        try again.close()
        for byte in [1, 2] as [UInt8] {
            #expect(thrown { try stores.existing(key: testKey(byte)) }?.code == .wrongKey)
        }
        _ = try stores.existing(key: testKey(3))
    }

    @Test("A key change lets keys that stay keep their labels, and forgets those of others")
    func labels() throws {
        let database = try stores.open(key: testKey(1))
        try database.addKey(testKey(2), label: "recovery")
        try database.addKey(testKey(3), label: "third")
        try database.replaceKey(with: testKey(4), label: "first")
        try database.changeEncryptionKey(to: testKey(5), keeping: [testKey(2)], droppingOtherKeys: true)
        #expect(try database.keys.map(\.label) == [nil, "recovery"])
        #expect(try database.keys.map(\.isCurrent) == [true, false])
        try database.replaceKey(with: testKey(5), label: "fifth")
        try database.changeEncryptionKey(to: testKey(5), keeping: [testKey(2)])
        #expect(try database.keys.map(\.label) == ["fifth", "recovery"])
        #expect(thrown { try database.changeEncryptionKey(to: testKey(6)) }?.code == .otherKeysExist)
        try database.close()
        let again = try stores.existing(key: testKey(2))
        #expect(try again.keys.map(\.label) == ["fifth", "recovery"])
        try again.changeEncryptionKey(to: nil, droppingOtherKeys: true)
        #expect(try again.keys.isEmpty)
        #expect(try stores.files(containing: "recovery") == [])
    }

    @Test("A key change is refused where it makes no sense, and changes no byte then")
    func refused() throws {
        let database = try stores.open()
        try KeyChangeContent.fill(database)
        let before = try stores.snapshot(ignoring: ["db.sqlite3-shm"])
        #expect(throws: CofferError(.invalidArgument)) {
            try database.inTransaction { try database.changeEncryptionKey(to: testKey(8)) }
        }
        #expect(thrown { try database.changeEncryptionKey(to: SymmetricKey(password: "")) }?.code == .invalidKey)
        #expect(thrown { try database.changeEncryptionKey(to: nil, keyedNames: true) }?.code == .invalidArgument)
        let nine = try (1...9).map { _ in try SymmetricKey() }
        #expect(
            thrown { try database.changeEncryptionKey(to: testKey(8), keeping: nine) }?.code == .wrongKey)
        #expect(try stores.snapshot(ignoring: ["db.sqlite3-shm"]) == before)
        try database.close()

        let readOnly = try stores.open { $0.readOnly = true }
        #expect(thrown { try readOnly.changeEncryptionKey(to: testKey(8)) }?.code == .readOnly)
        try readOnly.close()
        let closed = try stores.open()
        try closed.close()
        #expect(thrown { try closed.changeEncryptionKey(to: testKey(8)) }?.code == .closed)
    }

    @Test("A key change changes how files are named only where that is asked for")
    func names() throws {
        let database = try stores.open(key: nil)
        try KeyChangeContent.fill(database)
        let files = {
            try FileManager.default.contentsOfDirectory(
                atPath: stores.generation().appending(path: "attachments").path
            ).sorted()
        }
        let plain = try files()
        try database.changeEncryptionKey(to: testKey(1))
        #expect(try files() == plain)
        try database.changeEncryptionKey(to: testKey(2), keyedNames: true)
        let keyed = try files()
        #expect(keyed.count == plain.count)
        #expect(Set(keyed).isDisjoint(with: plain))
        try database.changeEncryptionKey(to: testKey(3))
        #expect(try files().count == plain.count)
        #expect(try Set(files()).isDisjoint(with: plain + keyed))
        let before = try KeyChangeContent.describe(database)
        try database.changeEncryptionKey(to: nil)
        #expect(try files() == plain)
        #expect(try KeyChangeContent.describe(database) == before)
    }

    @Test("A key change to encryption leaves nothing readable, and away from it a file that SQLite reads")
    func canary() throws {
        let database = try stores.open(key: nil)
        try KeyChangeContent.fill(database)
        #expect(try stores.files(containing: KeyChangeContent.canary).count > 3)
        try database.changeEncryptionKey(to: testKey(1))
        #expect(try stores.files(containing: KeyChangeContent.canary) == [])
        #expect(try stores.files(containing: "SQLite format 3") == [])
        try database.close()
        #expect(try stores.files(containing: KeyChangeContent.canary) == [])
        let again = try stores.existing(key: testKey(1))
        try again.changeEncryptionKey(to: nil)
        try again.close()
        let file = try Data(contentsOf: stores.databaseFile())
        #expect(file.starts(with: Data("SQLite format 3\0".utf8)))
        #expect(try stores.files(containing: KeyChangeContent.canary).count > 3)
    }
}

@Suite("A key change beside others")
struct KeyChangeConcurrencyTests {
    let stores = TestStores()

    @Test("A key change leaves drafts, staged contents, streams and attachments usable that are from before")
    func goingOn() throws {
        let database = try stores.open()
        try KeyChangeContent.fill(database)
        let content = KeyChangeContent.bytes(300_000)
        let url = stores.directory.appending(path: "film")
        try content.write(to: url)

        let draft = try database.document(withID: "draft").newRevision()
        draft["n"] = 1
        draft.setAttachment(named: "memory", contentType: nil, content: content)
        try draft.setAttachment(named: "file", contentType: nil, contentsOf: url)
        let blob = MutableDocument(id: "mutable")
        blob["b"] = Blob(contentType: nil, data: content)
        let attachment = try #require(try database["files"]?.currentRevision?.attachment(named: "a/200000"))
        let stream = try #require(try attachment.openContentStream())
        stream.open()
        var start = [UInt8](repeating: 0, count: 1000)
        #expect(stream.read(&start, maxLength: 1000) == 1000)
        let revision = try #require(try database["files"]?.currentRevision)

        let result = try database.changeEncryptionKey(to: testKey(9))
        // The draft's content is in the old one's `incoming/`.
        #expect(!result.oldGenerationIsGone)
        #expect(try stores.generations().count == 2)

        var rest = Data(start)
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = stream.read(&buffer, maxLength: buffer.count)
            guard count > 0 else { break }
            rest.append(contentsOf: buffer[..<count])
        }
        #expect(stream.streamError == nil)
        #expect(rest == KeyChangeContent.bytes(200_000))
        #expect(try attachment.content == KeyChangeContent.bytes(200_000))
        #expect(try revision.attachment(named: "a/16384")?.content == KeyChangeContent.bytes(16_384))

        let saved = try draft.save()
        #expect(try saved.attachment(named: "file")?.content == content)
        #expect(try saved.attachment(named: "memory")?.content == content)
        try database.saveDocument(blob)
        #expect(try blob.blob(forKey: "b")?.content == content)
        try waitUntil("the old generation is gone") { try stores.generations().count == 1 }
        try database.close()
        let again = try stores.existing(key: testKey(9))
        #expect(try again["draft"]?.currentRevision?.attachment(named: "file")?.content == content)
    }

    @Test("A key change lets a reader in the old generation end, which goes after it")
    func reader() throws {
        let database = try stores.open()
        try KeyChangeContent.fill(database)
        let (inside, done) = (Gate(), Gate())
        let reading = Thread {
            _ = try? database.storage.read { (tables) throws(CofferError) in
                inside.open()
                done.wait()
                return try tables.documentCount()
            }
        }
        reading.start()
        inside.wait()
        #expect(try !database.changeEncryptionKey(to: testKey(9)).oldGenerationIsGone)
        #expect(try stores.generations().count == 2)
        #expect(try database["later"]?["n"] == 5)
        done.open()
        try waitUntil("the old generation is gone") { try stores.generations().count == 1 }
    }

    @Test("A key change loses no write and shows no reader an older state")
    func readersAndWriters() throws {
        let database = try stores.open()
        try KeyChangeContent.fill(database)
        let isDone = Atomic(false)
        let saved = Lock<[String]>([])
        try onThreads(4) { thread in
            switch thread {
            case 0:
                defer { isDone.store(true, ordering: .releasing) }
                for round in 0..<6 {
                    try database.changeEncryptionKey(to: round == 3 ? nil : testKey(UInt8(round + 20)))
                }
            case 1, 2:
                var number = 0
                while !isDone.load(ordering: .acquiring) {
                    let id = "w\(thread)-\(number)"
                    let draft = try database.document(withID: id).newRevision()
                    draft["n"] = .number(JSONNumber(Int64(number)))
                    if number % 3 == 0 { draft.setAttachment(named: "a", contentType: nil, content: Data(id.utf8)) }
                    try draft.save()
                    saved.withLock { $0.append(id) }
                    number += 1
                }
            default:
                var last = 0
                while !isDone.load(ordering: .acquiring) {
                    let acknowledged = saved.withLock { $0.last }
                    let count = try database.documentCount
                    guard count >= last else { throw CofferError(.damaged, "fewer documents than before") }
                    last = count
                    if let acknowledged { #expect(try database[acknowledged] != nil) }
                    #expect(
                        try database["files"]?.currentRevision?.attachment(named: "a/16385")?.content
                            == KeyChangeContent.bytes(16_385))
                }
            }
        }
        try database.close()
        let again = try stores.existing(key: testKey(25))
        let ids = saved.withLock(\.self)
        for id in ids {
            let revision = try again[id]?.currentRevision
            #expect(revision != nil)
            if let attachment = try revision?.attachment(named: "a") {
                #expect(try attachment.content == Data(id.utf8))
            }
        }
        print("\(ids.count) documents saved beside six key changes")
    }

    @Test("A key change reports how far it is, at most ten times a second, where the closure is isolated")
    @MainActor
    func progress() async throws {
        let database = try stores.open()
        let draft = try database.document(withID: "large").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Data(count: 60 << 20))
        try await draft.save()
        let log = Log()
        let start = ContinuousClock.now
        let result = try await database.changeEncryptionKey(to: testKey(9)) { @MainActor progress in
            log.reports.append(progress)
        }
        let reports = log.reports
        let tenths = (ContinuousClock.now - start) / .milliseconds(100)
        #expect(result.attachmentByteCount == 60 << 20)
        #expect(!reports.isEmpty)
        // One at the start, and one at the end whenever the last one was.
        #expect(Double(reports.count) <= tenths + 2)
        for report in reports where report.phase == .attachments {
            #expect(report.totalByteCount == 60 << 20)
            #expect(report.completedByteCount <= report.totalByteCount)
        }
    }

    @MainActor
    private final class Log {
        var reports: [CopyProgress] = []
    }

    @Test("A key change takes no file away from who asks where it is")
    func contentURLs() throws {
        let database = try stores.open(key: nil)
        try KeyChangeContent.fill(database)
        let attachment = try #require(try database["files"]?.currentRevision?.attachment(named: "a/16385"))
        let isDone = Atomic(false)
        try onThreads(3) { thread in
            if thread == 0 {
                defer { isDone.store(true, ordering: .releasing) }
                for round in 0..<8 { try database.changeEncryptionKey(to: round % 2 == 0 ? testKey(9) : nil) }
            } else {
                while !isDone.load(ordering: .acquiring) {
                    _ = attachment.contentURL
                    #expect(attachment.contentAvailable)
                    let draft = try database.document(withID: "draft \(thread)").newRevision()
                    draft.setAttachment(named: "x", contentType: nil, content: Data("\(thread)".utf8))
                    try draft.save()
                    #expect(try attachment.content?.count == 16_385)
                }
            }
        }
    }

    @Test("A key change ends with its task, and leaves everything as it was")
    func cancelled() async throws {
        let database = try stores.open()
        try KeyChangeContent.fill(database)
        let (writing, done) = (Gate(), Gate())
        // While this writes, no key change comes to its commit.
        let transaction = Thread {
            try? database.inTransaction {
                writing.open()
                done.wait()
            }
        }
        transaction.start()
        writing.wait()
        let task = Task { try await database.changeEncryptionKey(to: testKey(9)) }
        // It may have begun by then, or not.
        try await Task.sleep(for: .milliseconds(50))
        task.cancel()
        done.open()
        let error = await #expect(throws: CofferError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(try stores.generations().count == 1)
        #expect(try database["later"]?["n"] == 5)
        try await database.close()
        _ = try stores.existing(key: TestStores.key)
    }
}

/// Waits for what happens by itself a little later.
func waitUntil(_ what: String, _ condition: () throws -> Bool) throws {
    if try !eventually(condition) { Issue.record("it took too long until \(what)") }
}
