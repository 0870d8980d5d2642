import CofferFaults
import Foundation

@testable import Coffer
@testable import CofferVault

/// A change of a real store that a fault may come into: the tests kill it, let it fail and cut its power at each step.
///
/// It must do the same each time: fixed ids, fixed contents. To have a change proven, conform to this and add a case to
/// ``NamedChange``.
protocol StoreChange: Sendable {
    /// The store's key before the change and after each part of it; the last one stays. At each time exactly one opens it.
    var keys: [SymmetricKey?] { get }

    /// Makes what is there before the change, and closes it.
    func prepare(_ stores: TestStores) throws

    /// Makes the change, calling `acknowledge` after each part of it that has been promised, and closes.
    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws

    /// Whether files of attachments without a row may be there as long as only `acknowledged` parts were promised. The next
    /// compaction has to remove them.
    func mayLeaveFiles(acknowledged: Int) -> Bool

    /// Other stores that may be beside this one.
    var neighbours: [String] { get }

    /// Checks what the change was to do beside the store.
    func checkNeighbours(_ stores: TestStores, acknowledged: Int) throws
}

extension StoreChange {
    func mayLeaveFiles(acknowledged: Int) -> Bool { false }
    var neighbours: [String] { [] }
    func checkNeighbours(_ stores: TestStores, acknowledged: Int) throws {}

    /// The store's key after so many parts.
    func key(inState state: Int) -> SymmetricKey? { keys[min(state, keys.count - 1)] }

    /// Each key once.
    var differentKeys: [SymmetricKey?] {
        keys.reduce(into: []) { all, key in if !all.contains(where: { $0 === key }) { all.append(key) } }
    }
}

/// The changes to be proven, by a name that a process of its own can be given.
struct NamedChange: Codable, Sendable, Hashable, CustomStringConvertible {
    enum Name: String, Codable, CaseIterable {
        case saving, savingMany, savingBatches, compacting, creating, deleting, recovering, changingKey, removingKey
        /// On a file system of which no sync of all files can be trusted.
        case changingKeyFileByFile
        case replacingKey, changingSlots, restoringKeys
        case backingUp, installing, installingFirst, convertingToSealed, convertingToSQLite
    }

    var name: Name
    var isEncrypted: Bool

    /// Each, encrypted and not; the longest one only where there is time.
    static let all = Name.allCases.flatMap { name in
        let isLong = [.savingMany, .savingBatches].contains(name) && !DamageTests.isExhaustive
        let needsKey = [
            .removingKey, .changingKeyFileByFile, .replacingKey, .changingSlots, .restoringKeys, .backingUp,
            .installingFirst, .convertingToSealed, .convertingToSQLite,
        ].contains(name)
        return (isLong || needsKey ? [true] : [true, false]).map { NamedChange(name: name, isEncrypted: $0) }
    }

    var change: any StoreChange {
        let key = isEncrypted ? TestStores.key : nil
        return switch name {
        case .saving: SavingAttachments(key: key)
        case .savingMany: SavingManyAttachments(key: key)
        case .savingBatches: SavingBatches(key: key)
        case .compacting: Compacting(key: key)
        case .creating: Creating(key: key)
        case .deleting: Deleting(key: key)
        case .recovering: Recovering(key: key)
        case .changingKey, .changingKeyFileByFile: ChangingKey(keys: [key, testKey(8)])
        case .backingUp: BackingUp(key: key)
        case .installing: Installing(keys: [key, testKey(8)], replaces: true)
        case .installingFirst: Installing(keys: [key, key], replaces: false)
        case .removingKey: ChangingKey(keys: [key, nil])
        case .replacingKey: ReplacingKey(keys: [key, testKey(8)])
        case .changingSlots: ChangingSlots(key: key)
        case .convertingToSealed: Converting(key: key, from: .sqlite, to: .sealed)
        case .convertingToSQLite: Converting(key: key, from: .sealed, to: .sqlite)
        case .restoringKeys: RestoringKeys(keys: [testKey(8), key])
        }
    }

    /// Where it runs. On some no sync of all files can be trusted.
    func fileSystem(_ fault: Fault? = nil) -> RecordingFileSystem {
        let isFileByFile = [.changingKeyFileByFile, .installingFirst].contains(name)
        return RecordingFileSystem(fault, reportsFailedWrites: isFileByFile ? false : nil)
    }

    var description: String { "\(name), \(isEncrypted ? "encrypted" : "unencrypted")" }
}

/// A directory for stores, in memory where the system has that, and a journal beside it. Removed with its last reference.
final class Sandbox: Sendable {
    private let directory: URL
    var path: String { directory.appending(path: "stores").path }
    var journal: Journal { Journal(path: directory.appending(path: "journal").path) }

    init() throws {
        let memory = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
        let isThere = FileManager.default.isWritableFile(atPath: memory.path)
        directory = (isThere ? memory : .temporaryDirectory).appending(path: "coffer-faults-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    /// A copy of another one's stores.
    convenience init(copying other: Sandbox) throws {
        try self.init()
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.copyItem(atPath: other.path, toPath: path)
    }

    /// What a power cut left.
    convenience init(_ paths: [String: Data?]) throws {
        try self.init()
        try write(paths, to: path)
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    func stores(_ fileSystem: any FileSystem = SystemFileSystem()) -> TestStores {
        TestStores(sharing: path, fileSystem: fileSystem)
    }
}
