import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

@Suite("A store on disk")
struct StoreTests {
    let scratch = Scratch()

    private func permissions(_ path: String) -> Int? {
        (try? FileManager.default.attributesOfItem(atPath: path))?[.posixPermissions] as? Int
    }

    @Test("A store is made, opened with its key, and deleted", arguments: [true, false])
    func roundTrip(isEncrypted: Bool) throws {
        let key = isEncrypted ? rawKey() : nil
        try makeStore(at: scratch.store, key: key)
        #expect(scratch.names == ["people.coffer"])
        #expect(try !openStore(at: scratch.store, key: key))
        let store = try LockedStore.open(path: scratch.store, access: .readWrite)
        #expect(try store.readManifest().isEncrypted == isEncrypted)
        try store.delete()
        #expect(scratch.names == [])
        #expect(throws: CofferError(.closed)) { try store.readManifest() }
    }

    @Test("A store has the names, the permissions and the numbers of a first generation")
    func layout() throws {
        let began = UInt64(time(nil))
        let (store, unlocked) = try LockedStore.create(
            path: scratch.store, key: SymmetricKey(password: "password"), passwordCost: .scrypt(log2N: 11, p: 3),
            attachmentNames: .keyed
        ) { new throws(CofferError) in
            #expect((new.generation, new.sequence) == (1, 1))
            #expect(permissions(new.databasePath) == 0o600)
            try buildStandIn(new)
        }
        let manifest = unlocked.manifest
        #expect((manifest.generation, manifest.sequence) == (1, 1))
        #expect(manifest.attachmentNames == .keyed)
        #expect(manifest.slots.map(\.derivation) == [.scrypt(log2N: 11, r: 8, p: 3)])
        #expect(unlocked.openedSlot == manifest.slots.first?.id)
        let created = try #require(manifest.slots.first?.creationTime)
        #expect((began...UInt64(time(nil))).contains(created))

        let generation = manifest.generationName
        #expect(generation.hasPrefix("g0000000000000001-"))
        #expect(
            scratch.snapshot.keys.sorted()
                == [
                    "", "/MANIFEST", "/\(generation)", "/\(generation)/attachments", "/\(generation)/db.sqlite3",
                    "/\(generation)/incoming",
                ].map { "people.coffer" + $0 })
        #expect(try scratch.snapshot["people.coffer/MANIFEST"] == Data(manifest.bytes))
        for (name, expected) in [
            ("", 0o700), ("/MANIFEST", 0o600), ("/\(generation)", 0o700), ("/\(generation)/db.sqlite3", 0o600),
            ("/\(generation)/attachments", 0o700), ("/\(generation)/incoming", 0o700),
        ] { #expect(permissions(scratch.store + name) == expected, "\(name)") }

        let parts = try store.generation(of: unlocked)
        #expect(parts.databasePath == "\(scratch.store)/\(generation)/db.sqlite3")
        #expect(parts.attachmentsPath == "\(scratch.store)/\(generation)/attachments")
        store.close()
    }

    @Test(
        "A store gives the builder the key, the UUID and the numbers that every later opening finds",
        arguments: [true, false])
    func builder(isEncrypted: Bool) throws {
        var built: (key: [UInt8]?, uuid: StoreUUID)?
        let key = isEncrypted ? rawKey() : nil
        try LockedStore.create(path: scratch.store, key: key) { new throws(CofferError) in
            built = (try new.unlocked.databaseKey()?.withBytes { Array($0) }, new.storeUUID)
            try buildStandIn(new)
        }.store.close()
        let unlocked = try Manifest.read(path: scratch.store).unlock(with: key)
        #expect(try unlocked.key(for: .database)?.withBytes { Array($0) } == built?.key)
        #expect((built?.key != nil) == isEncrypted)
        #expect(unlocked.manifest.storeUUID == built?.uuid)
    }

    @Test("A store is opened by nothing but its key, and a refusal changes no byte")
    func refusals() throws {
        try makeStore(at: scratch.store, key: rawKey(1))
        try makeStore(at: scratch.path + "/plain.coffer", key: nil)
        let before = scratch.snapshot
        let watched = RecordingFileSystem()
        for (name, key, expected) in [
            ("people", nil, CofferError.Code.keyRequired), ("people", rawKey(2), .wrongKey),
            ("people", SymmetricKey(password: "password"), .wrongKey),
            ("people", SymmetricKey(password: ""), .invalidKey),
            ("plain", rawKey(1), .notEncrypted), ("plain", SymmetricKey(password: ""), .notEncrypted),
        ] as [(String, SymmetricKey?, CofferError.Code)] {
            let code = code { try openStore(at: "\(scratch.path)/\(name).coffer", key: key, fileSystem: watched) }
            #expect(code == expected)
        }
        #expect(watched.stepCount == 0)
        #expect(scratch.snapshot == before)
    }

    @Test(
        "A store has a MANIFEST that is a file and nothing else", .timeLimit(.minutes(30)),
        arguments: ["link", "directory", "fifo"])
    func manifestKinds(kind: String) throws {
        try makeStore(at: scratch.store)
        let manifest = scratch.store + "/MANIFEST"
        try FileManager.default.moveItem(atPath: manifest, toPath: scratch.path + "/elsewhere")
        switch kind {
        case "link":
            try FileManager.default.createSymbolicLink(
                atPath: manifest, withDestinationPath: scratch.path + "/elsewhere")
        case "directory": try FileManager.default.createDirectory(atPath: manifest, withIntermediateDirectories: false)
        default: #expect(mkfifo(manifest, 0o600) == 0)
        }
        #expect(throws: CofferError(.damaged)) { try openStore(at: scratch.store) }
        #expect(throws: CofferError(.damaged)) { try Manifest.read(path: scratch.store) }
    }

    @Test("A store is deleted in exactly these steps: the name goes first, durably")
    func deletionOrder() throws {
        try makeStore(at: scratch.store)
        let recording = RecordingFileSystem()
        try LockedStore.open(path: scratch.store, access: .readWrite, fileSystem: recording).delete()
        let parent = try #require(scratch.path.split(separator: "/").last)
        #expect(
            recording.stepNames.prefix(2) == ["rename without replacing people.coffer", "fsync directory \(parent)"])
        #expect(
            recording.stepNames.dropFirst(2).dropLast().map { $0.prefix(9) }.sorted()
                == ["rmdir att", "rmdir g00", "rmdir inc", "unlink MA", "unlink db"])
        #expect(recording.stepNames.last?.hasPrefix("rmdir .coffer-") == true)
    }

    @Test("A store has a MANIFEST of one length", arguments: [0, 1, 1023, 1025, 2048, 100_000])
    func manifestLengths(byteCount: Int) throws {
        try makeStore(at: scratch.store)
        let url = URL(fileURLWithPath: scratch.store + "/MANIFEST")
        let bytes = try Data(contentsOf: url) + Data(count: 100_000)
        try bytes.prefix(byteCount).write(to: url)
        let before = scratch.snapshot
        #expect(throws: CofferError(.damaged)) { try openStore(at: scratch.store) }
        #expect(throws: CofferError(.damaged)) { try Manifest.read(path: scratch.store) }
        #expect(scratch.snapshot == before)
    }

    @Test("A store names its MANIFEST when that is damaged")
    func damagedManifest() throws {
        try makeStore(at: scratch.store)
        try Data(repeating: 0, count: 1024).write(to: URL(fileURLWithPath: scratch.store + "/MANIFEST"))
        let error = #expect(throws: CofferError(.damaged)) { try openStore(at: scratch.store) }
        #expect(error?.subject == scratch.store + "/MANIFEST")
        #expect(error?.status == 500)
    }

    @Test(
        "A store is damaged, and says which part, when a part is missing or not what it must be",
        arguments: [
            "", "/db.sqlite3", "/db.sqlite3-wal", "/db.sqlite3-shm", "/db.sqlite3-journal", "/attachments", "/incoming",
        ])
    func parts(part: String) throws {
        try makeStore(at: scratch.store)
        let path = try "\(scratch.store)/\(Manifest.read(path: scratch.store).generationName)\(part)"
        let isThere = FileManager.default.fileExists(atPath: path)
        let aside = scratch.path + "/aside"
        if isThere { try FileManager.default.moveItem(atPath: path, toPath: aside) }
        if ["", "/db.sqlite3"].contains(part) {
            let error = #expect(throws: CofferError(.damaged)) { try openStore(at: scratch.store) }
            #expect(error?.subject == path)
        } else {
            #expect(code { try openStore(at: scratch.store) } == nil)
            try? FileManager.default.removeItem(atPath: path)
        }
        // A link to the very same is no better: nothing inside a store follows one.
        if !isThere { try Data().write(to: URL(fileURLWithPath: aside)) }
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: aside)
        let error = #expect(throws: CofferError(.damaged)) { try openStore(at: scratch.store) }
        #expect(error?.subject == path)
    }

    @Test("A store is described without a key or a lock, while another holds it")
    func info() throws {
        let (store, unlocked) = try LockedStore.create(path: scratch.store, key: rawKey(), buildDatabase: buildStandIn)
        #expect(try Manifest.read(path: scratch.store) == unlocked.manifest)
        store.close()
    }

    @Test("A store can be used where it was made under a relative path")
    func relativePath() async throws {
        await #expect(processExitsWith: .success) { [path = scratch.path as String] in
            try #require(FileManager.default.changeCurrentDirectoryPath(path))
            try makeStore(at: "people.coffer")
            try #require(try !openStore(at: "people.coffer"))
            try LockedStore.open(path: "./people.coffer/", access: .readWrite).delete()
        }
        #expect(scratch.names == [])
    }
}
