package import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// What a store that is being made needs of its database: a file at `databasePath`, and in it the binding row.
package struct NewStore: Sendable {
    /// An empty file that only its owner can open. It is in a place that it will leave: nothing may stay open there.
    package var databasePath: String { builder.databasePath }

    /// Takes the contents of attachments, if the store should have some from the beginning.
    package let builder: GenerationBuilder

    /// What the binding row says.
    package var storeUUID: StoreUUID { manifest.storeUUID }
    package var generation: UInt64 { manifest.generation }
    package var sequence: UInt64 { manifest.sequence }

    /// What MANIFEST will say.
    package var manifest: Manifest { builder.manifest.manifest }

    /// The same with the keys that it leads to.
    package var unlocked: UnlockedManifest { builder.manifest }
}

extension LockedStore {
    /// Makes a store at `path`, opened by `key`; without one it is not encrypted, and with one its database is kept as
    /// `encryptedProfile` says.
    ///
    /// The whole store is built beside its place, under a name that only this process knows, made durable, and then given
    /// its name in one step. So whatever happens, a power cut included, there is the whole store at `path` or nothing,
    /// and what a killed process leaves beside it is removed by the next creation or deletion in the same directory.
    /// `buildDatabase` makes the database, closed again on return with everything in its one file: no WAL, no journal.
    ///
    /// Returns the store, locked for writing, and its manifest. Costs one derivation.
    ///
    /// Throws `databaseExists` (412) when there is a store, `notAStore` (404) when there is something else, which is left
    /// alone, `notOwner` (403) for root in a directory of another user unless these are trusted, `invalidKey` (400) for an empty password, `invalidArgument` (400) for a cost out of bounds or keyed names
    /// without a key, `unsupportedFormat` (501) on a file system that can't do it, `ioFailed` (500) when the directory it
    /// should be in is missing, and what `buildDatabase` throws. Nothing is left behind then.
    package static func create(
        path: String,
        key: SymmetricKey?,
        passwordCost: PasswordCost = .standard,
        encryptedProfile: Manifest.DatabaseProfile = .portableSQLCipher,
        attachmentNames: Manifest.AttachmentNames = .sha1,
        otherOwners: OtherOwners = .refused,
        fileSystem: any FileSystem = SystemFileSystem(),
        buildDatabase: (NewStore) throws(CofferError) -> Void
    ) throws(CofferError) -> (store: LockedStore, manifest: UnlockedManifest) {
        let location = try locationForCreating(path, otherOwners, fileSystem)
        try requireFree(location)
        let unlocked = try UnlockedManifest.new(
            key: key, cost: passwordCost, encryptedProfile: encryptedProfile, attachmentNames: attachmentNames,
            at: UInt64(max(0, time(nil))))

        Sibling.removeLeftovers(beside: location)
        let (lock, sibling) = try Sibling.make(beside: location)
        var place = sibling
        do {
            let store = LockedStore(lock, at: sibling, access: .readWrite, otherOwners: otherOwners)
            try unlocked.build(in: store, buildDatabase)
            try place.move(to: location)
            try fileSystem.synchronize(location.parent)
        } catch {
            try? place.abandon(movingTo: sibling)
            lock.unlock()
            throw error
        }
        return (LockedStore(lock, at: location, access: .readWrite, otherOwners: otherOwners), unlocked)
    }

    /// A place where a store may be made.
    static func locationForCreating(
        _ path: String, _ otherOwners: OtherOwners, _ fileSystem: any FileSystem
    ) throws(CofferError) -> StoreLocation {
        let location: StoreLocation
        do {
            location = try StoreLocation(path: path, fileSystem: fileSystem)
        } catch {
            guard error.code == .databaseNotFound else { throw error }
            throw CofferError(.ioFailed, of: path, "the directory that should hold it is missing", cause: error.cause)
        }
        try refuseNetwork(location.parent, fileSystem)
        // Its owner can put something else in the place of what is being made.
        try otherOwners.admit(fileSystem.status(of: location.parent).owner, of: location.parent.path)
        return location
    }

    /// Throws when the name is taken, and says by what.
    static func requireFree(_ location: StoreLocation) throws(CofferError) {
        guard try location.status() != nil else { return }
        _ = try Manifest.owner(in: location.openDirectory(), location.fileSystem)
        throw CofferError(.databaseExists, of: location.path)
    }
}

extension StoreLocation {
    /// Renames what is here to `destination`, which must be free, and makes this the new place.
    mutating func move(to destination: StoreLocation) throws(CofferError) {
        do {
            try fileSystem.renameWithoutReplacing(name, in: parent, to: destination.name, in: destination.parent)
        } catch {
            guard error.systemErrorNumber == EEXIST else { throw error }
            // Someone was faster. A store of theirs is complete, so its MANIFEST tells it from anything else.
            _ = try Manifest.owner(in: destination.openDirectory(), fileSystem)
            throw CofferError(.databaseExists, of: destination.path)
        }
        self = destination
    }
}

extension StoreLocation {
    /// Removes what is here, after it has lost its name for good: what has a name must stay whole.
    mutating func abandon(movingTo sibling: StoreLocation) throws(CofferError) {
        if name != sibling.name {
            try move(to: sibling)
            try fileSystem.synchronize(parent)
        }
        try fileSystem.removeTree(name, in: parent)
    }
}

extension UnlockedManifest {
    /// Fills an empty directory with a whole store, and makes it durable from the inside out: each entry is durable
    /// before anything names it.
    fileprivate func build(
        in store: LockedStore, _ buildDatabase: (NewStore) throws(CofferError) -> Void
    ) throws(CofferError) {
        let fileSystem = store.fileSystem
        let builder = try GenerationBuilder(store, self, owner: fileSystem.status(of: store.directory).owner)
        do throws(CofferError) {
            try buildDatabase(NewStore(builder: builder))
            try builder.seal()
        } catch {
            builder.waitForSyncs()
            throw error
        }

        let file = try fileSystem.createFile(Manifest.fileName, in: store.directory)
        let bytes = try manifest.bytes
        try unsafe fileSystem.write(bytes.span.bytes, to: file)
        try fileSystem.synchronize(file)
        try fileSystem.synchronize(store.directory)
    }
}
