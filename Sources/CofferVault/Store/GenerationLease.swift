internal import CofferSealing
internal import Dispatch
internal import Synchronization

/// Keeps a generation's directory where it is: once it is retired, it is removed with the last reference to this.
///
/// Readers, writers of content and staged attachments hold it, so that a key change takes nothing away from under them.
/// Calls may come from any thread.
package final class GenerationLease: Sendable {
    private let store: LockedStore
    private let name: String
    private let isEncrypted: Bool
    private let state = Lock(State.current)

    private enum State {
        case current, retired, gone
    }

    init(_ store: LockedStore, _ manifest: UnlockedManifest) {
        self.store = store
        name = manifest.manifest.generationName
        isEncrypted = manifest.manifest.isEncrypted
    }

    /// Has the generation removed when the last reference goes.
    func retire() {
        store.notes.withLock { $0[name] = LockedStore.Note(isEncrypted: isEncrypted) }
        state.withLock { $0 = .retired }
    }

    /// Removes the generation now, for the last holder. Returns whether that worked; else it is left to the next open.
    func removeGeneration() -> Bool {
        store.notes.withLock { $0[name] = LockedStore.Note(isEncrypted: isEncrypted) }
        state.withLock { $0 = .gone }
        return store.removeRetiredGeneration(name)
    }

    deinit {
        guard state.withLock({ $0 == .retired }) else { return }
        // Whoever lets go of it last is a reader who has waited for nobody so far.
        DispatchQueue.global(qos: .utility).async { [store, name] in _ = store.removeRetiredGeneration(name) }
    }
}

extension LockedStore {
    /// Removes a generation that is not the store's any more, unless the store was closed meanwhile.
    fileprivate func removeRetiredGeneration(_ name: String) -> Bool {
        whileOpen {
            // The system reports a failed write once to each opening of a directory, and a commit of MANIFEST meanwhile must
            // not miss that report.
            guard let own = try? fileSystem.openDirectory(".", in: directory).renamed(to: directory.path),
                (try? removeGeneration(name, through: own)) != nil
            else { return false }
            return (try? fileSystem.synchronize(own)) != nil
        } ?? false
    }
}
