package import CofferSealing
internal import Dispatch
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The directory that holds everything under one master key: the database file and the attachments beside it.
package struct Generation: Sendable {
    /// The open directory.
    package let directory: Directory

    package static let databaseName = "db.sqlite3"
    static let attachmentsName = "attachments"
    static let incomingName = "incoming"
    /// An empty file in what is left of a generation that couldn't be removed: it was encrypted.
    static let encryptedMarkName = "encrypted"

    /// What the database library keeps beside its file.
    static let databaseCompanionSuffixes = ["-wal", "-shm", "-journal"]

    package var path: String { directory.path }
    package var databasePath: String { directory.path(of: Self.databaseName) }
    package var attachmentsPath: String { directory.path(of: Self.attachmentsName) }
    /// Where attachments are while they are being written.
    package var incomingPath: String { directory.path(of: Self.incomingName) }

    /// What goes first where a generation is removed: all documents, and with a database that is gone nobody knows what the
    /// other files are.
    static let firstNames = Set(([""] + databaseCompanionSuffixes).map { FileName(databaseName + $0) })

    /// Whether `name` is one that a generation may have; nothing else in a store is ever taken for one.
    static func isGenerationName(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        let digits = bytes.enumerated().filter { $0.offset != 0 && $0.offset != 17 }.map(\.element)
        return bytes.count == 34 && bytes[0] == UInt8(ascii: "g") && bytes[17] == UInt8(ascii: "-")
            && digits.allSatisfy(\.isLowerCaseHexDigit)
    }
}

extension LockedStore {
    /// The generation that `unlocked` names, once its parts are what they must be: real files and directories, no links,
    /// the database file there.
    ///
    /// `attachments/` and `incoming/` may be missing, since some tools that copy a store leave out empty directories;
    /// recovery makes them again.
    ///
    /// Throws `damaged` (500), naming the part, for any other; `notOwner` (403) for root where the directory is another user's,
    /// unless these are trusted.
    package func generation(of unlocked: UnlockedManifest) throws(CofferError) -> Generation {
        try checkOpen()
        let generation = Generation(directory: try openPart(unlocked.manifest.generationName))
        try require(.file, Generation.databaseName, in: generation)
        for suffix in ["-wal", "-shm"] {
            try require(.file, Generation.databaseName + suffix, in: generation, orMissing: true)
        }
        // A store's database never has one. SQLite would play it back all the same, and its checksums need no key.
        let journal = Generation.databaseName + "-journal"
        guard try fileSystem.status(of: journal, in: generation.directory) == nil else {
            throw CofferError(
                .damaged, of: generation.directory.path(of: journal), "a store has no such file")
        }
        for name in [Generation.attachmentsName, Generation.incomingName] {
            try require(.directory, name, in: generation, orMissing: true)
        }
        return generation
    }

    /// The generation that `unlocked` names, whatever of its parts is missing or not what it must be: for who takes from a
    /// damaged store what is left.
    ///
    /// Throws `damaged` (500) when there is no such directory, `notOwner` (403) as ``generation(of:)``.
    package func remains(of unlocked: UnlockedManifest) throws(CofferError) -> Generation {
        try checkOpen()
        return Generation(directory: try openPart(unlocked.manifest.generationName))
    }

    private func openPart(_ name: String) throws(CofferError) -> Directory {
        do {
            let part = try fileSystem.openDirectory(name, in: directory)
            try otherOwners.admit(fileSystem.status(of: part).owner, of: part.path)
            return part
        } catch {
            let path = directory.path(of: name)
            switch error.systemErrorNumber {
            case ENOENT: throw CofferError(.damaged, of: path, "it is missing")
            case ENOTDIR, ELOOP: throw CofferError(.damaged, of: path, "it is not a directory")
            default: throw error
            }
        }
    }

    private func require(
        _ kind: FileStatus.Kind, _ name: String, in generation: Generation, orMissing mayBeMissing: Bool = false
    ) throws(CofferError) {
        let status = try fileSystem.status(of: name, in: generation.directory)
        let path = generation.directory.path(of: name)
        guard let status else {
            if mayBeMissing { return }
            throw CofferError(.damaged, of: path, "it is missing")
        }
        guard status.kind == kind else {
            throw CofferError(.damaged, of: path, "it is not a \(kind == .file ? "file" : "directory")")
        }
    }
}

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
