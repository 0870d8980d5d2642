import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

/// A change of a store's keys that a fault may come into. Its steps up to the rename can be taken back.
enum SlotChange: String, Codable, SteppedChange, CaseIterable {
    case adding, removing, removingTheOneInUse, replacing

    /// Those that open the store before, by their bytes; the first is the one that it is opened by.
    var before: [UInt8] {
        switch self {
        case .adding, .replacing: [1]
        case .removing, .removingTheOneInUse: [1, 2]
        }
    }

    var after: [UInt8] {
        switch self {
        case .adding: [1, 2]
        case .removing: [1]
        case .removingTheOneInUse, .replacing: [2]
        }
    }

    func prepare(_ path: String) throws {
        try makeStore(at: path, key: rawKey(1))
        for byte in before.dropFirst() { try changeSlots(at: path) { try $0.adding($0.slot(for: byte)) } }
    }

    func run(_ path: String, _ fileSystem: any FileSystem) throws {
        try changeSlots(at: path, fileSystem, next)
    }

    private func next(_ old: UnlockedManifest) throws -> UnlockedManifest {
        let slots = old.manifest.slots
        return switch self {
        case .adding: try old.adding(old.slot(for: 2))
        case .removing: try old.removing(slots[1].id)
        case .removingTheOneInUse: try old.removing(slots[0].id)
        case .replacing: try old.replacing(slots[0].id, with: old.slot(for: 2), openedBy: rawKey(2))
        }
    }

    /// Those of three keys that open the store at `path`. Every other one is a 401.
    static func keysOpening(_ path: String) -> [UInt8] {
        [1, 2, 3].filter { byte in
            let code = code { _ = try Manifest.read(path: path).unlock(with: rawKey(byte)) }
            #expect(code == nil || code == .wrongKey)
            return code == nil
        }
    }
}

extension UnlockedManifest {
    fileprivate func slot(for byte: UInt8) throws -> KeySlot {
        try newSlot(openedBy: rawKey(byte), cost: cheap)
    }
}

/// Opens the store by the key 1, changes its slots, and brings the binding row up to date.
func changeSlots(
    at path: String, _ fileSystem: any FileSystem = SystemFileSystem(),
    _ change: (UnlockedManifest) throws -> UnlockedManifest
) throws {
    let store = try LockedStore.open(path: path, access: .readWrite, fileSystem: fileSystem)
    defer { store.close() }
    let next = try change(store.readManifest().unlock(with: rawKey(1)))
    try store.replaceSlots(by: next)
    writeBinding(next.manifest.sequence, at: try store.generation(of: next).databasePath)
}

/// What a fault left at `path`: whether the keys are the new ones. Recovers it if need be, and records an issue when they
/// are neither the old nor the new ones, or the store isn't at rest afterwards.
private func hasNewKeys(_ path: String, _ change: SlotChange, after fault: Fault) -> Bool {
    let keys = SlotChange.keysOpening(path)
    #expect(keys == change.before || keys == change.after, "\(fault)")
    let key = rawKey(keys.first ?? 1)
    #expect(code { try openStore(at: path, key: key) } == nil, "\(fault)")
    #expect(SlotChange.keysOpening(path) == keys, "\(fault)")
    let before = snapshotOfTree(path)
    #expect((try? openStore(at: path, key: key)) == false, "\(fault)")
    #expect(snapshotOfTree(path) == before, "\(fault)")
    #expect((try? isTidy(path)) == true, "\(fault)")
    return keys == change.after
}

@Suite("A change of keys", .serialized)
struct SlotChangeFaultTests {
    @Test(
        "A change of keys takes exactly these steps, in this order, whatever it changes", arguments: SlotChange.allCases
    )
    func steps(change: SlotChange) throws {
        #expect(
            try change.steps() == [
                "create MANIFEST.new", "write 1024 bytes", "fsync file MANIFEST.new", "rename MANIFEST.new",
                "fsync directory people.coffer",
            ])
    }

    @Test("A change of keys killed at any step leaves the old keys or the new ones", arguments: SlotChange.allCases)
    func killed(change: SlotChange) async throws {
        let steps = try change.steps()
        let isNew = try await KilledChange.slots(change).killed(at: steps) { scratch, fault, _ in
            hasNewKeys(scratch.store, change, after: fault)
        }
        // In one step, the rename.
        #expect(isNew == [false, false, false, false, false, true, true])
        print("\(change): killed \(isNew.count) times at \(steps.count) steps")
    }

    @Test(
        "A change of keys and the recovery after it, killed at any two steps, are finished by the next",
        arguments: SlotChange.allCases)
    func recovery(change: SlotChange) throws {
        let count = try change.steps().count
        for first in 1...count + 1 {
            for second in 1...20 {
                let scratch = Scratch.inMemory
                try change.prepare(scratch.store)
                if first <= count {
                    #expect(throws: CofferError.self) {
                        try change.run(scratch.store, RecordingFileSystem(.stopBefore(first)))
                    }
                } else {
                    try change.run(scratch.store, SystemFileSystem())
                }
                let keys = SlotChange.keysOpening(scratch.store)
                // May take fewer steps than there are; then it finishes.
                _ = try? openStore(
                    at: scratch.store, key: rawKey(keys[0]), fileSystem: RecordingFileSystem(.stopBefore(second)))
                #expect(SlotChange.keysOpening(scratch.store) == keys)
                _ = hasNewKeys(scratch.store, change, after: .stopBefore(second))
            }
        }
    }

    @Test(
        "A change of keys that fails before the rename has changed nothing; from there on a new open decides",
        arguments: SlotChange.allCases)
    func failing(change: SlotChange) throws {
        let steps = try change.steps()
        let rename = try #require(steps.firstIndex { $0.hasPrefix("rename ") })
        for (index, step) in steps.enumerated() {
            for (number, expected) in [(EIO, CofferError.Code.ioFailed), (ENOSPC, .noSpace)] {
                for fault in [Fault.fail(index + 1, number), .failAfter(index + 1, number)] {
                    let scratch = Scratch.inMemory
                    try change.prepare(scratch.store)
                    let code = code { try change.run(scratch.store, RecordingFileSystem(fault)) }
                    if index < rename {
                        #expect(code == expected, "\(step)")
                        #expect(try isTidy(scratch.store), "\(step)")
                        #expect(!hasNewKeys(scratch.store, change, after: fault), "\(step)")
                    } else {
                        #expect(code == .reopenRequired, "\(step)")
                        let isNew = hasNewKeys(scratch.store, change, after: fault)
                        #expect(isNew == (fault != .fail(rename + 1, number)), "\(step)")
                    }
                }
            }
        }
    }

    @Test("A change of keys on a full disk has changed nothing", arguments: SlotChange.allCases)
    func fullDisk(change: SlotChange) throws {
        for number in 1...2 {
            let scratch = Scratch.inMemory
            try change.prepare(scratch.store)
            let fault = Fault.fullFrom(number)
            #expect(code { try change.run(scratch.store, RecordingFileSystem(fault)) } == .noSpace)
            #expect(try isTidy(scratch.store))
            #expect(!hasNewKeys(scratch.store, change, after: fault))
        }
    }
}
