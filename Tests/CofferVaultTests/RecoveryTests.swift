import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

/// A store with everything that a killed process can leave in it.
func makeStaleStore(at path: String, key: SymmetricKey? = rawKey()) throws {
    try makeStore(at: path, key: key)
    let current = try Manifest.read(path: path).generationName
    for name in [
        "g0000000000000001-0000000000000000", "g0000000000000002-00000000000000ff",
        "g0000000000000000-0000000000000000",
    ] {
        try FileManager.default.createDirectory(
            atPath: "\(path)/\(name)/attachments", withIntermediateDirectories: true)
        try Data("old".utf8).write(to: URL(fileURLWithPath: "\(path)/\(name)/db.sqlite3"))
        try Data("old".utf8).write(to: URL(fileURLWithPath: "\(path)/\(name)/attachments/a.blob"))
    }
    try Data("half".utf8).write(to: URL(fileURLWithPath: path + "/MANIFEST.new"))
    try Data("half".utf8).write(to: URL(fileURLWithPath: "\(path)/\(current)/incoming/0123"))
}

@Suite("Recovery")
struct RecoveryTests {
    let scratch = Scratch()

    private var manifest: Manifest { get throws { try Manifest.read(path: scratch.store) } }
    private var generation: String { get throws { try "\(scratch.store)/\(manifest.generationName)" } }

    /// Opens the store read-write and says whether it is stale.
    private func isStale(access: LockedStore.Access = .readWrite) throws -> Bool {
        let store = try LockedStore.open(path: scratch.store, access: access)
        defer { store.close() }
        let unlocked = try store.readManifest().unlock(with: rawKey())
        let sequence = try #require(readBinding(at: store.generation(of: unlocked).databasePath))
        return try store.isStale(unlocked, bindingSequence: sequence)
    }

    @Test("Recovery is not needed by a store that was closed, which then stays as it is")
    func nothingStale() throws {
        try makeStore(at: scratch.store)
        let before = scratch.snapshot
        #expect(try !openStore(at: scratch.store))
        #expect(scratch.snapshot == before)
    }

    @Test(
        "Recovery removes what is stale, in a store of each kind, and the next opening changes nothing",
        arguments: [true, false])
    func everything(isEncrypted: Bool) throws {
        let key = isEncrypted ? rawKey() : nil
        try makeStaleStore(at: scratch.store, key: key)
        #expect(try openStore(at: scratch.store, key: key))
        #expect(try isTidy(scratch.store))
        #expect(try manifest.sequence == 2)
        #expect(try readBinding(at: generation + "/db.sqlite3") == 2)
        let before = scratch.snapshot
        #expect(try !openStore(at: scratch.store, key: key))
        #expect(scratch.snapshot == before)
    }

    @Test(
        "Recovery is needed for each kind of leftover alone",
        arguments: ["generation", "file", "link", "new", "incoming", "no incoming", "no attachments", "sequence"])
    func eachAlone(kind: String) throws {
        try makeStore(at: scratch.store)
        let stale = scratch.store + "/g00000000000000ff-00000000000000ff"
        switch kind {
        case "generation": try FileManager.default.createDirectory(atPath: stale, withIntermediateDirectories: false)
        case "file": try Data().write(to: URL(fileURLWithPath: stale))
        case "link": try FileManager.default.createSymbolicLink(atPath: stale, withDestinationPath: generation)
        case "new": try Data().write(to: URL(fileURLWithPath: scratch.store + "/MANIFEST.new"))
        case "incoming": try Data().write(to: URL(fileURLWithPath: generation + "/incoming/x"))
        case "no incoming": try FileManager.default.removeItem(atPath: generation + "/incoming")
        case "no attachments": try FileManager.default.removeItem(atPath: generation + "/attachments")
        default: writeBinding(0, at: try generation + "/db.sqlite3")
        }
        #expect(try isStale())
        #expect(try openStore(at: scratch.store))
        #expect(try isTidy(scratch.store))
        #expect(try !isStale())
        for name in ["/db.sqlite3", "/attachments", "/incoming"] {
            #expect(try FileManager.default.fileExists(atPath: generation + name))
        }
    }

    @Test("Recovery keeps every name that is not one of a store's own")
    func otherNames() throws {
        try makeStore(at: scratch.store)
        let others = [
            "notes.txt", "MANIFEST.old", "manifest.new", "g1", "g0000000000000001",
            "h0000000000000001-0000000000000001",
            "g0000000000000001-000000000000000", "g0000000000000001-00000000000000000",
            "g0000000000000001_0000000000000001",
            "G0000000000000001-0000000000000001", "g000000000000000A-0000000000000001",
            "g0000000000000001-000000000000000g",
        ]
        for name in others {
            try FileManager.default.createDirectory(
                atPath: "\(scratch.store)/\(name)/x", withIntermediateDirectories: true)
        }
        try Data().write(to: URL(fileURLWithPath: generation + "/attachments/stays.blob"))
        try Data().write(to: URL(fileURLWithPath: generation + "/stays"))
        #expect(try !isStale())
        try Data().write(to: URL(fileURLWithPath: scratch.store + "/MANIFEST.new"))
        #expect(try openStore(at: scratch.store))
        for name in others { #expect(FileManager.default.fileExists(atPath: "\(scratch.store)/\(name)/x")) }
        #expect(try FileManager.default.fileExists(atPath: generation + "/attachments/stays.blob"))
        #expect(try FileManager.default.fileExists(atPath: generation + "/stays"))
    }

    @Test("Recovery follows no link out of the store")
    func links() throws {
        try makeStaleStore(at: scratch.store)
        let outside = scratch.path + "/outside"
        try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: false)
        try Data("text".utf8).write(to: URL(fileURLWithPath: outside + "/file"))
        try FileManager.default.createSymbolicLink(
            atPath: scratch.store + "/g0000000000000002-00000000000000ff/attachments/link", withDestinationPath: outside
        )
        try FileManager.default.createSymbolicLink(
            atPath: generation + "/incoming/link", withDestinationPath: outside)
        try FileManager.default.removeItem(atPath: scratch.store + "/MANIFEST.new")
        try FileManager.default.createSymbolicLink(
            atPath: scratch.store + "/MANIFEST.new", withDestinationPath: outside + "/file")
        #expect(try openStore(at: scratch.store))
        #expect(try isTidy(scratch.store))
        #expect(try Data(contentsOf: URL(fileURLWithPath: outside + "/file")) == Data("text".utf8))
    }

    @Test("Recovery is refused when the database is ahead of MANIFEST: an older one was put back")
    func rolledBack() throws {
        try makeStaleStore(at: scratch.store)
        writeBinding(2, at: try generation + "/db.sqlite3")
        let before = scratch.snapshot
        let error = #expect(throws: CofferError(.damaged)) { try openStore(at: scratch.store) }
        #expect(error?.subject == scratch.store + "/MANIFEST")
        #expect(scratch.snapshot == before)
    }

    @Test("Recovery happens to no store that is read only, or whose key is not proven")
    func onlyWhenProven() throws {
        try makeStaleStore(at: scratch.store)
        let before = scratch.snapshot
        for key in [nil, rawKey(8)] {
            #expect(throws: CofferError.self) { try openStore(at: scratch.store, key: key) }
        }
        #expect(try isStale(access: .readOnly))
        let store = try LockedStore.open(path: scratch.store, access: .readOnly)
        let unlocked = try store.readManifest().unlock(with: rawKey())
        #expect(throws: CofferError(.readOnly)) {
            try store.recover(unlocked, attachmentHasRow: { _ in false }) { _ in
                Issue.record("the binding row was written")
            }
        }
        #expect(throws: CofferError(.readOnly)) { try store.delete() }
        store.close()
        #expect(scratch.snapshot == before)
    }

    @Test("Recovery writes and syncs MANIFEST, then the binding row, and only then deletes")
    func order() throws {
        try makeStaleStore(at: scratch.store)
        let recording = RecordingFileSystem()
        let store = try LockedStore.open(path: scratch.store, access: .readWrite, fileSystem: recording)
        let unlocked = try store.readManifest().unlock(with: rawKey())
        var stepsBeforeBinding: [String] = []
        let recovered = try store.recover(unlocked, attachmentHasRow: { _ in false }) { sequence in
            #expect(sequence == 2)
            stepsBeforeBinding = recording.stepNames
        }
        #expect(
            stepsBeforeBinding == [
                "unlink MANIFEST.new", "create MANIFEST.new", "write 1024 bytes", "fsync file MANIFEST.new",
                "rename MANIFEST.new", "fsync directory people.coffer",
            ])
        let rest = recording.stepNames.dropFirst(stepsBeforeBinding.count)
        #expect(rest.filter { $0.hasPrefix("rmdir g") }.count == 3)
        #expect(rest.last == "fsync directory incoming")
        #expect(recovered.manifest.sequence == 2)
        #expect(recovered.openedSlot == unlocked.openedSlot)
        #expect(try recovered.key(for: .database) == unlocked.key(for: .database))
        #expect(
            try Manifest(bytes: Array(Data(contentsOf: URL(fileURLWithPath: scratch.store + "/MANIFEST"))))
                == recovered.manifest)
        store.close()
    }

    @Test("Recovery deletes nothing when the binding row can't be written, and goes on the next time")
    func failingBinding() throws {
        try makeStaleStore(at: scratch.store)
        let store = try LockedStore.open(path: scratch.store, access: .readWrite)
        let unlocked = try store.readManifest().unlock(with: rawKey())
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.store).count
        #expect(throws: CofferError(.noSpace)) {
            try store.recover(unlocked, attachmentHasRow: { _ in false }) { _ throws(CofferError) in
                throw CofferError(.noSpace)
            }
        }
        store.close()
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.store).count == names - 1)
        #expect(try manifest.sequence == 2)
        #expect(try openStore(at: scratch.store))
        #expect(try manifest.sequence == 3)
        #expect(try isTidy(scratch.store))
    }

    @Test("Recovery stops at the largest sequence there is")
    func lastSequence() throws {
        let vector = try ManifestVector(named: "valid-largest-numbers")
        let (store, made) = try LockedStore.create(path: scratch.store, key: rawKey(), buildDatabase: buildStandIn)
        let generation = try Manifest(bytes: vector.bytes).generationName
        try FileManager.default.moveItem(
            atPath: "\(scratch.store)/\(made.manifest.generationName)", toPath: "\(scratch.store)/\(generation)")
        let unlocked = try vector.unlock()
        #expect(throws: CofferError(.damaged)) {
            try store.recover(unlocked, attachmentHasRow: { _ in false }) { _ in Issue.record("it went on") }
        }
        store.close()
    }
}
