package import CofferSealing
internal import Synchronization
internal import Dispatch

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A generation that is being built: of a store that is being made, or the next one of a store that there is.
///
/// In this order: ``init(_:_:owner:)``, any number of ``encrypt(_:progress:)``, ``synchronizeContents()``, the database
/// file, ``beginSynchronizingDatabase()``, ``seal()``. Contents may be encrypted by several threads at once; everything else
/// is for one.
package final class GenerationBuilder: Sendable {
    package let manifest: UnlockedManifest
    /// Its files, to be read from.
    package let attachments: AttachmentStore
    /// An empty file, for the database.
    package var databasePath: String { generation.databasePath }

    let store: LockedStore
    private let generation: Generation
    private let contents: Directory
    private let incoming: Directory
    private let owner: FileOwner
    /// Whether one sync of the file system stands for that of each file.
    private let synchronizesAtOnce: Bool
    private let haveContentsBeenSynchronized = Atomic(false)

    /// Of contents, while others are encrypted.
    private let earlySync = EarlySync()
    private let earlySyncByteCount: Int
    /// Bytes written since one was last asked for.
    private let unsynchronizedByteCount = Atomic(0)
    /// Of the database file, while it is checked.
    private let databaseSync = EarlySync()
    private let hasBegunDatabaseSync = Atomic(false)

    /// After how many bytes of contents the disk starts to write them: 64 MiB, a few hundredths of a second of work.
    package static let earlySyncByteCount = 64 << 20

    var fileSystem: any FileSystem { store.fileSystem }

    /// Makes the directories and an empty database file for the generation that `manifest` describes.
    ///
    /// Whatever root makes is handed to `owner`. Throws `readOnly` (403), `noSpace` (507), `ioFailed` (500); nothing is
    /// left then.
    init(
        _ store: LockedStore, _ manifest: UnlockedManifest, owner: FileOwner,
        earlySyncByteCount: Int = GenerationBuilder.earlySyncByteCount
    ) throws(CofferError) {
        self.earlySyncByteCount = earlySyncByteCount
        try store.checkWritable()
        let fileSystem = store.fileSystem
        self.store = store
        self.manifest = manifest
        self.owner = owner
        let name = manifest.manifest.generationName
        do throws(CofferError) {
            let directory = try fileSystem.makeDirectory(name, in: store.directory, for: owner)
            generation = Generation(directory: directory)
            contents = try fileSystem.makeDirectory(Generation.attachmentsName, in: directory, for: owner)
            incoming = try fileSystem.makeDirectory(Generation.incomingName, in: directory, for: owner)
            try fileSystem.hand(fileSystem.createFile(Generation.databaseName, in: directory), to: owner)
            synchronizesAtOnce = try fileSystem.reportsFailedWrites(contents)
            attachments = try AttachmentStore(store, manifest, generation, owner: owner) { $0 }
        } catch {
            try? fileSystem.removeTree(name, in: store.directory)
            throw error
        }
    }

    // MARK: Contents

    /// Copies a content into this generation, as it keeps them, and checks on the way that it is what it should be.
    ///
    /// `progress` is notified of every piece, of 256 KiB at most, and ends the copying by throwing.
    ///
    /// Throws what `progress` throws; `damaged` (500), naming the attachment, when a tag, the length or the SHA-256 is
    /// another one; `noSpace` (507), `ioFailed` (500). Nothing of the content is left then.
    package func encrypt(
        _ reader: AttachmentReader, progress: (_ byteCount: Int) throws(CofferError) -> Void
    ) throws(CofferError) {
        let name = try attachments.naming.name(of: reader.content.sha1)
        let file = try fileSystem.createFile(name, in: contents)
        do throws(CofferError) {
            try fileSystem.hand(file, to: owner)
            let encryptor = try attachments.encryption.map { (encryption) throws(CofferError) in
                try CobblestoneEncryptor(key: encryption.key, context: encryption.context)
            }
            var sealer = try ContentSealer(encryptor, known: reader.content)
            try unsafe reader.forEachPiece { (piece) throws(CofferError) in
                try unsafe sealer.take(piece) { (sealed) throws(CofferError) in try fileSystem.write(sealed, to: file) }
                considerEarlySync(piece.count)
                try progress(piece.count)
            }
            let digest = try sealer.finish { (sealed) throws(CofferError) in try fileSystem.write(sealed, to: file) }
            guard digest == reader.content else {
                throw CofferError(.damaged, of: reader.subject, "its SHA-256 is wrong")
            }
            if !attachments.isEncrypted { try fileSystem.setPermissions(0o400, of: file) }
            if !synchronizesAtOnce || haveContentsBeenSynchronized.load(ordering: .acquiring) {
                try fileSystem.synchronize(file)
            }
        } catch {
            try? fileSystem.unlink(name, in: contents)
            throw error
        }
    }

    private func considerEarlySync(_ byteCount: Int) {
        guard synchronizesAtOnce, !haveContentsBeenSynchronized.load(ordering: .acquiring) else { return }
        let sum = unsynchronizedByteCount.add(byteCount, ordering: .relaxed).newValue
        guard sum >= earlySyncByteCount else { return }
        unsynchronizedByteCount.store(0, ordering: .relaxed)
        earlySync.begin { [fileSystem, contents] () throws(CofferError) in
            try fileSystem.synchronizeFileSystem(of: contents)
        }
    }

    /// What the row of a content that ``encrypt(_:progress:)`` has copied should hold of its file: 56 bytes, or none
    /// where files aren't encrypted. Nil for a content that is not here.
    package func header(of content: ContentDigest) throws(CofferError) -> [UInt8]? {
        let name = try attachments.naming.name(of: content.sha1)
        guard attachments.isEncrypted else {
            return try fileSystem.status(of: name, in: contents) == nil ? nil : []
        }
        do throws(CofferError) {
            let file = try fileSystem.openFile(name, in: contents)
            return try fileSystem.read(Cobblestone.headerByteCount, from: file, at: 0)
        } catch {
            if error.systemErrorNumber == ENOENT { return nil }
            throw error
        }
    }

    /// Makes what was copied so far durable. Contents that come later are made so one by one.
    package func synchronizeContents() throws(CofferError) {
        guard synchronizesAtOnce else { return }
        try earlySync.wait()
        try fileSystem.synchronizeFileSystem(of: contents)
        haveContentsBeenSynchronized.store(true, ordering: .releasing)
    }

    // MARK: The end

    /// Begins to make the database file durable, which must be complete and closed, while the caller goes on: ``seal()`` waits
    /// for it.
    package func beginSynchronizingDatabase() {
        guard !hasBegunDatabaseSync.exchange(true, ordering: .relaxed) else { return }
        databaseSync.begin { [fileSystem, generation] () throws(CofferError) in
            try fileSystem.synchronize(fileSystem.openFile(Generation.databaseName, in: generation.directory))
        }
    }

    /// Makes the whole generation durable, from the inside out. The database file must be complete and closed, and have
    /// stayed as it was since ``beginSynchronizingDatabase()``.
    package func seal() throws(CofferError) {
        for suffix in Generation.databaseCompanionSuffixes {
            let name = Generation.databaseName + suffix
            guard try fileSystem.status(of: name, in: generation.directory) == nil else {
                throw CofferError(.ioFailed, of: generation.directory.path(of: name), "a new database was not closed")
            }
        }
        beginSynchronizingDatabase()
        try databaseSync.wait()
        try fileSystem.synchronize(contents)
        try fileSystem.synchronize(incoming)
        try fileSystem.synchronize(generation.directory)
    }

    /// Waits for syncs that are under way, for who gives it up.
    func waitForSyncs() {
        // Whether they succeed doesn't matter any more.
        try? earlySync.wait()
        try? databaseSync.wait()
    }
}

/// Has the disk write what there is so far while the caller goes on, so that the sync that counts finds little left to do,
/// or is this one.
///
/// A failure that one sync reports is not reported by the next: it is kept, for ``wait()``.
final class EarlySync: Sendable {
    private struct State {
        var isUnderWay = false
        var failure: CofferError?
    }

    private let state = Lock(State())
    private let queue = DispatchQueue(label: "coffer.sync")

    /// Begins `synchronize` on another thread, unless one is under way. Safe from any thread.
    func begin(_ synchronize: @escaping @Sendable () throws(CofferError) -> Void) {
        let isFirst = state.withLock { state in
            defer { state.isUnderWay = true }
            return !state.isUnderWay
        }
        guard isFirst else { return }
        queue.async { [self] in
            var failure: CofferError?
            do throws(CofferError) { try synchronize() } catch { failure = error }
            state.withLock { state in
                state.isUnderWay = false
                state.failure = state.failure ?? failure
            }
        }
    }

    /// Waits for the one that is under way.
    ///
    /// - Throws: what the first that failed did, each time.
    func wait() throws(CofferError) {
        queue.sync {}
        if let failure = state.withLock(\.failure) { throw failure }
    }
}
