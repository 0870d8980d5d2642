import CofferSealing
import CofferVault
import Foundation
import Testing

private let isRoot = geteuid() == 0

/// A user and a group without a name, as good as any.
private let user: UInt32 = 54321
private let group: UInt32 = 54322

@Suite("The owner of a store", .enabled(if: isRoot, "only root can act as another user"))
struct OwnershipTests {
    let scratch = Scratch()

    init() throws {
        try makeStaleStore(at: scratch.store)
        try give(scratch.store)
    }

    private func give(_ path: String) throws {
        #expect(lchown(path, user, group) == 0)
        for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
            #expect(lchown("\(path)/\(name)", user, group) == 0)
        }
    }

    private func openToEveryone() throws {
        for name in [""] + (try FileManager.default.subpathsOfDirectory(atPath: scratch.store)) {
            #expect(chmod("\(scratch.store)/\(name)", 0o755) == 0)
        }
    }

    private var owners: Set<[UInt32]> {
        get throws {
            var owners: Set<[UInt32]> = []
            for name in [""] + (try FileManager.default.subpathsOfDirectory(atPath: scratch.store)) {
                var status = stat()
                #expect(lstat("\(scratch.store)/\(name)", &status) == 0)
                owners.insert([status.st_uid, status.st_gid])
            }
            return owners
        }
    }

    @Test("The owner of a store stays the owner of everything when a root that trusts them recovers it")
    func recoveredByRoot() throws {
        let generation = try "\(scratch.store)/\(Manifest.read(path: scratch.store).generationName)"
        try FileManager.default.removeItem(atPath: generation + "/attachments")
        #expect(try openStore(at: scratch.store, otherOwners: .trusted))
        #expect(try isTidy(scratch.store))
        #expect(try owners == [[user, group]])
    }

    @Test("The owner of a store goes on using it after root did")
    func usedByTheOwner() async throws {
        #expect(try openStore(at: scratch.store, otherOwners: .trusted))
        await #expect(processExitsWith: .success) { [path = scratch.store as String] in
            try act(as: user)
            try #require(try !openStore(at: path))
        }
    }

    @Test("The owner of a store may write it, and no other user, who may read it where its permissions say so")
    func others() async throws {
        try openToEveryone()
        let before = scratch.snapshot
        await #expect(processExitsWith: .success) { [path = scratch.store as String] in
            try act(as: user + 1)
            let error = #expect(throws: CofferError(.notOwner)) { try LockedStore.open(path: path, access: .readWrite) }
            #expect(error?.status == 403)
            let store = try LockedStore.open(path: path, access: .readOnly)
            let unlocked = try store.readManifest().unlock(with: rawKey())
            #expect(try store.isStale(unlocked, bindingSequence: 1))
            store.close()
        }
        #expect(scratch.snapshot == before)
        await #expect(processExitsWith: .success) { [path = scratch.store as String] in
            try act(as: user)
            try #require(try openStore(at: path))
        }
    }

    @Test("The owner of a store is the only one who gets into a store with the permissions it is made with: 403")
    func closedToOthers() async throws {
        await #expect(processExitsWith: .success) { [path = scratch.store as String] in
            try act(as: user + 1)
            for access in [LockedStore.Access.readOnly, .readWrite] {
                #expect(throws: CofferError(.notOwner)) { try LockedStore.open(path: path, access: access) }
            }
            #expect(throws: CofferError(.notOwner)) { try Manifest.read(path: path) }
            #expect(throws: CofferError(.notOwner)) { try makeStore(at: path) }
        }
    }

    @Test("The owner of a store is who makes it; in a directory that is closed to them nothing is made")
    func creating() async throws {
        #expect(chmod(scratch.path, 0o755) == 0)
        await #expect(processExitsWith: .success) { [path = scratch.path as String] in
            try act(as: user)
            #expect(throws: CofferError(.ioFailed)) { try makeStore(at: path + "/new.coffer") }
        }
        #expect(chmod(scratch.path, 0o777) == 0)
        await #expect(processExitsWith: .success) { [path = scratch.path as String] in
            try act(as: user)
            try makeStore(at: path + "/new.coffer")
            try openStore(at: path + "/new.coffer")
        }
        #expect(scratch.names == ["new.coffer", "people.coffer"])
        #expect(try owners == [[user, group]])
    }

    // MARK: Root

    @Test("The owner of a store keeps root out of it unless root trusts them: 403, and no byte is changed")
    func root() throws {
        let before = scratch.snapshot
        for access in [LockedStore.Access.readOnly, .readWrite, .restoring] {
            #expect(throws: CofferError(.notOwner)) { try LockedStore.open(path: scratch.store, access: access) }
        }
        #expect(scratch.snapshot == before)
        #expect(try Manifest.read(path: scratch.store).isEncrypted)
        for access in [LockedStore.Access.readOnly, .readWrite, .restoring] {
            try LockedStore.open(path: scratch.store, access: access, otherOwners: .trusted).close()
        }
    }

    @Test(
        "The owner of a store is whoever has any of MANIFEST, the store's directory and the generation's",
        arguments: 0..<3)
    func parts(part: Int) throws {
        let generation = try Manifest.read(path: scratch.store).generationName
        for name in [""] + (try FileManager.default.subpathsOfDirectory(atPath: scratch.store)) {
            #expect(lchown("\(scratch.store)/\(name)", 0, 0) == 0)
        }
        #expect(lchown("\(scratch.store)/" + ["MANIFEST", "", generation][part], user, group) == 0)
        #expect(throws: CofferError(.notOwner)) { try openStore(at: scratch.store) }
        #expect(try openStore(at: scratch.store, otherOwners: .trusted))
    }

    @Test("The owner of a directory keeps root from making a store in it: 403, and nothing is there")
    func folder() throws {
        let folder = scratch.path + "/theirs"
        #expect(mkdir(folder, 0o755) == 0 && lchown(folder, user, group) == 0)
        #expect(throws: CofferError(.notOwner)) { try makeStore(at: folder + "/new.coffer") }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
        try makeStore(at: folder + "/new.coffer", otherOwners: .trusted)
        #expect(try !openStore(at: folder + "/new.coffer"))
    }

    @Test("The owner of a store gets the file that was made for them, and no file with a second name")
    func handing() throws {
        let system = SystemFileSystem()
        let directory = try system.openDirectory(path: scratch.path)
        let made = try system.createFile("made", in: directory)
        let other = try system.createFile("other", in: directory)
        #expect(rename("\(scratch.path)/other", "\(scratch.path)/made") == 0)
        try system.hand(made, to: FileOwner(user: user, group: group))
        #expect(try system.status(of: made).owner == FileOwner(user: user, group: group))
        #expect(try system.status(of: other).owner == FileOwner(user: 0, group: 0))

        #expect(link("\(scratch.path)/made", "\(scratch.path)/second") == 0)
        #expect(throws: CofferError(.notOwner)) { try system.hand(other, to: FileOwner(user: user, group: group)) }
        #expect(try system.status(of: other).owner == FileOwner(user: 0, group: 0))
    }
}

/// Makes this process another user's, for good.
private func act(as user: UInt32) throws {
    try #require(setgroups(0, nil) == 0)
    try #require(setgid(group) == 0)
    try #require(setuid(user) == 0)
}
