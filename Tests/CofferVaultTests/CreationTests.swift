import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

@Suite("Creating a store")
struct CreationTests {
    let scratch = Scratch()

    @Test("Creating a store over a store is refused with 412, and that one stays as it was")
    func exists() throws {
        try makeStore(at: scratch.store)
        let before = scratch.snapshot
        let watched = RecordingFileSystem()
        #expect(throws: CofferError(.databaseExists)) { try makeStore(at: scratch.store, fileSystem: watched) }
        #expect(watched.stepCount == 0)
        #expect(scratch.snapshot == before)
    }

    @Test(
        "Creating a store gives way to what appears in its place meanwhile, even an empty directory",
        arguments: [true, false])
    func appearing(isStore: Bool) throws {
        let path = scratch.store
        let error = #expect(throws: CofferError.self) {
            try LockedStore.create(path: path, key: rawKey(1)) { new throws(CofferError) in
                try buildStandIn(new)
                if isStore { try makeStore(at: path, key: rawKey(2)) } else { mkdir(path, 0o700) }
            }
        }
        #expect(error?.code == (isStore ? .databaseExists : .notAStore))
        #expect(scratch.names == ["people.coffer"])
        if isStore { #expect(try !openStore(at: path, key: rawKey(2))) }
    }

    /// Every entry is durable before something names it, and the name comes last. What is left out here is lost in a
    /// power cut that the tests can't make.
    @Test("Creating a store takes exactly these steps, in this order")
    func order() throws {
        let recording = RecordingFileSystem()
        try makeStore(at: scratch.store, fileSystem: recording)
        let sibling = try #require(recording.stepNames.first?.split(separator: " ").last)
        let generation = try Manifest.read(path: scratch.store).generationName
        let parent = try #require(scratch.path.split(separator: "/").last)
        #expect(
            recording.stepNames == [
                "mkdir \(sibling)", "mkdir \(generation)", "mkdir attachments", "mkdir incoming", "create db.sqlite3",
                "fsync file db.sqlite3", "fsync directory attachments", "fsync directory incoming",
                "fsync directory \(generation)", "create MANIFEST", "write 1024 bytes", "fsync file MANIFEST",
                "fsync directory \(sibling)", "rename without replacing \(sibling)", "fsync directory \(parent)",
            ])
        #expect(recording.log.count == 15)
    }

    @Test("Creating a store with a key that can't be one is refused before anything is made")
    func invalidKeys() throws {
        let watched = RecordingFileSystem()
        for (key, cost, names, expected) in [
            (SymmetricKey(password: ""), cheap, .sha1, CofferError.Code.invalidKey),
            (SymmetricKey(password: "a"), .scrypt(log2N: 9, p: 1), .sha1, .invalidArgument),
            (SymmetricKey(password: "a"), .scrypt(log2N: 18, p: 2), .sha1, .invalidArgument),
            (SymmetricKey(password: "a"), .pbkdf2(iterations: 99_999), .sha1, .invalidArgument),
            (nil, cheap, .keyed, .invalidArgument),
        ] as [(SymmetricKey?, PasswordCost, Manifest.AttachmentNames, CofferError.Code)] {
            let code = code {
                _ = try LockedStore.create(
                    path: scratch.store, key: key, passwordCost: cost, attachmentNames: names, fileSystem: watched,
                    buildDatabase: buildStandIn)
            }
            #expect(code == expected)
        }
        #expect(watched.stepCount == 0)
        #expect(scratch.names == [])
    }

    @Test("Creating a store works with PBKDF2 where that is asked for")
    func pbkdf2() throws {
        let key = SymmetricKey(password: "password")
        try LockedStore.create(
            path: scratch.store, key: key, passwordCost: .pbkdf2(iterations: 100_000), buildDatabase: buildStandIn
        ).store.close()
        #expect(try !openStore(at: scratch.store, key: key))
    }

    @Test("Creating a store where the directory is missing says so, and makes none")
    func missingParent() {
        let error = #expect(throws: CofferError(.ioFailed)) {
            try makeStore(at: scratch.path + "/missing/people.coffer")
        }
        #expect(error?.description.contains("missing") == true)
        #expect(scratch.names == [])
    }

    @Test("Creating a store leaves nothing when the database can't be built, or wasn't closed")
    func failingBuilder() {
        #expect(throws: CofferError(.encryptionUnavailable)) {
            try LockedStore.create(path: scratch.store, key: rawKey()) { new throws(CofferError) in
                try buildStandIn(new)
                throw CofferError(.encryptionUnavailable)
            }
        }
        for suffix in ["-wal", "-shm", "-journal"] {
            let error = #expect(throws: CofferError(.ioFailed)) {
                try LockedStore.create(path: scratch.store, key: rawKey()) { new throws(CofferError) in
                    try buildStandIn(new)
                    writeBinding(0, at: new.databasePath + suffix)
                }
            }
            #expect(error?.subject?.hasSuffix("db.sqlite3" + suffix) == true)
        }
        #expect(scratch.names == [])
    }

    @Test("Creating a store holds the lock from before the store has its name")
    func lockedFromTheStart() throws {
        let path = scratch.store
        let (store, _) = try LockedStore.create(path: path, key: nil, buildDatabase: buildStandIn)
        #expect(throws: CofferError(.busy)) { try LockedStore.open(path: path, access: .readOnly) }
        #expect(try StoreIdentity(path: path) == store.identity)
        #expect(store.path == path)
        #expect(store.access == .readWrite)
        store.close()
        #expect(try !openStore(at: path, key: nil))
    }

    @Test("Creating a store goes on under another name when someone took what it was making for a leftover")
    func losingTheSibling() throws {
        let other = scratch.path + "/other.coffer"
        let fileSystem = RecordingFileSystem(beforeLock: { attempt in
            // Twice: between making a sibling and locking it, another creation clears away.
            guard attempt <= 2 else { return }
            do {
                try makeStore(at: other)
                try LockedStore.open(path: other, access: .readWrite).delete()
            } catch { Issue.record(error) }
        })
        try makeStore(at: scratch.store, fileSystem: fileSystem)
        #expect(fileSystem.stepNames.filter { $0.hasPrefix("mkdir .coffer-") }.count == 3)
        #expect(scratch.names == ["people.coffer"])
        #expect(try !openStore(at: scratch.store))
    }

    @Test("Creating a store goes on under another name when it is gone before it could be opened")
    func losingTheSiblingEarlier() throws {
        let other = scratch.path + "/other.coffer"
        let fileSystem = RecordingFileSystem(afterStep: { number, _ in
            guard number == 1 else { return }
            do {
                try makeStore(at: other)
                try LockedStore.open(path: other, access: .readWrite).delete()
            } catch { Issue.record(error) }
        })
        #expect(throws: Never.self) { try makeStore(at: scratch.store, fileSystem: fileSystem) }
        #expect(scratch.names == ["people.coffer"])
        #expect(try !openStore(at: scratch.store))
    }

    @Test("Creating a store leaves nothing when it can't open what it made")
    func unopenable() {
        for (name, leftoverCount) in [(".coffer-", 0), ("g0000000000000001-", 1)] {
            let error = #expect(throws: CofferError(.ioFailed)) {
                try makeStore(at: scratch.store, fileSystem: RecordingFileSystem(unopenable: name))
            }
            #expect(error?.systemErrorNumber == EMFILE)
            #expect(scratch.names.count == leftoverCount)
        }
        // What is inside can't be removed without opening it; the next creation does.
        #expect(throws: Never.self) { try makeStore(at: scratch.store) }
        #expect(scratch.names == ["people.coffer"])
    }

    /// A name that may be durable must never lead to half a store.
    @Test("Creating a store whose name may not be durable takes the name away, durably, before it removes anything")
    func failingLastSync() throws {
        let recording = RecordingFileSystem(.fail(15, EIO))
        #expect(throws: CofferError(.ioFailed)) { try makeStore(at: scratch.store, fileSystem: recording) }
        let parent = try #require(scratch.path.split(separator: "/").last)
        #expect(
            recording.stepNames.dropFirst(14).prefix(3) == [
                "fsync directory \(parent)", "rename without replacing people.coffer", "fsync directory \(parent)",
            ])
        #expect(recording.stepNames.dropFirst(17).allSatisfy { $0.hasPrefix("unlink ") || $0.hasPrefix("rmdir ") })
        #expect(scratch.names == [])
    }

    @Test("Creating a store of many in one directory at once makes each whole, and leaves nothing beside them")
    func concurrently() async throws {
        let paths = (0..<8).map { "\(scratch.path)/\($0).coffer" }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for path in paths {
                group.addTask {
                    for _ in 0..<5 {
                        try makeStore(at: path)
                        try LockedStore.open(path: path, access: .readWrite).delete()
                    }
                    try makeStore(at: path)
                }
            }
            try await group.waitForAll()
        }
        for path in paths { #expect(try !openStore(at: path)) }
        #expect(scratch.names == paths.map { String($0.split(separator: "/").last ?? "") })
    }
}

@Suite("What killed processes left beside a store")
struct LeftoverTests {
    let scratch = Scratch()
    private static let leftover = ".coffer-0123456789abcdef"

    private func makeLeftover(_ name: String = leftover) throws {
        let path = "\(scratch.path)/\(name)/g1/deep/er"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try Data("text".utf8).write(to: URL(fileURLWithPath: path + "/file"))
        try FileManager.default.createSymbolicLink(atPath: path + "/link", withDestinationPath: scratch.path)
    }

    @Test("A leftover of a killed process is removed at the next creation and at the next deletion")
    func removed() throws {
        try makeLeftover()
        try makeStore(at: scratch.store)
        #expect(scratch.names == ["people.coffer"])
        try makeLeftover()
        #expect(try !openStore(at: scratch.store))
        #expect(scratch.names == [Self.leftover, "people.coffer"])
        try LockedStore.open(path: scratch.store, access: .readWrite).delete()
        #expect(scratch.names == [])
    }

    @Test("A leftover stays while a process that lives holds it")
    func held() throws {
        try makeStore(at: "\(scratch.path)/\(Self.leftover)")
        let holder = try LockedStore.open(path: "\(scratch.path)/\(Self.leftover)", access: .readOnly)
        try makeStore(at: scratch.store)
        #expect(scratch.names == [Self.leftover, "people.coffer"])
        #expect(try holder.readManifest().isEncrypted)
        holder.close()
        try makeStore(at: scratch.path + "/other.coffer")
        #expect(scratch.names == ["other.coffer", "people.coffer"])
    }

    @Test("What a creation that goes on has beside a store is not touched by another")
    func creationGoingOn() throws {
        let (store, _) = try LockedStore.create(path: scratch.store, key: rawKey()) { new throws(CofferError) in
            try makeStore(at: scratch.path + "/other.coffer")
            try LockedStore.open(path: scratch.path + "/other.coffer", access: .readWrite).delete()
            try buildStandIn(new)
        }
        store.close()
        #expect(try !openStore(at: scratch.store))
    }

    @Test("A leftover has exactly one form of name: everything else stays, and no link is followed")
    func otherNames() throws {
        let others = [
            ".coffer-0123456789abcde", ".coffer-0123456789abcdef0", ".coffer-0123456789ABCDEF",
            ".coffer-0123456789abcdeg",
            ".coffer-", ".Coffer-0123456789abcdef", "coffer-0123456789abcdef", ".coffer_0123456789abcdef",
            "x.coffer-0123456789abcdef",
        ]
        for name in others { try makeLeftover(name) }
        try Data("text".utf8).write(to: URL(fileURLWithPath: scratch.path + "/.coffer-00000000000000ff"))
        try FileManager.default.createSymbolicLink(
            atPath: scratch.path + "/.coffer-00000000000000fe", withDestinationPath: others[0])
        let before = scratch.snapshot
        try makeStore(at: scratch.store)
        try LockedStore.open(path: scratch.store, access: .readWrite).delete()
        #expect(scratch.snapshot == before)
    }

    @Test("A leftover that can't be removed can't keep a store from being made or deleted")
    func unremovable() throws {
        try makeLeftover()
        let fileSystem = RecordingFileSystem(.fail(1, EIO))
        try makeStore(at: scratch.store, fileSystem: fileSystem)
        #expect(fileSystem.stepNames.first == "unlink link" || fileSystem.stepNames.first == "unlink file")
        #expect(scratch.names == [Self.leftover, "people.coffer"])
    }
}
