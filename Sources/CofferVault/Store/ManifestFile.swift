package import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

extension Manifest {
    /// Reads the MANIFEST of the store at `path`, without a lock and without a key: what a store says about itself.
    ///
    /// Since MANIFEST is only ever replaced whole, this is the old or the new one while another process writes.
    ///
    /// Throws `databaseNotFound` or `notAStore` (404), and as ``init(bytes:)``.
    package static func read(
        path: String, fileSystem: any FileSystem = SystemFileSystem()
    ) throws(CofferError) -> Manifest {
        let location = try StoreLocation(path: path, fileSystem: fileSystem)
        return try read(in: location.openDirectory(), fileSystem)
    }

    /// When the directory of the generation that this names was made, in seconds since 1970: with its data key, unless the store
    /// was copied. Nil where the directory is not there, or the file system doesn't say.
    package func generationBirthTime(
        inStoreAt path: String, fileSystem: any FileSystem = SystemFileSystem()
    ) -> Int64? {
        guard let store = try? StoreLocation(path: path, fileSystem: fileSystem).openDirectory() else { return nil }
        return unsafe generationName.withCString { unsafe Platform.birthTime(of: $0, in: store.descriptor) }
    }

    /// Whether there is a directory with a MANIFEST at `path`, whatever it says.
    package static func exists(inStoreAt path: String, fileSystem: any FileSystem = SystemFileSystem()) -> Bool {
        let directory = try? StoreLocation(path: path, fileSystem: fileSystem).openDirectory()
        return directory.flatMap { try? owner(in: $0, fileSystem) } != nil
    }

    static func read(in store: Directory, _ fileSystem: any FileSystem) throws(CofferError) -> Manifest {
        let path = store.path(of: fileName)
        let bytes: [UInt8]
        do throws(CofferError) {
            let file = try fileSystem.openFile(fileName, in: store)
            guard try fileSystem.status(of: file).kind == .file else {
                throw CofferError(.damaged, of: path, "it is not a file")
            }
            // One byte more than there may be, to notice a longer file.
            bytes = try fileSystem.read(byteCount + 1, from: file, at: 0)
        } catch {
            switch error.systemErrorNumber {
            case ENOENT: throw CofferError(.notAStore, of: store.path, "it has no \(fileName)")
            // A symbolic link, or a socket.
            case ELOOP, ENXIO: throw CofferError(.damaged, of: path, "it is not a file")
            case EACCES: throw CofferError(.notOwner, of: path, "this user may not read it")
            default: throw error
            }
        }
        do {
            return try Manifest(bytes: bytes)
        } catch {
            throw error.about(path)
        }
    }

    /// The owner of MANIFEST, who is the owner of the store. Throws `notAStore` (404) when it is missing.
    static func owner(in store: Directory, _ fileSystem: any FileSystem) throws(CofferError) -> FileOwner {
        do throws(CofferError) {
            guard let status = try fileSystem.status(of: fileName, in: store) else {
                throw CofferError(.notAStore, of: store.path, "it has no \(fileName)")
            }
            return status.owner
        } catch {
            guard error.systemErrorNumber == EACCES else { throw error }
            throw CofferError(.notOwner, of: store.path, "this user may not enter it", cause: error.cause)
        }
    }
}

extension Manifest {
    /// The owner of a store that may have lost its MANIFEST: then the owner of its directory.
    static func ownerIfLost(in store: Directory, _ fileSystem: any FileSystem) throws(CofferError) -> FileOwner {
        do throws(CofferError) {
            return try owner(in: store, fileSystem)
        } catch  where error.code == .notAStore {
            return try fileSystem.status(of: store).owner
        }
    }
}

extension UnlockedManifest {
    /// The name of MANIFEST while it is written.
    static let temporaryFileName = "MANIFEST.new"

    /// Makes this the store's MANIFEST, in one step and durably: the only way in which a store changes what it is.
    ///
    /// Up to the rename an error leaves the old manifest; after it, whether the old or the new one outlives a power cut is
    /// open, and the caller must keep what both of them mean.
    func replaceManifest(of store: Directory, _ fileSystem: any FileSystem) throws(CofferError) {
        try writeTemporaryManifest(in: store, fileSystem, owner: Manifest.owner(in: store, fileSystem))
        try takeItsPlace(in: store, fileSystem)
    }

    /// The same for a store that is open: an error says whether the old manifest is certain to stay.
    ///
    /// Throws what went wrong before the rename, and then nothing has changed and nothing is left; from the rename on,
    /// `reopenRequired` (500): which of the two manifests outlives a power cut is open, and only the next open decides it.
    ///
    /// - Parameter owner: the owner of the store. Default: the owner of the old manifest, which must be there.
    func commitManifest(
        of store: Directory, _ fileSystem: any FileSystem, owner: FileOwner? = nil
    ) throws(CofferError) {
        do throws(CofferError) {
            let owner = if let owner { owner } else { try Manifest.owner(in: store, fileSystem) }
            try writeTemporaryManifest(in: store, fileSystem, owner: owner)
        } catch {
            try? fileSystem.removeTree(Self.temporaryFileName, in: store)
            throw error
        }
        do throws(CofferError) {
            try takeItsPlace(in: store, fileSystem)
        } catch {
            throw CofferError(
                .reopenRequired, of: store.path, "whether its MANIFEST was replaced is unknown", cause: error)
        }
    }

    private func writeTemporaryManifest(
        in store: Directory, _ fileSystem: any FileSystem, owner: FileOwner
    ) throws(CofferError) {
        // Left by a process that was killed: never looked at, so that it can go before anything is written.
        do throws(CofferError) {
            try fileSystem.removeTree(Self.temporaryFileName, in: store)
        } catch  where error.isRefusal {
            throw error.askingForRemoval(of: store.path(of: Self.temporaryFileName), "blocks a new MANIFEST")
        }
        let file = try fileSystem.createFile(Self.temporaryFileName, in: store)
        try fileSystem.hand(file, to: owner)
        let bytes = try manifest.bytes
        try unsafe fileSystem.write(bytes.span.bytes, to: file)
        try fileSystem.synchronize(file)
    }

    private func takeItsPlace(in store: Directory, _ fileSystem: any FileSystem) throws(CofferError) {
        try fileSystem.rename(Self.temporaryFileName, in: store, to: Manifest.fileName, in: store)
        try fileSystem.synchronize(store)
    }
}

// MANIFEST alone can be kept elsewhere, and put back when it was lost, or when keys that it had are needed again.

extension LockedStore {
    /// Sees whether `backup` may become this store's MANIFEST, as far as that shows without the database.
    ///
    /// It may in the place of one of the same store and generation, and where there isn't one that can be read, if the
    /// store has the generation and no later one: that one would count if MANIFEST were there.
    ///
    /// - Returns: the sequence of the MANIFEST that is there; nil if none can be read.
    /// - Throws: `conflict` (409) for another store's or generation's; `notAStore` (404) where there is neither a MANIFEST
    ///   nor the generation.
    package func checkMayRestore(_ backup: UnlockedManifest) throws(CofferError) -> UInt64? {
        try checkOpen()
        let backup = backup.manifest
        let hasGeneration = try fileSystem.status(of: backup.generationName, in: directory) != nil
        guard let current = try readableManifest(hasGeneration: hasGeneration) else {
            let later = try fileSystem.textNames(in: directory).filter {
                Generation.isGenerationName($0) && $0.prefix(17) > backup.generationName.prefix(17)
            }
            guard hasGeneration, later.isEmpty else { throw refusal("its generation is not the store's") }
            return nil
        }
        guard current.storeUUID == backup.storeUUID else { throw refusal("it belongs to another store") }
        guard current.generation == backup.generation, current.generationTag == backup.generationTag else {
            throw refusal("its generation is \(backup.generation), and the store's is \(current.generation)")
        }
        return current.sequence
    }

    /// Makes `backup` the store's MANIFEST, with a sequence above `sequence`.
    ///
    /// The caller has proven that the database beside it is the backup's. The binding row keeps its sequence until the
    /// next opening for writing, which recovers.
    ///
    /// - Throws: as ``UnlockedManifest/commitManifest(of:_:owner:)``.
    package func restore(_ backup: UnlockedManifest, above sequence: UInt64) throws(CofferError) -> UnlockedManifest {
        try checkOpen()
        precondition(access == .restoring, "the store was not opened to restore a MANIFEST")
        let next = try backup.advanced(above: sequence)
        try next.commitManifest(of: directory, fileSystem, owner: try Manifest.ownerIfLost(in: directory, fileSystem))
        return next
    }

    private func readableManifest(hasGeneration: Bool) throws(CofferError) -> Manifest? {
        do throws(CofferError) {
            return try Manifest.read(in: directory, fileSystem)
        } catch {
            switch error.code {
            case .damaged: return nil
            case .notAStore where hasGeneration: return nil
            default: throw error
            }
        }
    }

    private func refusal(_ reason: String) -> CofferError {
        CofferError(.conflict, of: path, "the backup can't be restored: \(reason)")
    }
}
