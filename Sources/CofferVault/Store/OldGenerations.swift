package import CofferSealing
internal import Synchronization

// Generations that are not the store's any more, or never were, and are still in its directory.

/// One of them.
package struct LeftGeneration: Sendable {
    /// Its directory.
    package let path: String
    /// How long the files in it are together, as far as they can be looked at.
    package let byteCount: Int
    /// Whether something in it may be read without a key. What nothing is known of may be.
    package let mayBeReadable: Bool
    /// Why it couldn't be removed; nil if nobody has tried, since somebody still reads there.
    package let failure: CofferError?
}

extension Manifest {
    /// Whether there is another generation in the store's directory than the one that this names. Takes no lock: it may be one
    /// that is being made.
    package func hasOtherGenerations(
        inStoreAt path: String, fileSystem: any FileSystem
    ) throws(CofferError) -> Bool {
        let directory = try StoreLocation(path: path, fileSystem: fileSystem).openDirectory()
        return try !otherGenerationNames(in: directory, fileSystem).isEmpty
    }

    fileprivate func otherGenerationNames(
        in directory: Directory, _ fileSystem: any FileSystem
    ) throws(CofferError) -> [String] {
        try fileSystem.textNames(in: directory).filter { Generation.isGenerationName($0) && $0 != generationName }
    }
}

extension LockedStore {
    /// The generations that are there beside the one that `manifest` names.
    package func oldGenerations(beside manifest: Manifest) throws(CofferError) -> [LeftGeneration] {
        try checkOpen()
        var generations: [LeftGeneration] = []
        for name in try otherGenerationNames(beside: manifest).sorted()
        where notes.withLock({ $0[name]?.isNext }) != true {
            guard let mayBeReadable = mayBeReadable(name) else { continue }
            generations.append(
                LeftGeneration(
                    path: directory.path(of: name), byteCount: byteCount(of: name), mayBeReadable: mayBeReadable,
                    failure: notes.withLock { $0[name]?.failure }))
        }
        return generations
    }

    func otherGenerationNames(beside manifest: Manifest) throws(CofferError) -> [String] {
        try manifest.otherGenerationNames(in: directory, fileSystem)
    }

    /// Removes a generation that is not the store's, its database first, or what else has the name of one.
    ///
    /// Where something is left of one that was encrypted, an empty file in it says so: without its database nothing else
    /// would. It is there before the database goes, and goes last: whoever is killed in between leaves it.
    ///
    /// - Parameter directory: an opening of the store's directory.
    /// - Throws: as ``FileSystem/removeTree(_:in:first:)``.
    func removeGeneration(_ name: String, through directory: Directory) throws(CofferError) {
        let wasEncrypted = protection(of: name) == .encrypted
        if wasEncrypted { markEncrypted(name) }
        do throws(CofferError) {
            try fileSystem.removeTree(
                FileName(name), in: directory, first: Generation.firstNames,
                last: FileName(Generation.encryptedMarkName))
            notes.withLock { $0[name] = nil }
        } catch {
            notes.withLock { $0[name, default: Note()].failure = error }
            // A full disk may have had no room for it.
            if wasEncrypted, protectionByFiles(of: name) != .encrypted { markEncrypted(name) }
            throw error
        }
    }

    private func markEncrypted(_ name: String) {
        guard let generation = try? fileSystem.openDirectory(name, in: directory) else { return }
        _ = try? fileSystem.createFile(Generation.encryptedMarkName, in: generation)
    }

    /// Refuses to go on with an encrypted store whose content may also be there for everybody to read.
    func refuseReadableGenerations(beside manifest: Manifest) throws(CofferError) {
        guard manifest.isEncrypted else { return }
        for generation in try oldGenerations(beside: manifest) where generation.mayBeReadable {
            let failure = generation.failure ?? CofferError(.ioFailed, of: generation.path)
            throw failure.askingForRemoval(
                of: generation.path, "is an old generation that may be readable without a key")
        }
    }

    // MARK: What is readable

    /// What is known of a generation that is not the store's without looking at it.
    struct Note {
        /// Of one that was the store's.
        var isEncrypted: Bool?
        var failure: CofferError?
        /// Of one that is being built to be the store's, or has become it.
        var isNext = false
    }

    private enum Protection {
        case encrypted, none, unknown
    }

    private func protection(of name: String) -> Protection {
        // Whoever still reads in it would lose SQLite's locks to a second opening of the database file that is closed.
        if let isEncrypted = notes.withLock({ $0[name]?.isEncrypted }) { return isEncrypted ? .encrypted : .none }
        return protectionByFiles(of: name)
    }

    /// What the database of a generation says: an encrypted one begins with a random salt. Where it is gone, the mark.
    private func protectionByFiles(of name: String) -> Protection {
        guard let generation = try? fileSystem.openDirectory(name, in: directory) else { return .unknown }
        if let file = try? fileSystem.openFile(Generation.databaseName, in: generation),
            let head = try? fileSystem.read(Self.sqliteMagic.count, from: file, at: 0),
            head.count == Self.sqliteMagic.count, head.contains(where: { $0 != 0 })
        {
            return head == Self.sqliteMagic ? .none : .encrypted
        }
        let mark = try? fileSystem.status(of: Generation.encryptedMarkName, in: generation)
        return mark == nil ? .unknown : .encrypted
    }

    private static let sqliteMagic = Array("SQLite format 3\0".utf8)

    /// Nil where there is nothing of that name by now.
    private func mayBeReadable(_ name: String) -> Bool? {
        do throws(CofferError) {
            guard let status = try fileSystem.status(of: name, in: directory) else { return nil }
            guard protection(of: name) != .encrypted else { return false }
            guard status.kind == .directory else { return status.kind == .file && status.byteCount > 0 }
            return try holdsContent(fileSystem.openDirectory(name, in: directory))
        } catch {
            return error.isMissing ? nil : true
        }
    }

    private func byteCount(of name: String) -> Int {
        guard let directory = try? fileSystem.openDirectory(name, in: directory) else {
            return (try? fileSystem.status(of: name, in: directory))?.byteCount ?? 0
        }
        var byteCount = 0
        guard var walk = try? TreeWalk(below: directory, fileSystem, depthLimit: 100) else { return 0 }
        while let step = try? walk.step() {
            if case .entry(_, _, let status) = step, status.kind == .file {
                let (sum, isTooLarge) = byteCount.addingReportingOverflow(status.byteCount)
                byteCount = isTooLarge ? .max : sum
            }
        }
        return byteCount
    }

    /// Whether there is a file with something in it, or what can't be looked at.
    private func holdsContent(_ directory: Directory) throws(CofferError) -> Bool {
        var walk = try TreeWalk(below: directory, fileSystem, depthLimit: 100)
        while let step = try walk.step() {
            switch step {
            case .entry(_, _, let status): if status.kind == .file && status.byteCount > 0 { return true }
            case .unreadable, .tooDeep: return true
            case .end: break
            }
        }
        return false
    }
}

extension CofferError {
    /// The same error, which says what to do about something that can't be removed.
    func askingForRemoval(of path: String, _ what: String) -> CofferError {
        let reason = detail.map { " (\($0)\(subject.map { ", \($0)" } ?? ""))" } ?? ""
        return CofferError(
            code, of: path,
            "it \(what), and can't be removed\(reason): remove it by hand, with chattr -R -i before where something in it "
                + "is immutable, and open the store again",
            cause: cause)
    }
}
