internal import Coffer
@_spi(Tool) internal import CofferKeys
internal import Foundation

/// The keys of a rotation: the same for all stores, or for each its own.
struct RotationKeys: Sendable {
    /// The keys of one store.
    struct OfStore: Sendable {
        let old: SymmetricKey
        let new: SymmetricKey
        let kept: [SymmetricKey]

        init(old: SymmetricKey, new: SymmetricKey, kept: [SymmetricKey]) throws(Failure) {
            // It could not be told which stores were done.
            guard new != old else { throw Failure.usage("the new key is the old one") }
            guard !kept.contains(old) else { throw Failure.usage("the old key cannot be kept") }
            (self.old, self.new, self.kept) = (old, new, kept)
        }

        /// The old key, the new one, and those that are kept, in that order.
        init(_ keys: [SymmetricKey]) throws(Failure) {
            guard keys.count >= 2 else { throw Failure.usage("this is for coffer rotate alone") }
            try self.init(old: keys[0], new: keys[1], kept: Array(keys[2...]))
        }
    }

    private let find: @Sendable (_ path: String, _ uuid: UUID) throws -> OfStore

    /// Those keys for every store.
    init(_ keys: OfStore) { find = { _, _ in keys } }

    /// Each store's own, which `find` finds, maybe on several threads at a time.
    init(find: @escaping @Sendable (_ path: String, _ uuid: UUID) throws -> OfStore) { self.find = find }

    /// The keys of a store.
    func keys(ofStoreAt path: String, _ uuid: UUID) throws -> OfStore { try find(path, uuid) }
}

/// Where the keys of a rotation come from.
struct RotationKeySources: Sendable {
    let old: KeySource
    let new: KeySource
    let kept: [KeySource]

    var all: [KeySource] { [old, new] + kept }

    /// The keys of a store as a process that works as its owner is sent them.
    func tagged(_ keys: RotationKeys.OfStore) -> [PartedRotation.Key] {
        zip([keys.old, keys.new] + keys.kept, all).map {
            PartedRotation.Key(key: $0, isPassword: $1.encoding == .password)
        }
    }

    /// Reads the keys: the same for every store.
    func read(_ console: Console) throws(Failure) -> RotationKeys.OfStore {
        let oldKey = try old.asked(for: .old).key(for: "Key of the stores")
        let keptKeys = try kept.map { (source) throws(Failure) in
            try source.asked(for: .kept).key(for: "Another key of the stores")
        }
        let newKey = try new.newKey(for: "New key of the stores", console)
        return try RotationKeys.OfStore(old: oldKey, new: newKey, kept: keptKeys)
    }

    /// Runs the commands for each store, and reads all other sources once.
    func readForEachStore(_ console: Console) throws(Failure) -> RotationKeys {
        guard all.contains(where: \.isCommand) else {
            throw Failure.usage("--key-for-each-store needs a key from cmd:COMMAND")
        }
        let old = try EachKey(self.old, .old, "Key of the stores")
        let kept = try self.kept.map { (source) throws(Failure) in
            try EachKey(source, .kept, "Another key of the stores")
        }
        let new = try EachKey(self.new, .new, "New key of the stores", console)
        return RotationKeys { path, uuid in
            let keys = (old: try old.key(path, uuid), new: try new.key(path, uuid))
            let others = try kept.map { (key) throws(Failure) in try key.key(path, uuid) }
            do {
                return try RotationKeys.OfStore(old: keys.old, new: keys.new, kept: others)
            } catch let failure as Failure {
                // Not the command line's fault, and no other store's.
                throw Failure.unusableKey(failure.message)
            }
        }
    }
}

/// A key that is the same for all stores, or comes from a command that is asked for each.
private struct EachKey: Sendable {
    private let source: KeySource
    private let purpose: KeyRequest.Purpose
    private let same: SymmetricKey?

    /// - Parameter prompt: what somebody is asked for.
    init(
        _ source: KeySource, _ purpose: KeyRequest.Purpose, _ prompt: String, _ console: Console? = nil
    ) throws(Failure) {
        (self.source, self.purpose) = (source, purpose)
        if source.isCommand {
            same = nil
        } else if let console {
            same = try source.newKey(for: prompt, console)
        } else {
            same = try source.key(for: prompt)
        }
    }

    func key(_ path: String, _ uuid: UUID) throws(Failure) -> SymmetricKey {
        if let same { return same }
        return try source.asked(for: KeyRequest(purpose, storePath: path, storeUUID: uuid)).reading(for: "key").key
    }
}
