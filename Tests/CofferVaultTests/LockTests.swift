import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("The lock of a store")
struct LockTests {
    let scratch = Scratch()

    init() throws { try makeStore(at: scratch.store) }

    private func open(
        _ access: LockedStore.Access, timeout: Duration = .zero, fileSystem: any FileSystem = SystemFileSystem()
    ) throws(CofferError) -> LockedStore {
        try .open(path: scratch.store, access: access, timeout: timeout, fileSystem: fileSystem)
    }

    @Test("The lock of a store excludes every other when one writes, and lets others read beside one that reads")
    func sharing() throws {
        do {
            let writer = try open(.readWrite)
            #expect(throws: CofferError(.busy)) { try open(.readWrite) }
            #expect(throws: CofferError(.busy)) { try open(.readOnly) }
            writer.close()
        }
        let readers = [try open(.readOnly), try open(.readOnly)]
        #expect(throws: CofferError(.busy)) { try open(.readWrite) }
        readers[0].close()
        #expect(throws: CofferError(.busy)) { try open(.readWrite) }
        readers[1].close()
        try open(.readWrite).close()
    }

    @Test("The lock of a store ends with the last reference, and closing twice is fine")
    func lifetime() throws {
        var store: LockedStore? = try open(.readWrite)
        #expect(throws: CofferError(.busy)) { try open(.readOnly) }
        store = nil
        store = try open(.readWrite)
        store?.close()
        store?.close()
        #expect(throws: CofferError(.closed)) { try store?.readManifest() }
        #expect(throws: CofferError(.closed)) { try store?.delete() }
    }

    @Test("Closing a lock does not unlock for a later one")
    func closingAgainLater() throws {
        let first = try open(.readWrite)
        first.close()
        let second = try open(.readWrite)
        first.close()
        #expect(throws: CofferError(.busy)) { try open(.readOnly) }
        second.close()
    }

    @Test("The lock of a store is waited for no longer than asked, and at once not at all")
    func timeout() throws {
        let writer = try open(.readWrite)
        let attempts = Atomic(0)
        let counting = RecordingFileSystem(beforeLock: { attempts.store($0, ordering: .relaxed) })
        for (number, timeout) in [Duration.seconds(-1), .zero].enumerated() {
            #expect(throws: CofferError(.busy)) { try open(.readOnly, timeout: timeout, fileSystem: counting) }
            let count = attempts.load(ordering: .relaxed)
            #expect(count == number + 1)
        }
        let time = ContinuousClock().measure {
            #expect(throws: CofferError(.busy)) {
                try open(.readOnly, timeout: .milliseconds(150), fileSystem: counting)
            }
        }
        let count = attempts.load(ordering: .relaxed)
        #expect(time >= .milliseconds(150) && count > 3)
        writer.close()
    }

    @Test("The lock of a store is had as soon as the other ends, however long one would wait", .timeLimit(.minutes(30)))
    func waiting() throws {
        let writer = try open(.readWrite)
        let fileSystem = RecordingFileSystem(beforeLock: { if $0 == 5 { writer.close() } })
        try open(.readWrite, timeout: .seconds(Int64.max), fileSystem: fileSystem).close()
    }

    @Test(
        "The lock of a store is another process's too: the second is busy, until the first is killed",
        .timeLimit(.minutes(30)))
    func processes() async throws {
        let (path, ready) = (scratch.store, scratch.path + "/ready")
        let others = WorkBesideProcess { [path, ready] in
            #expect(eventually { FileManager.default.fileExists(atPath: ready) })
            let holder = try #require(Int32(String(contentsOfFile: ready, encoding: .utf8).dropLast()))
            defer { kill(holder, SIGKILL) }
            #expect(throws: CofferError(.busy)) { try LockedStore.open(path: path, access: .readWrite) }
            #expect(throws: CofferError(.busy)) { try LockedStore.open(path: path, access: .readOnly) }
            #expect(try Manifest.read(path: path).isEncrypted)
        }
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = path as String, ready = ready as String] in
            let store = try LockedStore.open(path: path, access: .readWrite)
            try "\(getpid()) ".write(toFile: ready, atomically: true, encoding: .utf8)
            // Until it is killed, or the test is long over.
            sleep(3_600)
            store.close()
        }
        try others.value()
        #expect(try !openStore(at: scratch.store))
    }

    @Test("The lock of a store is not inherited by a process that is started meanwhile")
    func inheritance() throws {
        let store = try open(.readWrite)
        let child = Process()
        child.executableURL = URL(fileURLWithPath: "/bin/sleep")
        child.arguments = ["3600"]
        try child.run()
        store.close()
        try open(.readWrite).close()
        kill(child.processIdentifier, SIGKILL)
        child.waitUntilExit()
    }

    @Test("The lock of a store follows a store that is renamed, and the identity is the same by another path")
    func renamed() throws {
        let store = try open(.readWrite)
        let moved = scratch.path + "/moved.coffer"
        try FileManager.default.moveItem(atPath: scratch.store, toPath: moved)
        #expect(throws: CofferError(.busy)) { try LockedStore.open(path: moved, access: .readOnly) }
        #expect(throws: CofferError(.databaseNotFound)) { try open(.readOnly) }
        #expect(try StoreIdentity(path: moved) == store.identity)
        #expect(try StoreIdentity(path: scratch.path + "//./moved.coffer///") == store.identity)
        // What is there now is no more the one that was opened.
        try makeStore(at: scratch.store)
        #expect(throws: CofferError(.ioFailed)) { try store.delete() }
        #expect(try StoreIdentity(path: scratch.store) != store.identity)
        #expect(try !openStore(at: scratch.store))
        store.close()
    }

    @Test("The lock of a store is of the store that has the name now, when another took its place before it was locked")
    func replacedBeforeLocking() throws {
        let (path, aside, other) = (scratch.store, scratch.path + "/aside.coffer", scratch.path + "/other.coffer")
        try makeStore(at: other)
        let otherIdentity = try StoreIdentity(path: other)
        let fileSystem = RecordingFileSystem(beforeLock: { attempt in
            guard attempt == 1 else { return }
            rename(path, aside)
            rename(other, path)
        })
        let store = try open(.readWrite, fileSystem: fileSystem)
        #expect(store.identity == otherIdentity)
        store.close()
    }

    @Test("The lock of a store is not had of a store that was deleted before it was locked")
    func deletedBeforeLocking() throws {
        let path = scratch.store
        let fileSystem = RecordingFileSystem(beforeLock: { attempt in
            if attempt == 1 { try? LockedStore.open(path: path, access: .readWrite).delete() }
        })
        #expect(throws: CofferError(.databaseNotFound)) { try open(.readWrite, fileSystem: fileSystem) }
        #expect(scratch.names == [])
    }

    @Test("A lock is refused on a network file system, where nothing is locked and nothing made")
    func network() throws {
        let network = RecordingFileSystem(network: "NFS", beforeLock: { _ in Issue.record("it was locked") })
        let before = scratch.snapshot
        for access in [LockedStore.Access.readOnly, .readWrite] {
            let error = #expect(throws: CofferError(.unsupportedFormat)) { try open(access, fileSystem: network) }
            #expect(error?.description.contains("NFS") == true)
        }
        #expect(throws: CofferError(.unsupportedFormat)) {
            try makeStore(at: scratch.path + "/new.coffer", fileSystem: network)
        }
        #expect(network.stepCount == 0)
        #expect(scratch.snapshot == before)
    }

    @Test("Local file systems are not taken for the network's", arguments: ["/", NSTemporaryDirectory(), "/dev/shm"])
    func local(path: String) throws {
        guard FileManager.default.fileExists(atPath: path) else { return }
        let system = SystemFileSystem()
        #expect(try system.networkFileSystem(of: system.openDirectory(path: path)) == nil)
    }
}

@Suite("What is not a store")
struct NotAStoreTests {
    let scratch = Scratch()

    private func put(_ kind: String) throws {
        let path = scratch.store
        switch kind {
        case "nothing": break
        case "a file": try Data("text".utf8).write(to: URL(fileURLWithPath: path))
        case "an empty directory":
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false)
        case "a directory of other files":
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            try Data("text".utf8).write(to: URL(fileURLWithPath: path + "/MANIFEST.new"))
            try FileManager.default.createDirectory(
                atPath: path + "/g0000000000000001-0000000000000001", withIntermediateDirectories: false)
        case "a link to a store":
            try makeStore(at: scratch.path + "/real")
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "real")
        case "a dangling link":
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "nowhere")
        default: #expect(mkfifo(path, 0o600) == 0)
        }
    }

    static let kinds = [
        "nothing", "a file", "an empty directory", "a directory of other files", "a link to a store", "a dangling link",
        "a FIFO",
    ]

    @Test(
        "A path without a store is a 404 and stays as it was", .timeLimit(.minutes(30)), arguments: kinds,
        ["", "/", "//"])
    func opening(kind: String, slashes: String) throws {
        try put(kind)
        let before = scratch.snapshot
        let expected: CofferError.Code = kind == "nothing" ? .databaseNotFound : .notAStore
        for access in [LockedStore.Access.readOnly, .readWrite] {
            let error = #expect(throws: CofferError.self) {
                try LockedStore.open(path: scratch.store + slashes, access: access)
            }
            #expect(error?.code == expected)
            #expect(error?.status == 404)
        }
        let error = #expect(throws: CofferError.self) { try Manifest.read(path: scratch.store + slashes) }
        #expect(error?.code == expected)
        #expect(scratch.snapshot == before)
    }

    @Test("A path without a store is a 404 to create over, and stays as it was", arguments: kinds.dropFirst())
    func creating(kind: String) throws {
        try put(kind)
        let before = scratch.snapshot
        #expect(throws: CofferError(.notAStore)) { try makeStore(at: scratch.store) }
        #expect(scratch.snapshot == before)
    }

    @Test("A path without a store is a 404 also when the directory it would be in is missing, or is a file")
    func parents() throws {
        try put("a file")
        #expect(throws: CofferError(.databaseNotFound)) {
            try LockedStore.open(path: scratch.path + "/missing/people.coffer", access: .readOnly)
        }
        #expect(throws: CofferError(.notAStore)) {
            try LockedStore.open(path: scratch.store + "/people.coffer", access: .readOnly)
        }
    }

    @Test(
        "A path that can name no store is a 400", arguments: ["", "/", "///", ".", "..", "a/..", "a/.", "./", "a\0b"])
    func paths(path: String) {
        #expect(throws: CofferError(.invalidArgument)) { try LockedStore.open(path: path, access: .readOnly) }
        #expect(throws: CofferError(.invalidArgument)) { try makeStore(at: path) }
        #expect(throws: CofferError(.invalidArgument)) { try StoreIdentity(path: path) }
    }
}
