package import CofferSealing

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
