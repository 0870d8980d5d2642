package import CofferSealing
internal import Synchronization

/// Content that is whole, in `incoming/` or sealed in memory, but not yet the store's.
///
/// It becomes that by ``AttachmentStore/install(_:)``. Until then it can be read like any other, and its file is removed
/// with the last reference. Calls may come from any thread.
package final class StagedAttachment: Sendable {
    package let digest: ContentDigest
    /// What the attachment's row holds of the file: 56 bytes, or none when the store is not encrypted.
    package let header: [UInt8]
    package var isEncrypted: Bool { !header.isEmpty }

    /// The store that it can be installed in.
    package let store: AttachmentStore

    /// Whether it was installed and its row committed: then it is the store's for as long as that keeps the row.
    package var isSaved: Bool {
        state.withLock { state in
            switch state.stage {
            case .saved: true
            case .moved(let other): other.isSaved
            case .sealed, .placing, .staged, .installed, .left: false
            }
        }
    }

    let incoming: Directory
    let state: Lock<State>

    struct State {
        var stage: Stage
        /// Its name in `incoming/`, as soon as it has one there.
        var name: String?
        /// Open as long as there are few, so that a sync reports what became of each write.
        var file: File?
        /// Keeps the generation that it is in; nil when it has no file of its own there any more.
        var lease: GenerationLease?
    }

    enum Stage {
        /// The bytes of its file are in memory, and there isn't one yet.
        case sealed([UInt8])
        /// The same, and its file is being written in its place, where some of it may be.
        case placing([UInt8], as: String, InstallIntent)
        /// In `incoming/`, and nobody but this value knows it.
        case staged
        /// In `attachments/` by now. Only the database knows whether it stays, even if this value goes.
        case installed(as: String, InstallIntent)
        /// It has a row.
        case saved
        /// Not to be installed any more. What is on the disk is unknown, and the next open removes it; or it is lost, since
        /// the disk was too full to take it back.
        case left
        /// The store got another generation, and this is its content there.
        case moved(StagedAttachment)
    }

    package static let unsavedSubject = "an attachment that is not saved yet"

    init(
        _ store: AttachmentStore, _ lease: GenerationLease, _ file: File, _ name: String, in incoming: Directory,
        digest: ContentDigest, header: [UInt8]
    ) {
        self.store = store
        self.incoming = incoming
        self.digest = digest
        self.header = header
        state = Lock(State(stage: .staged, name: name, file: store.isKeptOpen() ? file : nil, lease: lease))
    }

    /// Content whose file's bytes are in memory.
    init(
        _ store: AttachmentStore, _ lease: GenerationLease, sealed: [UInt8], in incoming: Directory,
        digest: ContentDigest, header: [UInt8]
    ) {
        self.store = store
        self.incoming = incoming
        self.digest = digest
        self.header = header
        store.sealedByteCount.add(sealed.count, ordering: .relaxed)
        state = Lock(State(stage: .sealed(sealed), name: nil, file: nil, lease: lease))
    }

    deinit {
        state.withLock { state in
            closeFile(&state)
            switch state.stage {
            case .staged: unlinkIncoming(state)
            case .sealed(let bytes), .placing(let bytes, _, _): forget(bytes)
            case .installed, .saved, .left, .moved: break
            }
        }
    }

    /// Opens the content for reading, saved or not. `subject` names the attachment in errors.
    ///
    /// Throws `damaged` (500) when the file is missing or was changed.
    package func open(subject: String = unsavedSubject) throws(CofferError) -> AttachmentReader {
        let (moved, file) = try state.withLock { (state) throws(CofferError) -> (StagedAttachment?, File?) in
            if case .moved(let other) = state.stage { return (other, nil) }
            return (nil, try openInPlace(&state, subject: subject))
        }
        if let moved { return try moved.open(subject: subject) }
        guard let file else { return try store.open(digest, header: header, subject: subject) }
        return try reader(of: file, subject: subject)
    }

    private func reader(of file: File, subject: String) throws(CofferError) -> AttachmentReader {
        try AttachmentReader(
            file, digest, header: header, store.encryption, subject: subject, fileSystem: store.fileSystem)
    }

    /// Its file, wherever it is, as long as it has no row.
    func openInPlace(subject: String) throws(CofferError) -> File? {
        try state.withLock { (state) throws(CofferError) in try openInPlace(&state, subject: subject) }
    }

    private func openInPlace(_ state: inout State, subject: String) throws(CofferError) -> File? {
        switch state.stage {
        case .saved: return nil
        case .sealed(let bytes): return try write(bytes, &state)
        case .placing: throw CofferError(.ioFailed, of: subject, "its file could not be written")
        case .installed, .staged, .left, .moved: break
        }
        if let file = state.file { return file }
        if case .installed(let name, _) = state.stage, let attachments = store.attachments {
            return try store.openFile(name, in: attachments, subject: subject)
        }
        guard let name = state.name else { throw Self.lost }
        return try store.openFile(name, in: incoming, subject: subject)
    }

    static var lost: CofferError {
        CofferError(.damaged, of: unsavedSubject, "its file was lost on a full disk; attach it again")
    }

    /// Whether it has no place yet.
    ///
    /// Throws `damaged` (500) when the file was lost in an earlier attempt.
    func isWaiting() throws(CofferError) -> Bool {
        switch state.withLock(\.stage) {
        case .sealed, .staged: return true
        case .installed: return false
        case .left: throw Self.lost
        case .placing, .saved, .moved: preconditionFailure("installed already")
        }
    }

    /// How many bytes of it are in memory; nil when it has a file.
    var sealedByteCount: Int? {
        if case .sealed(let bytes) = state.withLock(\.stage) { return bytes.count }
        return nil
    }

    /// This content where `current` keeps its own, which may be another generation of the store by now: then it is
    /// encrypted again, once for everybody who holds this.
    ///
    /// Throws `damaged` (500), `noSpace` (507), `ioFailed` (500); it stays what it is then. `reopenRequired` (500) when it is
    /// open what became of its file.
    package func moved(to current: AttachmentStore) throws(CofferError) -> StagedAttachment {
        if store === current { return self }
        return try state.withLock { (state) throws(CofferError) in
            switch state.stage {
            case .moved(let other): return try other.moved(to: current)
            case .saved: return self
            case .placing, .installed, .left:
                throw CofferError(.reopenRequired, of: store.store.path, "an earlier change of its attachments failed")
            case .sealed, .staged: break
            }
            guard let file = try openInPlace(&state, subject: Self.unsavedSubject) else { return self }
            let new = try current.stage(reader(of: file, subject: Self.unsavedSubject))
            closeFile(&state)
            state.stage = .moved(new)
            unlinkIncoming(state)
            state.lease = nil
            return new
        }
    }

    func closeFile(_ state: inout State) {
        guard state.file != nil else { return }
        state.file = nil
        store.openStagedCount.subtract(1, ordering: .relaxed)
    }

    private func unlinkIncoming(_ state: borrowing State) {
        if let name = state.name { try? store.fileSystem.unlink(name, in: incoming) }
    }
}

extension AttachmentStore {
    /// How many staged attachments of a store keep their file open. A process may have open 256 files on macOS and 1,024
    /// on Linux, unless somebody raised that.
    private static let openFileLimit = 64

    /// Whether one more staged attachment keeps its file open: then it is counted.
    func isKeptOpen() -> Bool {
        if openStagedCount.add(1, ordering: .relaxed).newValue <= Self.openFileLimit { return true }
        openStagedCount.subtract(1, ordering: .relaxed)
        return false
    }

    /// Writes the content that `reader` reads, checked on the way, into `incoming/`.
    fileprivate func stage(_ reader: AttachmentReader) throws(CofferError) -> StagedAttachment {
        let writer = try beginStaging()
        do throws(CofferError) {
            try unsafe reader.forEachPiece { (piece) throws(CofferError) in try unsafe writer.write(piece) }
            let staged = try writer.finish()
            guard staged.digest == reader.content else {
                throw CofferError(.damaged, of: reader.subject, "its SHA-256 is wrong")
            }
            return staged
        } catch {
            writer.cancel()
            throw error
        }
    }
}
