package import CofferSealing

extension LockedStore {
    /// Whether a process that was killed left something to finish or to remove.
    ///
    /// `bindingSequence` is the sequence in the database's binding row, which is written after MANIFEST. Throws `damaged`
    /// (500) when it is above MANIFEST's: then an older MANIFEST was put back.
    package func isStale(_ unlocked: UnlockedManifest, bindingSequence: UInt64) throws(CofferError) -> Bool {
        try checkOpen()
        let manifest = unlocked.manifest
        guard bindingSequence <= manifest.sequence else {
            throw CofferError(
                .damaged, of: directory.path(of: Manifest.fileName),
                "it is older than the database: sequence \(manifest.sequence) and not \(bindingSequence)")
        }
        if bindingSequence < manifest.sequence { return true }
        if try !staleNames(beside: manifest).isEmpty { return true }
        let generation = try generation(of: unlocked)
        guard try fileSystem.status(of: Generation.attachmentsName, in: generation.directory) != nil,
            try fileSystem.status(of: Generation.incomingName, in: generation.directory) != nil
        else { return true }
        let incoming = try fileSystem.openDirectory(Generation.incomingName, in: generation.directory)
        return try !fileSystem.names(in: incoming).isEmpty
    }

    /// Finishes what a killed process left, and removes what belongs to no generation of this store any more.
    ///
    /// Only for a store that is proven: a manifest that its key vouched for, and a database whose binding row belongs to
    /// it. First MANIFEST is written again with the next sequence, since an fsync of the directory that failed in
    /// another process says nothing now, and nothing may be deleted that an older MANIFEST could still name after a
    /// power cut. `updateBindingRow` then has to make that sequence durable in the database. Only after that is
    /// anything deleted: other generations, what is left of a writing of MANIFEST, and attachments that were being
    /// written. One that was about to get its row has its file in `attachments/` and is announced: `attachmentHasRow`
    /// is asked whether there is a row that names the file of this name as content that is here, and without one that
    /// file goes as well. Other names stay. Killed anywhere, the next recovery does the same again.
    ///
    /// What the system refuses to remove, an immutable file for one, is left to the next recovery, and keeps nothing else
    /// from going.
    ///
    /// Returns the manifest as it is now. Throws `readOnly` (403) for a store that was locked for reading, and `ioFailed`
    /// (500), when all else is done, for an encrypted store with another generation that can't be removed and may be
    /// readable without a key.
    package func recover(
        _ unlocked: UnlockedManifest,
        attachmentHasRow: (_ name: String) throws(CofferError) -> Bool,
        updatingBindingRow updateBindingRow: (UInt64) throws(CofferError) -> Void
    ) throws(CofferError) -> UnlockedManifest {
        try checkWritable()
        let generation = try generation(of: unlocked)
        let current = try unlocked.advanced()
        try current.replaceManifest(of: directory, fileSystem)
        try updateBindingRow(current.manifest.sequence)

        var failure: CofferError?
        for name in try staleNames(beside: current.manifest) {
            do throws(CofferError) {
                try removeGeneration(name, through: directory)
            } catch {
                if !error.isRefusal { failure = failure ?? error }
            }
        }
        if let failure { throw failure }
        try fileSystem.synchronize(directory)
        try restoreDirectories(of: generation)
        let incoming = try fileSystem.openDirectory(Generation.incomingName, in: generation.directory)
        let leftovers = try fileSystem.names(in: incoming)
        let kept = try removeAttachments(
            announcedBy: leftovers.compactMap(\.text), in: incoming, current.manifest.attachmentNames,
            withoutRow: attachmentHasRow, of: generation)
        for name in leftovers where !kept.contains(name) {
            do throws(CofferError) {
                try fileSystem.removeTree(name, in: incoming)
            } catch {
                if !error.isRefusal { failure = failure ?? error }
            }
        }
        if let failure { throw failure }
        try fileSystem.synchronize(incoming)
        try refuseReadableGenerations(beside: current.manifest)
        return current
    }

    /// Removes those files in `attachments/` that have no row and are announced by one of `leftovers` in `incoming`,
    /// durably: these tell of them for the last time.
    ///
    /// - Returns: those of `leftovers` that have to tell the next recovery, since the system refuses to remove a file.
    private func removeAttachments(
        announcedBy leftovers: [String], in incoming: Directory, _ names: Manifest.AttachmentNames,
        withoutRow hasRow: (String) throws(CofferError) -> Bool, of generation: Generation
    ) throws(CofferError) -> Set<FileName> {
        var announcers: [String: Set<FileName>] = [:]
        for leftover in leftovers {
            if let name = IncomingName.announced(by: leftover, in: names) {
                announcers[name, default: []].insert(FileName(leftover))
            } else if IncomingName.isList(leftover) {
                for name in try InstallIntentList.read(leftover, in: incoming, names, fileSystem) {
                    announcers[name, default: []].insert(FileName(leftover))
                }
            }
        }
        let attachments = try fileSystem.openDirectory(Generation.attachmentsName, in: generation.directory)
        var isChanged = false
        var kept: Set<FileName> = []
        for (name, leftovers) in announcers.sorted(by: { $0.key < $1.key }) {
            guard try fileSystem.status(of: name, in: attachments)?.kind == .file, try !hasRow(name) else { continue }
            do throws(CofferError) {
                try fileSystem.unlink(name, in: attachments)
                isChanged = true
            } catch  where error.isRefusal {
                kept.formUnion(leftovers)
            }
        }
        if isChanged { try fileSystem.synchronize(attachments) }
        return kept
    }

    /// The names in the store that only an interrupted change leaves behind.
    private func staleNames(beside manifest: Manifest) throws(CofferError) -> [String] {
        try fileSystem.textNames(in: directory).filter { $0 == UnlockedManifest.temporaryFileName }
            + otherGenerationNames(beside: manifest)
    }

    private func restoreDirectories(of generation: Generation) throws(CofferError) {
        let owner = try Manifest.owner(in: directory, fileSystem)
        var isChanged = false
        for name in [Generation.attachmentsName, Generation.incomingName]
        where try fileSystem.status(of: name, in: generation.directory) == nil {
            _ = try fileSystem.makeDirectory(name, in: generation.directory, for: owner)
            isChanged = true
        }
        if isChanged { try fileSystem.synchronize(generation.directory) }
    }
}
