import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

/// A change of a store on disk that a fault may come into.
enum Change: String, Codable, SteppedChange, CaseIterable {
    case creating, creatingUnencrypted, deleting, recovering

    var key: SymmetricKey? { self == .creatingUnencrypted ? nil : rawKey() }

    /// What is there before the change.
    func prepare(_ path: String) throws {
        switch self {
        case .creating, .creatingUnencrypted: break
        case .deleting: try makeStore(at: path)
        case .recovering: try makeStaleStore(at: path)
        }
    }

    func run(_ path: String, _ fileSystem: any FileSystem) throws(CofferError) {
        switch self {
        case .creating, .creatingUnencrypted: try makeStore(at: path, key: key, fileSystem: fileSystem)
        case .deleting:
            let store = try LockedStore.open(path: path, access: .readWrite, fileSystem: fileSystem)
            defer { store.close() }
            try store.delete()
        case .recovering: try openStore(at: path, fileSystem: fileSystem)
        }
    }
}

/// Whether there is a whole store at `path`, which its key opens and no other, or else nothing. Recovers it if need be, and
/// records an issue when it is neither, or when it is not at rest afterwards.
func isWholeOrElseFree(_ path: String, key: SymmetricKey?, after fault: Fault) -> Bool {
    if code(of: { _ = try StoreIdentity(path: path) }) == .databaseNotFound { return false }
    let wrongKey = key == nil ? CofferError.Code.notEncrypted : .wrongKey
    #expect(code { try openStore(at: path, key: rawKey(99)) } == wrongKey, "\(fault)")
    #expect(code { try openStore(at: path, key: key) } == nil, "\(fault)")
    let before = snapshotOfTree(path)
    #expect((try? openStore(at: path, key: key)) == false, "\(fault)")
    #expect(snapshotOfTree(path) == before, "\(fault)")
    #expect((try? isTidy(path)) == true, "\(fault)")
    return true
}

/// A real process is killed at each step of what the vault does to the disk; what it leaves is then looked at.
@Suite("A process killed at any step", .serialized)
struct CrashTests {
    @Test(
        "A process killed at any step leaves a whole store or a free name, and the next change removes what it left",
        arguments: Change.allCases)
    func killed(change: Change) async throws {
        let steps = try change.steps()
        let whole = try await KilledChange.store(change).killed(at: steps) { scratch, fault, _ in
            let isWhole = isWholeOrElseFree(scratch.store, key: change.key, after: fault)
            try makeStore(at: scratch.path + "/other.coffer")
            #expect(scratch.names == ["other.coffer"] + (isWhole ? ["people.coffer"] : []), "\(fault)")
            return isWhole
        }
        // In one step and not back again: free before it has its name, whole after it, the other way round to delete.
        let turns = zip(whole, whole.dropFirst()).filter { $0 != $1 }.count
        #expect(turns == (change == .recovering ? 0 : 1))
        #expect(whole.first == (change == .deleting || change == .recovering))
        print(
            "\(change): killed \(whole.count) times at \(steps.count) steps, \(whole.filter(\.self).count) left a store"
        )
    }

    @Test("A process killed at any step of deleting leaves what the next deletion removes")
    func deletedByTheNext() async throws {
        let steps = try Change.deleting.steps()
        let scratch = Scratch.inMemory
        for number in 3...steps.count {
            try makeStore(at: scratch.store)
            // Nothing between creates, so every leftover is still there.
            await KilledChange.store(.deleting).run(scratch.store, killedAt: .killBefore(number))
            #expect(scratch.names.count == 1)
            let other = Scratch.inMemory
            try makeStore(at: other.store)
            try FileManager.default.moveItem(atPath: other.store, toPath: scratch.store)
            try LockedStore.open(path: scratch.store, access: .readWrite).delete()
            #expect(scratch.names == [])
        }
    }
}

/// The same without a process for each point, so that every pair of points can be tried.
@Suite("Recovery cut short twice")
struct DoubleCrashTests {
    @Test("Recovery cut short twice at any two steps is finished by the next")
    func pairs() throws {
        let count = try Change.recovering.steps().count
        var pairs = 0
        for first in 1...count {
            for second in 1...count {
                let scratch = Scratch.inMemory
                try makeStaleStore(at: scratch.store)
                #expect(throws: CofferError.self) {
                    try openStore(at: scratch.store, fileSystem: RecordingFileSystem(.stopBefore(first)))
                }
                // What was left may take fewer steps than there are; then this one finishes.
                _ = try? openStore(at: scratch.store, fileSystem: RecordingFileSystem(.stopBefore(second)))
                #expect(isWholeOrElseFree(scratch.store, key: rawKey(), after: .stopBefore(second)))
                pairs += 1
            }
        }
        print("recovery: cut short at \(pairs) pairs of steps")
    }
}
