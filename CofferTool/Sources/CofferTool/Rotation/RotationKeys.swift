internal import Coffer
@_spi(Tool) internal import CofferKeys
internal import Foundation
internal import Synchronization

/// The keys of a rotation: the same for all stores, or for each its own.
struct RotationKeys: Sendable {
    /// The keys of one store.
    struct OfStore: Sendable {
        let old: SymmetricKey
        let kept: [SymmetricKey]
        private let later: LaterKey

        /// The new key. In a rehearsal a command for it may be run only now, when it is needed.
        var new: SymmetricKey {
            get throws {
                let new = try later.key()
                // It could not be told which stores were done.
                guard new != old else { throw Failure.usage("the new key equals the old one") }
                return new
            }
        }

        init(
            old: SymmetricKey, kept: [SymmetricKey], new: @escaping @Sendable () throws -> SymmetricKey
        ) throws(Failure) {
            guard !kept.contains(old) else { throw Failure.usage("the old key cannot be kept") }
            (self.old, self.kept, later) = (old, kept, LaterKey(find: new))
        }

        init(old: SymmetricKey, new: SymmetricKey, kept: [SymmetricKey]) throws(Failure) {
            guard new != old else { throw Failure.usage("the new key equals the old one") }
            try self.init(old: old, kept: kept) { new }
        }

        /// The old key, the new one, and those that are kept, in that order.
        init(_ keys: [SymmetricKey]) throws(Failure) {
            guard keys.count >= 2 else { throw Failure.usage("only coffer rotate runs this") }
            try self.init(old: keys[0], new: keys[1], kept: Array(keys[2...]))
        }

        /// The old key, and those that are kept, in that order.
        init(
            withoutNew keys: [SymmetricKey], new: @escaping @Sendable () throws -> SymmetricKey
        ) throws(Failure) {
            guard let old = keys.first else { throw Failure.usage("only coffer rotate runs this") }
            try self.init(old: old, kept: Array(keys.dropFirst()), new: new)
        }
    }

    private let find: @Sendable (_ path: String, _ uuid: UUID) throws -> OfStore
    private let findNew: @Sendable (_ path: String, _ uuid: UUID) throws -> SymmetricKey

    /// Those keys for every store.
    init(_ keys: OfStore) {
        self.init { _, _ in keys }
    }

    /// Each store's own, which `find` finds, maybe on several threads at a time.
    ///
    /// - Parameter findNew: finds the new key alone. Default: among all of the store's.
    init(
        find: @escaping @Sendable (_ path: String, _ uuid: UUID) throws -> OfStore,
        findNew: (@Sendable (_ path: String, _ uuid: UUID) throws -> SymmetricKey)? = nil
    ) {
        self.find = find
        self.findNew = findNew ?? { try find($0, $1).new }
    }

    /// The keys of a store.
    func keys(ofStoreAt path: String, _ uuid: UUID) throws -> OfStore { try find(path, uuid) }

    /// The new key of a store.
    func newKey(ofStoreAt path: String, _ uuid: UUID) throws -> SymmetricKey { try findNew(path, uuid) }
}

/// Where the keys of a rotation come from.
struct RotationKeySources: Sendable {
    let old: KeySource
    let new: KeySource
    let kept: [KeySource]
    /// Whether the command that the new key comes from is run only where it is needed, since it may make a key: in a rehearsal.
    let asksForNewLater: Bool

    var all: [KeySource] { [old, new] + kept }

    /// The keys of a store as a process that works as its owner is sent them: the new one where it is not to be asked for.
    func tagged(_ keys: RotationKeys.OfStore) throws -> [PartedRotation.Key] {
        let new = asksForNewLater ? [] : [tagged(new: try keys.new)]
        let others = zip([keys.old] + keys.kept, [old] + kept).map {
            PartedRotation.Key(key: $0, isPassword: $1.encoding == .password)
        }
        return Array(others.prefix(1)) + new + Array(others.dropFirst())
    }

    func tagged(new key: SymmetricKey) -> PartedRotation.Key {
        PartedRotation.Key(key: key, isPassword: new.encoding == .password)
    }

    /// Reads the keys: the same for every store.
    func read(_ console: Console) throws(Failure) -> RotationKeys.OfStore {
        let oldKey = try old.asked(for: .old).key(for: "Key of the stores")
        let keptKeys = try kept.map { (source) throws(Failure) in
            try source.asked(for: .kept).key(for: "Another key of the stores")
        }
        guard !asksForNewLater else {
            let source = new.asked(for: .new)
            return try RotationKeys.OfStore(old: oldKey, kept: keptKeys) { try source.reading(for: "key").key }
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
        let asksForNewLater = asksForNewLater
        return RotationKeys(
            find: { path, uuid in
                let oldKey = try old.key(path, uuid)
                let newKey = asksForNewLater ? nil : try new.key(path, uuid)
                let others = try kept.map { (key) throws(Failure) in try key.key(path, uuid) }
                do {
                    guard let newKey else {
                        return try RotationKeys.OfStore(old: oldKey, kept: others) { try new.key(path, uuid) }
                    }
                    return try RotationKeys.OfStore(old: oldKey, new: newKey, kept: others)
                } catch let failure as Failure {
                    // Not the command line's fault, and no other store's.
                    throw Failure.unusableKey(failure.message)
                }
            }, findNew: { path, uuid in try new.key(path, uuid) })
    }
}

/// A key that is looked for when it is needed for the first time, and known then.
private final class LaterKey: Sendable {
    private let find: @Sendable () throws -> SymmetricKey
    private let known = Mutex<SymmetricKey?>(nil)

    init(find: @escaping @Sendable () throws -> SymmetricKey) { self.find = find }

    func key() throws -> SymmetricKey {
        try known.withLock { key in
            if let key { return key }
            let found = try find()
            key = found
            return found
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
