package import CofferSealing
internal import Synchronization

// A generation that is built beside the current one, to be the store's next.

extension LockedStore {
    /// Begins to build the generation that `manifest` describes.
    ///
    /// Throws `readOnly` (403), `noSpace` (507), `ioFailed` (500); nothing is left then.
    package func beginNextGeneration(
        _ manifest: UnlockedManifest, earlySyncByteCount: Int = GenerationBuilder.earlySyncByteCount
    ) throws(CofferError) -> GenerationBuilder {
        try checkOpen()
        // Whoever asks for old generations meanwhile, or with a manifest from before the commit, must not be told of it.
        let name = manifest.manifest.generationName
        notes.withLock { $0[name] = Note(isNext: true) }
        do throws(CofferError) {
            return try GenerationBuilder(
                self, manifest, owner: Manifest.owner(in: directory, fileSystem),
                earlySyncByteCount: earlySyncByteCount)
        } catch {
            notes.withLock { $0[name] = nil }
            throw error
        }
    }

    /// Makes a generation that is built and sealed the store's, in one step.
    ///
    /// Throws `reopenRequired` (500) when it is open whether that happened: both generations must stay then. On any other
    /// error it did not, and the caller calls ``abandon(_:)``.
    package func commit(_ next: GenerationBuilder) throws(CofferError) {
        // The generation's own entry, before anything names it.
        try fileSystem.synchronize(directory)
        try next.manifest.commitManifest(of: directory, fileSystem)
    }

    /// Removes a generation again that was not committed. What can't be removed is left to the next open.
    package func abandon(_ next: GenerationBuilder) {
        next.waitForSyncs()
        let name = next.manifest.manifest.generationName
        notes.withLock { $0[name] = nil }
        _ = whileOpen {
            try? removeGeneration(name, through: directory)
            try? fileSystem.synchronize(directory)
        }
    }

    /// The bytes that this user may still write beside the store.
    package func freeByteCount() throws(CofferError) -> Int { try fileSystem.freeByteCount(of: directory) }
}
