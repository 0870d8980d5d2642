package import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

extension LockedStore {
    /// Puts a copy of the store at `source` in the place of the one at `path`, or there where none is.
    ///
    /// The copy is made beside its place, from what belongs to the store alone, whatever the modes of the files it comes
    /// from. `source` is only read: it may be where nothing can be written, and lack empty directories. `check` is given
    /// its manifest before anything is made, and `prepare` the whole copy, locked, to open, check, change and close it.
    /// Only then is it made durable and given its name in one step, in which the store that was there loses its own. So
    /// whatever happens, a power cut included, there is the one or the other at `path`, whole.
    ///
    /// Throws `databaseNotFound` and `notAStore` (404) of what is at `source`, or for something else at `path`, `busy` (503)
    /// when another process has one of the two open, `notOwner` (403) as creating and opening at `path` do, `noSpace` (507), `ioFailed` (500),
    /// `unsupportedFormat` (501) where the file system can't exchange two names, and what `check` and `prepare` throw.
    /// What was at `path` is there as it was then.
    package static func replace(
        path: String, withCopyOf source: String, otherOwners: OtherOwners = .refused,
        fileSystem: any FileSystem = SystemFileSystem(),
        check: (Manifest) throws(CofferError) -> UnlockedManifest,
        prepare: (LockedStore, UnlockedManifest) throws(CofferError) -> Void
    ) throws(CofferError) {
        // Whoever it belongs to: it is copied by descriptors, and SQLite is given the path of the copy.
        let original = try open(path: source, access: .readOnly, otherOwners: .trusted, fileSystem: fileSystem)
        defer { original.close() }
        let manifest = try check(original.readManifest())
        let generation = try original.generation(of: manifest)

        let location = try locationForCreating(path, otherOwners, fileSystem)
        let replaced = try existingStore(at: location, otherOwners)
        defer { replaced?.close() }
        Sibling.removeLeftovers(beside: location)
        let (lock, sibling) = try Sibling.make(beside: location)
        var isUndone = true
        do {
            let copy = LockedStore(lock, at: sibling, access: .readWrite, otherOwners: otherOwners)
            try original.copy(generation, of: manifest.manifest, to: copy)
            try prepare(copy, manifest)
            try copy.synchronizeAll()
            try sibling.takePlace(of: location, replacing: replaced != nil, &isUndone)
        } catch {
            // What has the sibling's name is the copy, and not what was to be replaced.
            if isUndone { try? fileSystem.removeTree(sibling.name, in: sibling.parent) }
            lock.unlock()
            throw error
        }
        lock.unlock()
        // What was replaced has the name of a leftover now, and goes as one.
        if replaced != nil {
            try? fileSystem.removeTree(sibling.name, in: sibling.parent, first: Generation.firstNames)
        }
    }

    /// The store that is to be replaced, locked; nil when the name is free.
    private static func existingStore(
        at location: StoreLocation, _ otherOwners: OtherOwners
    ) throws(CofferError) -> LockedStore? {
        guard try location.status() != nil else { return nil }
        return try open(
            path: location.path, access: .readWrite, otherOwners: otherOwners, fileSystem: location.fileSystem)
    }

    /// Copies what belongs to the store: MANIFEST, the database with its log, and contents.
    private func copy(_ generation: Generation, of manifest: Manifest, to copy: LockedStore) throws(CofferError) {
        let store = copy.directory
        try fileSystem.copyFile(Manifest.fileName, from: directory, to: store)
        try fileSystem.makeDirectory(manifest.generationName, in: store)
        let target = try fileSystem.openDirectory(manifest.generationName, in: store)
        for name in [Generation.databaseName, Generation.databaseName + "-wal"]
        where try fileSystem.status(of: name, in: generation.directory) != nil {
            try fileSystem.copyFile(name, from: generation.directory, to: target)
        }
        for name in [Generation.attachmentsName, Generation.incomingName] {
            try fileSystem.makeDirectory(name, in: target)
        }
        guard try fileSystem.status(of: Generation.attachmentsName, in: generation.directory) != nil else { return }
        let contents = try fileSystem.openDirectory(Generation.attachmentsName, in: generation.directory)
        let targetContents = try fileSystem.openDirectory(Generation.attachmentsName, in: target)
        for name in try fileSystem.textNames(in: contents)
        where AttachmentNaming.isWellFormed(name, in: manifest.attachmentNames) {
            let file = try fileSystem.copyFile(name, from: contents, to: targetContents)
            if manifest.attachmentFormat == .plain { try fileSystem.setPermissions(0o400, of: file) }
        }
    }

    /// Makes everything in the store durable, from the inside out.
    func synchronizeAll() throws(CofferError) {
        let synchronizesAtOnce = try fileSystem.reportsFailedWrites(directory)
        if synchronizesAtOnce { try fileSystem.synchronizeFileSystem(of: directory) }
        try fileSystem.synchronizeTree(directory, synchronizingFiles: !synchronizesAtOnce)
    }
}

extension StoreLocation {
    /// Gives what is here the name of `destination`, durably. What was there is here then.
    ///
    /// After an error, `isUndone` says whether both are durably where they were.
    fileprivate func takePlace(
        of destination: StoreLocation, replacing: Bool, _ isUndone: inout Bool
    ) throws(CofferError) {
        let move = { () throws(CofferError) in
            if replacing {
                try fileSystem.exchange(name, in: parent, with: destination.name, in: destination.parent)
            } else {
                try fileSystem.renameWithoutReplacing(name, in: parent, to: destination.name, in: destination.parent)
            }
        }
        do throws(CofferError) {
            try move()
        } catch {
            guard error.systemErrorNumber == EEXIST else { throw error }
            throw CofferError(.busy, of: destination.path, "somebody makes a store there at this moment")
        }
        do throws(CofferError) {
            try fileSystem.synchronize(parent)
        } catch {
            // Whether the name would stay is open, so what it meant before has to come back, whole and durably.
            isUndone = false
            if replacing {
                try move()
            } else {
                try fileSystem.renameWithoutReplacing(destination.name, in: destination.parent, to: name, in: parent)
            }
            try fileSystem.synchronize(parent)
            isUndone = true
            throw error
        }
    }
}

extension FileSystem {
    /// Copies a file's content into a new file that only its owner can open, and returns that.
    @discardableResult
    fileprivate func copyFile(
        _ name: String, from directory: Directory, to newDirectory: Directory
    ) throws(CofferError) -> File {
        let source = try openFile(name, in: directory)
        guard try status(of: source).kind == .file else {
            throw CofferError(.damaged, of: source.path, "it is not a file")
        }
        let target = try createFile(name, in: newDirectory)
        let buffer = RawBuffer(byteCount: 1 << 20)
        var offset = 0
        while true {
            let count = try unsafe read(into: buffer[0..<buffer.byteCount], from: source, at: offset)
            guard count > 0 else { return target }
            try unsafe write(UnsafeRawBufferPointer(buffer[0..<count]).bytes, to: target)
            offset += count
        }
    }

    /// Makes the entries of a directory and of all below it durable, and their files where that is asked for.
    fileprivate func synchronizeTree(_ directory: Directory, synchronizingFiles: Bool) throws(CofferError) {
        for name in try names(in: directory).sorted() {
            switch try status(of: name, in: directory)?.kind {
            case .directory:
                try synchronizeTree(openDirectory(name, in: directory), synchronizingFiles: synchronizingFiles)
            case .file where synchronizingFiles: try synchronize(openFile(name, in: directory))
            default: break
            }
        }
        try synchronize(directory)
    }
}
