package import CofferSealing
internal import Synchronization

/// Content that is whole and in `incoming/`, but not yet the store's.
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
            case .staged, .installed, .left: false
            }
        }
    }

    let incoming: Directory
    let state: Lock<State>

    struct State {
        var stage = Stage.staged
        /// Its name in `incoming/`.
        var name: String
        /// Open as long as there are few, so that a sync reports what became of each write.
        var file: File?
        /// Keeps the generation that it is in; nil when it has no file of its own there any more.
        var lease: GenerationLease?
    }

    enum Stage {
        /// Nobody but this value knows it.
        case staged
        /// In `attachments/` by now. Only the database knows whether it stays, even if this value goes.
        case installed(as: String, Announcement)
        /// It has a row.
        case saved
        /// Not to be installed any more. What is on the disk is unknown, and the next open removes it; or it is lost, since
        /// the disk was too full to take it back.
        case left
        /// The store got another generation, and this is its content there.
        case moved(StagedAttachment)
    }

    /// How many staged attachments of a store keep their file open. A process may have open 256 files on macOS and 1,024
    /// on Linux, unless somebody raised that.
    private static let openFileLimit = 64

    package static let unsavedSubject = "an attachment that is not saved yet"

    init(
        _ store: AttachmentStore, _ lease: GenerationLease, _ file: File, _ name: String, in incoming: Directory,
        digest: ContentDigest, header: [UInt8]
    ) {
        self.store = store
        self.incoming = incoming
        self.digest = digest
        self.header = header
        let isKept = store.openStagedCount.add(1, ordering: .relaxed).newValue <= Self.openFileLimit
        if !isKept { store.openStagedCount.subtract(1, ordering: .relaxed) }
        state = Lock(State(name: name, file: isKept ? file : nil, lease: lease))
    }

    deinit {
        state.withLock { state in
            closeFile(&state)
            if case .staged = state.stage { try? store.fileSystem.unlink(state.name, in: incoming) }
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
        if case .saved = state.stage { return nil }
        if let file = state.file { return file }
        if case .installed(let name, _) = state.stage, let attachments = store.attachments {
            return try store.openFile(name, in: attachments, subject: subject)
        }
        return try store.openFile(state.name, in: incoming, subject: subject)
    }

    /// Throws `damaged` (500) when the file was lost in an earlier attempt.
    func checkInstallable() throws(CofferError) {
        switch state.withLock(\.stage) {
        case .staged: break
        case .left:
            throw CofferError(.damaged, of: Self.unsavedSubject, "its file was lost on a full disk; attach it again")
        case .installed, .saved, .moved: preconditionFailure("installed already")
        }
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
            case .installed, .left:
                throw CofferError(.reopenRequired, of: store.store.path, "an earlier change of its attachments failed")
            case .staged: break
            }
            guard let file = try openInPlace(&state, subject: Self.unsavedSubject) else { return self }
            let new = try current.stage(reader(of: file, subject: Self.unsavedSubject))
            closeFile(&state)
            state.stage = .moved(new)
            try? store.fileSystem.unlink(state.name, in: incoming)
            state.lease = nil
            return new
        }
    }

    func closeFile(_ state: inout State) {
        guard state.file != nil else { return }
        state.file = nil
        store.openStagedCount.subtract(1, ordering: .relaxed)
    }
}

extension AttachmentStore {
    /// Writes the content that `reader` reads, checked on the way, into `incoming/`.
    fileprivate func stage(_ reader: AttachmentReader) throws(CofferError) -> StagedAttachment {
        let writer = try beginStaging()
        do throws(CofferError) {
            try unsafe reader.forEachPiece { (piece) throws(CofferError) in try unsafe writer.write(piece) }
            let staged = try writer.finish()
            guard staged.digest == reader.content else {
                throw CofferError(.damaged, of: reader.subject, "its SHA-256 is another one")
            }
            return staged
        } catch {
            writer.cancel()
            throw error
        }
    }
}
