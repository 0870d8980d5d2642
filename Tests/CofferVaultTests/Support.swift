import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

/// A directory that is removed with its last reference.
final class Scratch {
    let path: String

    /// For sweeps over many stores: in memory where the system has that, since a sync to a disk takes milliseconds.
    static var inMemory: Scratch { Scratch(in: "/dev/shm") }

    init(in folder: String = NSTemporaryDirectory()) {
        let folder = access(folder, W_OK) == 0 ? folder : NSTemporaryDirectory()
        path = "\(folder)/coffer-vault-\(UInt64.random(in: 0 ... .max))".replacing("//", with: "/")
        try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var store: String { path + "/people.coffer" }

    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

    /// Every path below the directory, with a file's content in hex and a directory's nil.
    var snapshot: [String: Data?] { snapshotOfTree(path) }
}

func snapshotOfTree(_ path: String) -> [String: Data?] {
    var snapshot: [String: Data?] = [:]
    for name in (try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? [] {
        snapshot[name] = .some(try? Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)")))
    }
    return snapshot
}

/// 32 equal bytes.
func rawKey(_ byte: UInt8 = 7) -> SymmetricKey {
    do { return try SymmetricKey(data: [UInt8](repeating: byte, count: 32)) } catch { fatalError("\(error)") }
}

/// The least that a store accepts, so that tests don't wait for it.
let cheap = PasswordCost.scrypt(log2N: 10, p: 1)

/// Stands for a database: the binding row in plain text.
func buildStandIn(_ store: NewStore) throws(CofferError) {
    writeBinding(store.sequence, at: store.databasePath)
}

func writeBinding(_ sequence: UInt64, at path: String) {
    do { try Data("sequence \(sequence)".utf8).write(to: URL(fileURLWithPath: path)) } catch { fatalError("\(error)") }
}

func readBinding(at path: String) -> UInt64? {
    guard let data = try? Data(contentsOf: URL(fileURLWithPath: path)) else { return nil }
    return UInt64(String(decoding: data, as: UTF8.self).dropFirst("sequence ".count))
}

/// Makes a store and closes it.
func makeStore(
    at path: String, key: SymmetricKey? = rawKey(), otherOwners: OtherOwners = .refused,
    fileSystem: any FileSystem = SystemFileSystem()
) throws(CofferError) {
    try LockedStore.create(
        path: path, key: key, passwordCost: cheap, otherOwners: otherOwners, fileSystem: fileSystem,
        buildDatabase: buildStandIn
    ).store.close()
}

/// Opens a store as the database layer does, recovery included, and closes it. Returns whether it had to recover.
@discardableResult
func openStore(
    at path: String, key: SymmetricKey? = rawKey(), otherOwners: OtherOwners = .refused,
    fileSystem: any FileSystem = SystemFileSystem()
) throws(CofferError) -> Bool {
    let store = try LockedStore.open(
        path: path, access: .readWrite, otherOwners: otherOwners, fileSystem: fileSystem)
    defer { store.close() }
    let unlocked = try store.readManifest().unlock(with: key)
    let database = try store.generation(of: unlocked).databasePath
    guard let sequence = readBinding(at: database) else { throw CofferError(.damaged, of: database) }
    guard try store.isStale(unlocked, bindingSequence: sequence) else { return false }
    _ = try store.recover(unlocked, attachmentHasRow: { _ in false }) { writeBinding($0, at: database) }
    return true
}

/// The shortest of some runs, in the processor time of this thread, so that what else the machine does is not measured.
func shortestTime(_ body: () -> Void) -> Duration {
    func now() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
    return (0..<10).map { _ in
        let start = now()
        body()
        return now() - start
    }.min() ?? .zero
}

/// The code of what `body` throws, or nil.
func code(of body: () throws -> Void) -> CofferError.Code? {
    do {
        try body()
        return nil
    } catch let error as CofferError {
        return error.code
    } catch {
        Issue.record(error)
        return nil
    }
}

/// What is done to the store at a path, in steps that a fault may come into.
protocol SteppedChange: Sendable {
    /// Makes what is there before the change.
    func prepare(_ path: String) throws
    func run(_ path: String, _ fileSystem: any FileSystem) throws
}

extension SteppedChange {
    /// How many steps it takes, and what they are.
    func steps() throws -> [String] {
        let scratch = Scratch.inMemory
        try prepare(scratch.store)
        let recording = RecordingFileSystem()
        try run(scratch.store, recording)
        return recording.stepNames
    }
}

/// Whether nothing stale is left at `path`, as the names say.
func isTidy(_ path: String) throws -> Bool {
    let current = try Manifest.read(path: path).generationName
    let names = try FileManager.default.contentsOfDirectory(atPath: path).filter { $0 != "notes.txt" }
    return try names.sorted() == ["MANIFEST", current]
        && FileManager.default.contentsOfDirectory(atPath: "\(path)/\(current)/incoming").isEmpty
}
