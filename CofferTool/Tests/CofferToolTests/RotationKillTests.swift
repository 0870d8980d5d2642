import Coffer
import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// `coffer rekey` is killed at random times, again and again, for some seconds: COFFER_KILL_SECONDS, 10 unless said.
@Suite("A rotation that is killed", .serialized)
struct RotationKillTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let time = Duration.seconds(Int(environment["COFFER_KILL_SECONDS"] ?? "") ?? 10)
    private static let seed = UInt64(environment["COFFER_KILL_SEED"] ?? "") ?? .random(in: 0 ... .max)

    let work: Workspace

    init() throws { work = try Workspace() }

    private struct Contents: Equatable {
        var documents: [String: Data] = [:]
        var attachments: [String: Data] = [:]

        init(_ database: Database) throws {
            for id in try database.documentIDs() {
                guard let revision = try database.document(withID: id).currentRevision else { continue }
                documents[id] = try revision.json + Data(revision.revisionID.description.utf8)
                for attachment in try revision.attachments {
                    attachments["\(id) \(attachment.name)"] = try attachment.content ?? Data("nothing".utf8)
                }
            }
        }
    }

    private func open(_ key: SymmetricKey?) throws -> Database {
        var options = DatabaseOptions()
        options.create = true
        options.encryptionKey = key
        return try Manager(directory: work.folder).openDatabase(named: "people", options: options)
    }

    private func fill(_ key: SymmetricKey?) throws -> Contents {
        let database = try open(key)
        try database.inTransaction {
            for number in 0..<300 {
                let text = String(repeating: "text \(number) ", count: number % 7 == 0 ? 900 : 20)
                try database.save(json: Data(#"{"n":\#(number),"t":"\#(text)"}"#.utf8), withID: "d\(number)")
            }
            for (number, count) in [0, 1, 16_383, 16_384, 16_385, 100_000, 1_000_000, 3_000_000].enumerated() {
                let draft = try database.document(withID: "d\(number * 30)").currentRevision?.createRevision()
                let content = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* (number + 3) >> 3) })
                draft?.setAttachment(named: "a", contentType: "text/plain", content: content)
                try draft?.save()
            }
        }
        let contents = try Contents(database)
        try database.close()
        return contents
    }

    /// The names in the store, the generation's by what it is.
    private func names() throws -> [String] {
        let path = work.folder.appending(path: "people.coffer").path(percentEncoded: false)
        return try FileManager.default.contentsOfDirectory(atPath: path).map { $0.hasPrefix("g") ? "generation" : $0 }
            .sorted()
    }

    /// What can be in the place of a key.
    private struct Key {
        let arguments: [String]
        let key: SymmetricKey?
    }

    @Test(
        "A rotation that is killed leaves a whole store that exactly one of the two keys opens, and nothing else",
        arguments: [true, false])
    func killed(bothEncrypted: Bool) throws {
        var keys: [Key] = []
        for (name, bytes) in [("key", Data(0..<32)), ("other-key", Data(32..<64))] {
            try work.write(bytes, to: name)
            keys.append(Key(arguments: ["raw+file:\(name)"], key: try SymmetricKey(data: bytes)))
        }
        if !bothEncrypted { keys[1] = Key(arguments: [], key: nil) }
        let contents = try fill(keys[0].key)
        var numbers = SeededNumbers(seed: Self.seed)
        var longest = Duration.milliseconds(1)
        var found: [String: Int] = [:]
        var rounds = 0
        let end = ContinuousClock.now + Self.time / 2
        while ContinuousClock.now < end || rounds < 6 {
            let command = self.command(from: keys[0], to: keys[1])
            if rounds < 3 {
                // How long it takes: the longest of the first, for the times at which the later ones are killed.
                let start = ContinuousClock.now
                #expect(try CofferProcess.run(command, in: work.folder).status == 0)
                longest = max(longest, ContinuousClock.now - start)
            } else {
                let microseconds = UInt64(longest / .microseconds(1))
                let time = UInt32(UInt64.random(in: 0...microseconds, using: &numbers))
                let outcome = try CofferProcess.run(command, in: work.folder) { process in
                    usleep(time)
                    kill(process, SIGKILL)
                }
                #expect([0, 128 + SIGKILL].contains(outcome.status))
                let left = try names().joined(separator: " ")
                let isChanged = try check(keys, contents)
                let place =
                    outcome.status == 0 ? "not killed in time" : "\(isChanged ? "new" : "old") key, left \(left)"
                found[place, default: 0] += 1
                #expect(outcome.status != 0 || isChanged)
                if !isChanged { keys.swapAt(0, 1) }
            }
            keys.swapAt(0, 1)
            rounds += 1
        }
        print("rotations killed with seed \(Self.seed), \(longest) each: \(rounds) rounds, \(found)")
    }

    private func command(from old: Key, to new: Key) -> [String] {
        let command =
            new.arguments.isEmpty
            ? ["decrypt", "people.coffer", "--yes-remove-encryption"]
            : [old.arguments.isEmpty ? "encrypt" : "rekey", "people.coffer", "--new-key", new.arguments[0]]
        return command + (old.arguments.isEmpty ? [] : ["--key", old.arguments[0]])
    }

    /// Whether the new key is the one that opens the store.
    private func check(_ keys: [Key], _ contents: Contents) throws -> Bool {
        var opening: [Int] = []
        for number in [0, 1] {
            do {
                let database = try open(keys[number].key)
                #expect(try Contents(database) == contents)
                try database.close()
                opening.append(number)
            } catch let error as CofferError {
                #expect(error.status == 401)
            }
        }
        #expect(opening.count == 1)
        #expect(try names() == ["MANIFEST", "generation"])
        // As many files as at the beginning: no content is there twice, and none is left in incoming/.
        #expect(try work.contents(of: "people.coffer").count == 1 + 1 + 2 + 1 + contents.attachments.count)
        return opening == [1]
    }
}
