import Coffer
import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A folder of stores under one key, and another key.
private struct Stores {
    let work: Workspace
    let folder: URL
    let old: SymmetricKey
    let new: SymmetricKey
    static let names = (0..<6).map { "store\($0)" }

    init() throws {
        work = try Workspace(inMemory: true)
        folder = work.folder.appending(path: "stores", directoryHint: .isDirectory)
        try work.write(Data(0..<32), to: "old")
        try work.write(Data(32..<64), to: "new")
        try work.write(Data(64..<96), to: "third")
        (old, new) = (try SymmetricKey(data: Data(0..<32)), try SymmetricKey(data: Data(32..<64)))
    }

    func open(_ name: String, _ key: SymmetricKey?, create: Bool = false) throws -> Database {
        var options = DatabaseOptions()
        options.create = create
        options.encryptionKey = key
        return try Manager(directory: folder).openDatabase(named: name, options: options)
    }

    /// Makes a store with a document and an attachment that tell its name.
    func make(_ name: String, _ key: SymmetricKey?, byteCount: Int = 20_000) throws {
        let database = try open(name, key, create: true)
        let draft = try database.document(withID: "a").newRevision()
        draft["name"] = name
        draft.setAttachment(named: "x", contentType: nil, content: Data(name.utf8) + Data(count: byteCount))
        try draft.save()
        try database.close()
    }

    func makeAll() throws { for name in Self.names { try make(name, old) } }

    /// Whether `key` opens the store, which holds then what it held at first.
    func opens(_ name: String, _ key: SymmetricKey?) throws -> Bool {
        let database: Database
        do {
            database = try open(name, key)
        } catch let error as CofferError where error.status == 401 {
            return false
        }
        #expect(try database["a"]?.currentRevision?["name"] == name)
        let content = try database["a"]?.currentRevision?.attachment(named: "x")?.content
        #expect(content?.starts(with: Data(name.utf8)) == true)
        try database.close()
        return true
    }

    func rotate(_ arguments: String..., input: String = "") throws -> CofferProcess.Outcome {
        try CofferProcess.run(
            ["rotate", "--key", "raw+file:old", "--new-key", "raw+file:new"] + arguments, in: work.folder,
            .init(input: Data(input.utf8)))
    }
}

extension CofferProcess.Outcome {
    /// The paths of receipts with that outcome.
    fileprivate func paths(_ outcome: String) throws -> [String] {
        try objects.filter { $0["type"] as? String == "receipt" && $0["outcome"] as? String == outcome }
            .map { $0["path"] as? String ?? "" }
    }

    fileprivate var summary: [String: Any] { get throws { try #require(try objects.last) } }
}

@Suite("Rotating many stores")
struct RotateCommandTests {
    private let stores: Stores

    init() throws {
        stores = try Stores()
        try stores.makeAll()
    }

    @Test(
        "A rotation gives each store the new key and a receipt, and a second run finds them rotated", arguments: [1, 4])
    func rotated(jobs: Int) throws {
        let uuid = try Manager(directory: stores.folder).storeInfo(named: "store0").storeUUID
        let outcome = try stores.rotate("stores", "--json", "--jobs", "\(jobs)")
        #expect(outcome.status == 0)
        #expect(outcome.errors.isEmpty)
        #expect(try outcome.paths("rotated").sorted() == Stores.names.map { "stores/\($0).coffer" })
        let receipt = try #require(try outcome.objects.first { $0["path"] as? String == "stores/store0.coffer" })
        #expect(receipt["uuid"] as? String == uuid.uuidString.lowercased())
        #expect(receipt["oldGeneration"] as? Int == 1)
        #expect(receipt["generation"] as? Int == 2)
        #expect(receipt["documents"] as? Int == 1)
        #expect(receipt["attachments"] as? Int == 1)
        #expect(receipt["attachmentBytes"] as? Int == 20_006)
        #expect((receipt["databaseBytes"] as? Int ?? 0) > 0)
        #expect((receipt["milliseconds"] as? Int ?? 0) > 0)
        #expect(receipt["oldKeyOpens"] as? Bool == false)
        #expect(receipt["oldGenerationIsGone"] as? Bool == true)
        let slots = try Manager(directory: stores.folder).storeInfo(named: "store0").keySlots
        #expect((receipt["keys"] as? [[String: Any]])?.map { $0["id"] as? String } == slots.map(\.id))
        #expect((receipt["endedKeys"] as? [Any])?.count == 1)
        #expect(try outcome.summary["type"] as? String == "summary")
        #expect(try outcome.summary["rotated"] as? Int == 6)
        for name in Stores.names {
            #expect(try stores.opens(name, stores.new))
            #expect(try !stores.opens(name, stores.old))
        }
        let before = try stores.work.contents(of: "stores")
        let again = try stores.rotate("stores", "--json")
        #expect(again.status == 0)
        #expect(try again.paths("alreadyRotated").count == 6)
        #expect(try again.objects[0]["oldKeyOpens"] as? Bool == false)
        #expect(try again.objects[0]["generation"] as? Int == 2)
        #expect(try again.summary["alreadyRotated"] as? Int == 6)
        #expect(try stores.work.contents(of: "stores") == before)
    }

    @Test("A rotation removes what a killed run left of the old generation, though the store was rotated by then")
    func finished() throws {
        let store = stores.folder.appending(path: "store0.coffer", directoryHint: .isDirectory)
        func names() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: store.path(percentEncoded: false)).sorted()
        }
        let old = try #require(try names().last)
        let kept = stores.work.folder.appending(path: "kept")
        try FileManager.default.copyItem(at: store.appending(path: old), to: kept)
        #expect(try stores.rotate("stores/store0.coffer").status == 0)
        try FileManager.default.copyItem(at: kept, to: store.appending(path: old))
        // As it is when the process ends right after the rename.
        #expect(try names().count == 3)
        #expect(try stores.rotate("stores/store0.coffer", "--dry-run").output.hasPrefix("rotated before"))
        #expect(try names().count == 3)
        #expect(try stores.rotate("stores/store0.coffer").output.hasPrefix("rotated before"))
        #expect(try names().count == 2)
        #expect(try !names().contains(old))
        #expect(try stores.opens("store0", stores.new))
    }

    @Test("The first failure ends a rotation with 3, and --keep-going does the others")
    func failing() throws {
        let other = try SymmetricKey(data: Data(64..<96))
        try stores.make("store2x", other)
        try stores.make("store3x", nil)
        try stores.work.write("no store", to: "stores/README")
        try stores.work.write("no store", to: "stores/.hidden.coffer")
        try stores.work.write("no store", to: "stores/file.coffer")
        try stores.work.write("no store", to: "stores/z.coffer/file")
        let first = try stores.rotate("stores", "--json", "--keep-going", "--dry-run")
        #expect(first.status == 3)
        #expect(try first.paths("due").count == 6)
        let outcome = try stores.rotate("stores")
        #expect(outcome.status == 10)
        #expect(outcome.errors.contains("stores/README: skipped"))
        #expect(!outcome.errors.contains("hidden"))
        #expect(outcome.errors.contains("coffer: error: stores/file.coffer: "))
        #expect(outcome.errors.contains("1 of 10 stores failed, and 9 were not tried\ncoffer: hint: --keep-going"))
        #expect(outcome.lines.last == "10 stores: 1 failed, 9 not tried, 1 skipped")
        #expect(unlink(stores.folder.appending(path: "file.coffer").path(percentEncoded: false)) == 0)
        let second = try stores.rotate("stores", "--json")
        #expect(second.status == 3)
        #expect(try second.paths("rotated").count == 3)
        #expect(try second.paths("failed") == ["stores/store2x.coffer"])
        #expect(try second.summary["notTried"] as? Int == 5)
        let third = try stores.rotate("stores", "--json", "--keep-going")
        #expect(third.status == 3)
        #expect(try third.paths("alreadyRotated").count == 3)
        #expect(try third.paths("rotated").count == 3)
        let failures = try third.objects.filter { $0["outcome"] as? String == "failed" }
        #expect(failures.map { $0["exit"] as? Int } == [12, 12, 10])
        #expect(failures.map { $0["status"] as? Int } == [401, 401, 404])
        #expect(failures.map { $0["code"] as? String } == ["wrongKey", "notEncrypted", "notAStore"])
        #expect(try stores.opens("store2x", other))
        #expect(try stores.opens("store3x", nil))
        #expect(try third.failure["exit"] as? Int == 3)
    }

    @Test("Where no store gets the new key, the status of a rotation is that of what was wrong")
    func nothingDone() throws {
        let outcome = try CofferProcess.run(
            ["rotate", "stores", "--key", "raw+file:third", "--new-key", "raw+file:new", "--keep-going"],
            in: stores.work.folder)
        #expect(outcome.status == 12)
        let database = try stores.open("store0", stores.old)
        let busy = try stores.rotate("stores/store0.coffer", "--json")
        #expect(busy.status == 11)
        #expect(try busy.objects.first?["code"] as? String == "busy")
        try database.close()
        #expect(try stores.rotate("stores/store0.coffer").status == 0)
    }

    @Test("Damage fails that store of a rotation alone, and it stays as it was")
    func damaged() throws {
        let name = try #require(
            try stores.work.contents(of: "stores").keys.first { $0.hasPrefix("store1.") && $0.hasSuffix(".blob") })
        try stores.work.write(Data(count: 100), to: "stores/" + name)
        let before = try stores.work.contents(of: "stores/store1.coffer")
        let outcome = try stores.rotate("stores", "--json", "--keep-going", "--jobs", "3")
        #expect(outcome.status == 3)
        #expect(try outcome.objects.first { $0["outcome"] as? String == "failed" }?["exit"] as? Int == 26)
        #expect(try stores.work.contents(of: "stores/store1.coffer") == before)
        #expect(try outcome.paths("rotated").count == 5)
    }

    @Test("A rehearsal of a rotation changes no byte, and says what is in the way")
    func rehearsal() throws {
        let database = try stores.open("store4", stores.old)
        try database.addKey(SymmetricKey(data: Data(64..<96)))
        try database.close()
        let before = try stores.work.contents(of: "stores")
        let outcome = try stores.rotate("stores", "--dry-run", "--json", "--keep-going")
        #expect(outcome.status == 3)
        #expect(try outcome.paths("due").count == 5)
        #expect(try outcome.paths("failed") == ["stores/store4.coffer"])
        #expect(try outcome.objects.first { $0["outcome"] as? String == "failed" }?["status"] as? Int == 409)
        #expect(try stores.rotate("stores", "--dry-run", "--drop-other-keys").status == 0)
        let kept = try stores.rotate("stores/store4.coffer", "--dry-run", "--keep-key", "raw+file:third")
        #expect(kept.output.hasPrefix("to be rotated  stores/store4.coffer  generation 1\n"))
        #expect(try stores.rotate("stores/store3.coffer", "--dry-run", "--keep-key", "raw+file:third").status == 12)
        // Who reads is in the way of a rotation, and so of its rehearsal.
        var options = DatabaseOptions()
        (options.readOnly, options.encryptionKey) = (true, stores.old)
        let reader = try Manager(directory: stores.folder).openDatabase(named: "store0", options: options)
        let busy = try stores.rotate("stores/store0.coffer", "--dry-run", "--json")
        #expect(busy.status == 11)
        #expect(try busy.failure["code"] as? String == "busy")
        #expect(try stores.rotate("stores/store0.coffer").status == 11)
        try reader.close()
        #expect(try stores.rotate("stores/store0.coffer", "--dry-run").status == 0)
        #expect(try stores.work.contents(of: "stores") == before)
    }

    @Test("A rehearsal with --verify reads all of each store and finds damage, and without doesn't")
    func verifiedRehearsal() throws {
        let blob = try #require(
            try stores.work.contents(of: "stores").keys.first { $0.hasPrefix("store1.") && $0.hasSuffix(".blob") })
        var bytes = try Data(contentsOf: stores.folder.appending(path: blob))
        bytes[bytes.count / 2] ^= 1
        try stores.work.write(bytes, to: "stores/" + blob)
        #expect(try stores.rotate("stores", "--dry-run").status == 0)
        #expect(try stores.rotate("stores/store0.coffer", "--dry-run", "--verify").status == 0)
        let damaged = try stores.rotate("stores/store1.coffer", "--dry-run", "--verify", "--json")
        #expect(damaged.status == 26)
        #expect(try damaged.failure["code"] as? String == "damaged")
        #expect(try stores.rotate("stores", "--dry-run", "--verify", "--keep-going").status == 3)
        #expect(try stores.rotate("stores", "--verify").status == 64)
    }

    @Test("A rotation names stores that it skips in its summary, and --recursive rotates the stores of nested folders")
    func nestedFolders() throws {
        try stores.work.write("a note", to: "stores/notes.txt")
        try stores.work.write("hidden", to: "stores/.hidden/x")
        for (name, place) in [("store4", "inner/deep"), ("store5", "inner")] {
            let target = stores.folder.appending(path: "\(place)/\(name).coffer")
            try FileManager.default.createDirectory(
                at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
            try FileManager.default.moveItem(at: stores.folder.appending(path: "\(name).coffer"), to: target)
        }
        try FileManager.default.createSymbolicLink(
            at: stores.folder.appending(path: "link"), withDestinationURL: stores.folder.appending(path: "inner"))
        let flat = try stores.rotate("stores", "--dry-run", "--json")
        #expect(flat.status == 0)
        #expect(try flat.objects.last?["stores"] as? Int == 4)
        #expect(
            try flat.objects.last?["passedOver"] as? [String] == ["stores/inner", "stores/link", "stores/notes.txt"])
        let text = try stores.rotate("stores", "--dry-run")
        #expect(text.lines.last == "4 stores: 4 to be rotated, 3 skipped")
        #expect(text.errors.contains("stores/inner: skipped: a folder; --recursive looks into it"))
        let nested = try stores.rotate("stores", "--recursive", "--json")
        #expect(nested.status == 0, "\(nested.errors)")
        #expect(try nested.paths("rotated").contains("stores/inner/deep/store4.coffer"))
        #expect(try nested.objects.last?["rotated"] as? Int == 6)
        #expect(try nested.objects.last?["passedOver"] as? [String] == ["stores/link", "stores/notes.txt"])
        try FileManager.default.createDirectory(
            at: stores.folder.appending(path: "outer/inner"), withIntermediateDirectories: true)
        let none = try stores.rotate("stores/outer", "--dry-run")
        #expect(none.status == 64 && none.errors.contains("--recursive also looks into its folders"))
    }

    @Test("A rotation keeps or drops other keys only as it is told, and a new key that was added before is no other")
    func otherKeys() throws {
        let third = try SymmetricKey(data: Data(64..<96))
        for (name, key) in [("store0", third), ("store1", third), ("store2", stores.new)] {
            let database = try stores.open(name, stores.old)
            try database.addKey(key)
            try database.close()
        }
        let refused = try stores.rotate("stores/store0.coffer", "--json")
        #expect(refused.status == 1)
        #expect(try refused.objects.first?["status"] as? Int == 409)
        #expect(try stores.rotate("stores/store0.coffer", "--keep-key", "raw+file:third").status == 0)
        #expect(try stores.opens("store0", third))
        #expect(try stores.rotate("stores/store1.coffer", "--drop-other-keys").status == 0)
        #expect(try !stores.opens("store1", third))
        #expect(try stores.rotate("stores/store2.coffer").status == 0)
        for name in ["store0", "store1", "store2"] {
            #expect(try stores.opens(name, stores.new))
            #expect(try !stores.opens(name, stores.old))
        }
    }

    @Test("A rotation ends with 3 for a store that was not re-encrypted since the new key came, or that others open")
    func notAsAsked() throws {
        let third = try SymmetricKey(data: Data(64..<96))
        // Its keys alone were exchanged.
        let replaced = try stores.open("store0", stores.old)
        try replaced.replaceKey(with: stores.new)
        try replaced.close()
        // One more was added after it was rotated.
        #expect(try stores.rotate("stores/store1.coffer").status == 0)
        let extended = try stores.open("store1", stores.new)
        try extended.addKey(third)
        try extended.close()
        let outcome = try stores.rotate("stores", "--json")
        #expect(outcome.status == 3)
        #expect(try outcome.paths("rotated").count == 4)
        #expect(try outcome.paths("notAsAsked") == ["stores/store0.coffer", "stores/store1.coffer"])
        let reasons = try outcome.objects.prefix(2).map { $0["reasons"] as? [String] }
        #expect(reasons == [["notEncryptedAnew"], ["otherKeysOpen"]])
        #expect(try outcome.summary["notAsAsked"] as? Int == 2)
        #expect(try outcome.failure["exit"] as? Int == 3)
        // A key that is to be kept is no other one, and must be there.
        let kept = try stores.rotate("stores", "--json", "--keep-key", "raw+file:third")
        #expect(kept.status == 3)
        #expect(try kept.paths("alreadyRotated") == ["stores/store1.coffer"])
        #expect(try kept.objects[2]["reasons"] as? [String] == ["keptKeyIsMissing"])
        let text = try stores.rotate("stores/store0.coffer", "--dry-run")
        #expect(text.status == 3)
        #expect(
            text.output.hasPrefix("not as asked  stores/store0.coffer  generation 1, the old key is refused, but it "))
        // Once it is re-encrypted it is as asked.
        let anew = try stores.open("store0", stores.new)
        try anew.changeEncryptionKey(to: stores.new)
        try anew.close()
        #expect(try stores.rotate("stores/store0.coffer").status == 0)
    }

    @Test("A symbolic link that sorts before the store that it leads to keeps it out of no rotation")
    func links() throws {
        let link = stores.folder.appending(path: "a.coffer").path(percentEncoded: false)
        #expect(symlink("store3.coffer", link) == 0)
        // One that leads nowhere was a failure.
        #expect(symlink("nothing", stores.folder.appending(path: "b.coffer").path(percentEncoded: false)) == 0)
        let outcome = try stores.rotate("stores", "--json")
        #expect(outcome.status == 0)
        #expect(outcome.errors.contains("stores/b.coffer: skipped: a link to a store"))
        #expect(try outcome.objects.last?["passedOver"] as? [String] == ["stores/a.coffer", "stores/b.coffer"])
        #expect(try outcome.paths("rotated") == Stores.names.map { "stores/\($0).coffer" })
        try stores.work.write("stores/a.coffer\nstores/store3.coffer\n", to: "list")
        #expect(try stores.rotate("list", "--json").paths("alreadyRotated") == ["stores/store3.coffer"])
    }

    @Test("A list of stores has a path on each line, in a file or on standard input, and a store twice is one")
    func list() throws {
        try stores.work.write("stores/store1.coffer\r\n\nstores/store0.coffer\n./stores/store1.coffer/", to: "list")
        let file = try stores.rotate("list", "--json")
        #expect(file.status == 0)
        #expect(try file.paths("rotated") == ["stores/store1.coffer", "stores/store0.coffer"])
        #expect(try file.summary["stores"] as? Int == 2)
        let input = try stores.rotate("-", "--json", input: "stores/store2.coffer\nnone/a.coffer\n")
        #expect(input.status == 3)
        #expect(try input.paths("rotated") == ["stores/store2.coffer"])
        #expect(try input.paths("failed") == ["none/a.coffer"])
        // No store was made so far: a timer that comes too early has not failed.
        for text in ["", "\n\n"] {
            try stores.work.write(text, to: "list")
            let empty = try stores.rotate("list", "--receipts", "receipts")
            #expect(empty.status == 0 && empty.errors == "coffer: note: list: it holds no store\n", "\(empty.errors)")
            #expect(empty.lines.first == "0 stores")
        }
        try stores.work.write(Data([0xFF, 0x0A]), to: "list")
        #expect(try stores.rotate("list").status == 64)
        #expect(mkdir(stores.work.folder.appending(path: "empty").path, 0o700) == 0)
        #expect(try stores.rotate("empty").status == 0)
    }

    @Test("A rotation's command line that makes no sense is refused before any store is touched")
    func usage() throws {
        let before = try stores.work.contents(of: "stores")
        let keys = ["--key", "raw+file:old", "--new-key", "raw+file:new"]
        let wrong: [[String]] = [
            ["stores"], ["stores", "--key", "raw+file:old"], ["stores", "--new-key", "raw+file:new"],
            ["stores", "--key", "raw+file:old", "--new-key", "raw+file:old"],
            ["stores", "--keep-key", "raw+file:old"] + keys,
            ["stores", "--jobs", "0"] + keys, ["stores", "--jobs", "65"] + keys, ["stores", "--jobs", "x"] + keys,
            ["stores", "--key", "stdin", "--new-key", "stdin"],
            ["-", "--key", "raw+stdin", "--new-key", "raw+file:new"],
            ["-", "--key", "raw+file:old", "--new-key", "fd:0"],
        ]
        for arguments in wrong {
            #expect(try CofferProcess.run(["rotate"] + arguments, in: stores.work.folder).status == 64)
        }
        let missing = ["rotate", "stores", "--key", "raw+file:old", "--new-key", "raw+file:none"]
        #expect(try CofferProcess.run(missing, in: stores.work.folder).status == 13)
        #expect(try stores.work.contents(of: "stores") == before)
    }
}

/// `coffer rotate` is ended at random times, again and again, for some seconds: COFFER_KILL_SECONDS, 10 unless said.
@Suite("A rotation of many stores that is cut short", .serialized)
struct CutRotationTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let time = Duration.seconds(Int(environment["COFFER_KILL_SECONDS"] ?? "") ?? 10)

    @Test(
        "A rotation that is cut short leaves each store whole under one of the two keys, and another run finishes it",
        arguments: [SIGKILL, SIGINT, SIGTERM])
    func cut(signal: Int32) throws {
        let stores = try Stores()
        for name in Stores.names { try stores.make(name, stores.old, byteCount: 2_000_000) }
        var (old, new) = ("old", "new")
        var longest = Duration.milliseconds(1)
        var counts: [Int: Int] = [:]
        var rounds = 0
        let end = ContinuousClock.now + Self.time / 3
        while ContinuousClock.now < end || rounds < 4 {
            let command = [
                "rotate", "stores", "--key", "raw+file:\(old)", "--new-key", "raw+file:\(new)", "--json", "--jobs",
                "\(rounds % 3 + 1)",
            ]
            if rounds > 0 {
                let cut = try CofferProcess.run(command, in: stores.work.folder) { process in
                    usleep(.random(in: 0...UInt32(longest / .microseconds(1))))
                    kill(process, signal)
                }
                #expect([0, 130, 128 + signal].contains(cut.status))
                let (oldKey, newKey) = old == "old" ? (stores.old, stores.new) : (stores.new, stores.old)
                let (rotated, cancelled) = (try cut.paths("rotated"), try cut.paths("cancelled"))
                var doneCount = 0
                for name in Stores.names {
                    let isDone = try stores.opens(name, newKey)
                    #expect(try stores.opens(name, oldKey) != isDone)
                    doneCount += isDone ? 1 : 0
                    // Each receipt says what happened.
                    let path = "stores/\(name).coffer"
                    #expect(!rotated.contains(path) || isDone)
                    #expect(!cancelled.contains(path) || !isDone)
                    // Who could write a receipt has written one.
                    #expect(signal == SIGKILL || cut.lines.isEmpty || !isDone || rotated.contains(path))
                }
                // A signal that came before the command took notice of any ended it without a word.
                #expect(cut.status != 130 || cut.errors.isEmpty || cut.errors.contains("cancelled"))
                counts[doneCount, default: 0] += 1
            }
            let start = ContinuousClock.now
            let whole = try CofferProcess.run(command, in: stores.work.folder)
            if rounds == 0 { longest = ContinuousClock.now - start }
            #expect(whole.status == 0)
            let done = try whole.paths("rotated").count + whole.paths("alreadyRotated").count
            #expect(done == 6)
            for name in Stores.names {
                let left = try FileManager.default.contentsOfDirectory(
                    atPath: stores.folder.appending(path: "\(name).coffer").path(percentEncoded: false))
                #expect(left.count == 2)
            }
            swap(&old, &new)
            rounds += 1
        }
        print("rotations of six stores ended by \(signal): \(rounds) rounds, stores done by then: \(counts)")
    }
}
