package import CofferSealing
internal import Dispatch
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// The attachment files of one generation: what is in `attachments/`, and on its way there in `incoming/`.
///
/// Which content a store has only its database says. Content is written by ``beginStaging()``, becomes a file of the
/// store by ``install(_:)`` within the transaction that inserts its row, and is read by what the row says with
/// ``open(_:header:subject:)``.
///
/// Calls may come from any thread. After ``LockedStore/close()`` they throw `closed` (500), but what was opened before can
/// still be read.
package final class AttachmentStore: Sendable {
    /// Whether files are encrypted, in the form of c2sp.org/chunked-encryption with AES-256-GCM.
    package var isEncrypted: Bool { encryption != nil }

    /// How files are called.
    package let naming: AttachmentNaming

    let store: LockedStore
    let encryption: AttachmentEncryption?
    /// Nil in a copy that is only read: some tools leave out empty directories.
    let attachments: Directory?
    let incoming: Directory?
    private let attachmentsPath: String
    /// The owner of the store.
    let owner: FileOwner
    /// How many contents in memory make a batch of an ``Installation``.
    let batchCount: Int
    let adjustDigest: @Sendable (ContentDigest) -> ContentDigest

    /// Set when it is unknown what is on the disk: by a sync that failed, or a file that couldn't be taken back.
    let isUncertain = Atomic(false)
    /// What keeps the generation in its place: nil once the store has another one.
    private let lease: Lock<GenerationLease?>
    /// How many staged attachments have their file still open.
    let openStagedCount = Atomic(0)
    /// How many bytes of staged attachments are in memory.
    let sealedByteCount = Atomic(0)
    /// Where contents get their places beside the transaction that saves them.
    let placing = DispatchQueue(label: "coffer.attachments", qos: .userInitiated)

    /// The attachment files of the generation that `manifest` names, of an open and proven store.
    ///
    /// Throws `damaged` (500), naming the part, when the generation's directories aren't what they must be.
    package convenience init(_ store: LockedStore, _ manifest: UnlockedManifest) throws(CofferError) {
        try self.init(store, manifest, batchCount: Installation.batchCount) { $0 }
    }

    /// The same, where `batchCount` contents in memory make a batch, and `adjustDigest` has the last word on the digest of
    /// what is staged: for tests, which need short batches, and can't make two contents with one SHA-1 otherwise.
    package convenience init(
        _ store: LockedStore, _ manifest: UnlockedManifest, batchCount: Int,
        adjustDigest: @escaping @Sendable (ContentDigest) -> ContentDigest
    ) throws(CofferError) {
        let owner = try Manifest.owner(in: store.directory, store.fileSystem)
        try self.init(
            store, manifest, store.generation(of: manifest), owner: owner, batchCount: batchCount,
            adjustDigest: adjustDigest)
    }

    /// The attachment files that are left of a damaged store, in what ``LockedStore/remains(of:)`` says; nil if it has
    /// no directory for them.
    package static func remains(
        in store: LockedStore, _ manifest: UnlockedManifest, _ generation: Generation
    ) throws(CofferError) -> AttachmentStore? {
        let owner = try Manifest.owner(in: store.directory, store.fileSystem)
        do throws(CofferError) {
            return try AttachmentStore(store, manifest, generation, owner: owner) { $0 }
        } catch  where error.code == .damaged {
            return nil
        }
    }

    /// The same for a generation that MANIFEST need not name yet.
    init(
        _ store: LockedStore, _ manifest: UnlockedManifest, _ generation: Generation, owner: FileOwner,
        batchCount: Int = Installation.batchCount,
        adjustDigest: @escaping @Sendable (ContentDigest) -> ContentDigest
    ) throws(CofferError) {
        self.store = store
        lease = Lock(GenerationLease(store, manifest))
        self.batchCount = batchCount
        self.adjustDigest = adjustDigest
        naming = try AttachmentNaming(manifest)
        encryption = try AttachmentEncryption(manifest)
        attachmentsPath = generation.attachmentsPath
        self.owner = owner
        attachments = try store.openPart(Generation.attachmentsName, of: generation)
        incoming = try store.openPart(Generation.incomingName, of: generation)
    }

    var fileSystem: any FileSystem { store.fileSystem }

    // MARK: Reading

    /// Whether there is a file for the content of this SHA-1, whatever is in it: it is neither opened nor read.
    package func isPresent(_ sha1: [UInt8]) -> Bool {
        guard let attachments, let name = try? naming.name(of: sha1) else { return false }
        return (try? fileSystem.status(of: name, in: attachments))?.kind == .file
    }

    /// Where the content of this SHA-1 is, if it is. Only for stores that are not encrypted: there it is in a file that
    /// can only be read.
    package func path(of sha1: [UInt8]) -> String {
        precondition(!isEncrypted, "an encrypted file is of no use to others")
        precondition(sha1.count == DigestAlgorithm.sha1.byteCount, "a SHA-1 has 20 bytes")
        return "\(attachmentsPath)/\(AttachmentNaming.plainName(of: sha1))"
    }

    /// Opens content for reading.
    ///
    /// `content` and `header` are what the attachment's row says: the header is empty where files aren't encrypted. Checks
    /// that the file has the right size and that header, and opens its last chunk, so that a file which was cut, replaced
    /// or put there from elsewhere is noticed before any of it is read. `subject` names the attachment in errors. Where
    /// it is opened only for ``AttachmentReader/readWhole(into:checking:)``, which hands out nothing before it has opened
    /// all chunks, the last one needs no look of its own, and two threads read what has `bytesReadByTwo` bytes or more.
    ///
    /// Throws `damaged` (500) when the file is missing or not the one that the row means.
    package func open(
        _ content: ContentDigest, header: [UInt8], subject: String, onlyForReadingWhole: Bool = false,
        bytesReadByTwo: Int = AttachmentReader.bytesReadByTwo
    ) throws(CofferError) -> AttachmentReader {
        try store.checkOpen()
        let name = try naming.name(of: content.sha1)
        guard let attachments else { throw CofferError(.damaged, of: subject, "its file is missing") }
        let file = try openFile(name, in: attachments, subject: subject)
        return try AttachmentReader(
            file, content, header: header, encryption, subject: subject, fileSystem: fileSystem,
            opensLastChunk: !onlyForReadingWhole,
            canBeReadByTwo: onlyForReadingWhole && content.byteCount >= bytesReadByTwo)
    }

    /// What the file of this name holds, whose row is lost: one of those that ``allNames()`` says, or ``AttachmentNaming``.
    ///
    /// All of it is read. It is what was written when every chunk opens and its SHA-1 makes the name; where files aren't
    /// encrypted, when the latter does.
    ///
    /// - Returns: what the row must have said, with the header of this file.
    /// - Throws: `damaged` (500) for any other file.
    package func identify(named name: String, subject: String) throws(CofferError) -> (ContentDigest, header: [UInt8]) {
        try store.checkOpen()
        guard let attachments else { throw CofferError(.damaged, of: subject, "its file is missing") }
        let file = try openFile(name, in: attachments, subject: subject)
        let status = try reading(subject) { () throws(CofferError) in try fileSystem.status(of: file) }
        let byteCount = isEncrypted ? Cobblestone.plaintextByteCount(ofMessage: status.byteCount) : status.byteCount
        guard status.kind == .file, let byteCount else {
            throw CofferError(.damaged, of: subject, "its file has a length that no content has")
        }
        let header = try reading(subject) { () throws(CofferError) in
            try fileSystem.read(isEncrypted ? Cobblestone.headerByteCount : 0, from: file, at: 0)
        }
        let unknown = ContentDigest(
            sha1: [UInt8](repeating: 0, count: DigestAlgorithm.sha1.byteCount),
            sha256: [UInt8](repeating: 0, count: DigestAlgorithm.sha256.byteCount), byteCount: byteCount)
        let reader = try AttachmentReader(
            file, unknown, header: header, encryption, subject: subject, fileSystem: fileSystem)
        var hasher = try ContentHasher()
        try unsafe reader.forEachPiece { (piece) throws(CofferError) in unsafe hasher.update(piece.bytes) }
        let content = hasher.finalize()
        guard try naming.name(of: content.sha1) == name else {
            throw CofferError(.damaged, of: subject, "its file is another content's")
        }
        return (content, header)
    }

    func openFile(_ name: String, in directory: Directory, subject: String) throws(CofferError) -> File {
        do throws(CofferError) {
            return try reading(subject) { () throws(CofferError) in try fileSystem.openFile(name, in: directory) }
        } catch {
            switch error.systemErrorNumber {
            case ENOENT: throw CofferError(.damaged, of: subject, "its file is missing")
            // A symbolic link, or a socket.
            case ELOOP, ENXIO: throw CofferError(.damaged, of: subject, "its file is not a file")
            default: throw error
            }
        }
    }

    // MARK: Housekeeping

    /// The names of all files in `attachments/` that may be an attachment's, in no order.
    package func allNames() throws(CofferError) -> [String] {
        try store.checkOpen()
        guard let attachments else { return [] }
        return try fileSystem.textNames(in: attachments).filter(naming.isWellFormed)
    }

    /// Removes the content of these SHA-1s; what is missing already is fine.
    ///
    /// Only for content whose rows are gone durably, and which nobody has a lease on. Opened readers go on reading.
    ///
    /// When one can't be removed, the others are nevertheless, and the first error is thrown.
    package func remove(_ sha1s: [[UInt8]]) throws(CofferError) {
        var names: [String] = []
        for sha1 in sha1s { names.append(try naming.name(of: sha1)) }
        try remove(named: names)
    }

    /// Removes the files of these names, of those that ``allNames()`` says: see ``remove(_:)``.
    package func remove(named names: [String]) throws(CofferError) {
        let attachments = try writable(attachments)
        var failure: CofferError?
        for name in names {
            precondition(naming.isWellFormed(name), "only attachments are removed")
            do throws(CofferError) {
                try fileSystem.unlink(name, in: attachments)
            } catch {
                if error.systemErrorNumber != ENOENT { failure = failure ?? error }
            }
        }
        if !names.isEmpty { try synchronizing { () throws(CofferError) in try fileSystem.synchronize(attachments) } }
        if let failure { throw failure }
    }

    // MARK: What writing has in common

    /// Keeps the generation's files in their place for as long as somebody holds it; nil when the store has another
    /// generation by now.
    package func takeLease() -> GenerationLease? { lease.withLock(\.self) }

    /// Notes that the store has another generation, durably. This one is removed when nobody has a lease on it any more.
    ///
    /// Returns whether it is gone when the call returns; otherwise it is removed later.
    package func retire() -> Bool {
        var taken = lease.withLock { lease in
            let taken = lease
            lease = nil
            return taken
        }
        if isKnownUniquelyReferenced(&taken) { return taken?.removeGeneration() ?? false }
        taken?.retire()
        return false
    }

    /// `directory`, when the store may be written.
    func writable(_ directory: Directory?) throws(CofferError) -> Directory {
        try store.checkWritable()
        guard !isUncertain.load(ordering: .acquiring) else {
            throw CofferError(.reopenRequired, of: store.path, "an earlier change of its attachments failed")
        }
        guard let directory else { throw CofferError(.damaged, of: store.path, "a directory of it is missing") }
        return directory
    }

    /// Makes a sync. One that fails is the last: the system reports a failure once and then forgets what it couldn't
    /// write, so that trying again would prove nothing.
    func synchronizing(_ sync: () throws(CofferError) -> Void) throws(CofferError) {
        do throws(CofferError) {
            try sync()
        } catch {
            isUncertain.store(true, ordering: .releasing)
            throw error
        }
    }
}

extension LockedStore {
    /// Opens a directory of `generation`; nil when it is missing, which only a store that is read may be without.
    fileprivate func openPart(_ name: String, of generation: Generation) throws(CofferError) -> Directory? {
        let path = generation.directory.path(of: name)
        do throws(CofferError) {
            return try fileSystem.openDirectory(name, in: generation.directory)
        } catch {
            switch error.systemErrorNumber {
            case ENOENT where access == .readOnly: return nil
            case ENOENT: throw CofferError(.damaged, of: path, "it is missing")
            case ENOTDIR, ELOOP: throw CofferError(.damaged, of: path, "it is not a directory")
            default: throw error
            }
        }
    }
}
