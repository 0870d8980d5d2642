package import CofferSealing
internal import Synchronization

extension AttachmentStore {
    /// Begins to write content into `incoming/`, encrypted from the first byte where the store is.
    ///
    /// Throws `readOnly` (403) for a store that is locked for reading, `reopenRequired` (500) after a sync that failed,
    /// `noSpace` (507) and `ioFailed` (500).
    package func beginStaging() throws(CofferError) -> AttachmentWriter {
        let (incoming, lease) = try mayStage()
        let content = try ContentSealer(newEncryptor())
        let (file, name) = try createIncomingFile(in: incoming)
        return AttachmentWriter(self, lease, file, name, in: incoming, content)
    }

    /// Where staged content goes, and what keeps that in its place.
    func mayStage() throws(CofferError) -> (Directory, GenerationLease) {
        let incoming = try writable(incoming)
        guard let lease = takeLease() else {
            throw CofferError(.busy, of: store.path, "its key was changed at this moment")
        }
        return (incoming, lease)
    }

    /// What encrypts one content; nil if the store isn't encrypted.
    func newEncryptor() throws(CofferError) -> CobblestoneEncryptor? {
        guard let encryption else { return nil }
        return try CobblestoneEncryptor(key: encryption.key, context: encryption.context)
    }

    /// Makes a file of a name that nobody else uses.
    func createIncomingFile(in incoming: Directory) throws(CofferError) -> (File, name: String) {
        let name = try IncomingName.random()
        let file: File
        do throws(CofferError) {
            file = try fileSystem.createFile(name, in: incoming)
        } catch {
            // The directory may be gone with the store.
            try store.checkOpen()
            throw error
        }
        do throws(CofferError) {
            try fileSystem.hand(file, to: owner)
        } catch {
            try? fileSystem.unlink(name, in: incoming)
            throw error
        }
        return (file, name)
    }
}

/// Takes content in pieces of any size, and in one pass digests it, encrypts it and writes it to a file in `incoming/`.
///
/// Its memory is bounded: a chunk for short content, else 256 KiB. Calls may come from any thread, one after
/// another. The file is removed when writing fails or is cancelled, and when nobody finishes it before the last reference
/// goes.
package final class AttachmentWriter: Sendable {
    private let store: AttachmentStore
    private let lease: GenerationLease
    private let file: File
    private let name: String
    private let incoming: Directory
    private let header: [UInt8]
    private let state: Lock<State>

    private struct State: ~Copyable {
        var content: ContentSealer
        var end: End?
    }

    private enum End {
        case finished, cancelled
        case failed(CofferError)
    }

    fileprivate init(
        _ store: AttachmentStore, _ lease: GenerationLease, _ file: File, _ name: String, in incoming: Directory,
        _ content: consuming ContentSealer
    ) {
        self.store = store
        self.lease = lease
        self.file = file
        self.name = name
        self.incoming = incoming
        header = content.header
        state = Lock(State(content: content, end: nil))
    }

    deinit { cancel() }

    /// Takes the next bytes of the content.
    ///
    /// Throws `noSpace` (507) and `ioFailed` (500), again at every call that follows, `cancelled` (499) after ``cancel()``,
    /// and `invalidAttachment` (400) for content of 4 PiB or more.
    package func write(_ bytes: RawSpan) throws(CofferError) {
        try unsafe bytes.withUnsafeBytes { (bytes) throws(CofferError) in try unsafe write(bytes) }
    }

    /// Takes the next bytes of the content.
    package func write(_ bytes: [UInt8]) throws(CofferError) { try unsafe write(bytes.span.bytes) }

    /// Takes the next bytes of the content.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(CofferError) {
        try advance { (content) throws(CofferError) in
            try unsafe content.take(bytes) { (sealed) throws(CofferError) in
                try store.fileSystem.write(sealed, to: file)
            }
        }
    }

    /// Ends the content. The writer takes no more.
    ///
    /// Nothing is durable yet: ``AttachmentStore/install(_:)`` sees to that.
    package func finish() throws(CofferError) -> StagedAttachment {
        let digest = try advance { (content) throws(CofferError) in
            let digest = try content.finish { (sealed) throws(CofferError) in
                try store.fileSystem.write(sealed, to: file)
            }
            // Others may open it, by `contentURL`, and must not write to it.
            if !store.isEncrypted { try store.fileSystem.setPermissions(0o400, of: file) }
            return digest
        }
        state.withLock { $0.end = .finished }
        return StagedAttachment(
            store, lease, file, name, in: incoming, digest: store.adjustDigest(digest), header: header)
    }

    /// Ends the writing and removes the file. Again, and after ``finish()``, has no effect.
    package func cancel() {
        state.withLock { state in
            guard state.end == nil else { return }
            state.end = .cancelled
            try? store.fileSystem.unlink(name, in: incoming)
        }
    }

    private func advance<Result: Sendable>(
        _ body: (inout ContentSealer) throws(CofferError) -> Result
    ) throws(CofferError) -> Result {
        try state.withLock { (state) throws(CofferError) in
            switch state.end {
            case nil: break
            case .failed(let error): throw error
            case .cancelled: throw CofferError(.cancelled, "the attachment's writing was cancelled")
            case .finished: preconditionFailure("the content has ended")
            }
            do throws(CofferError) {
                return try body(&state.content)
            } catch {
                state.end = .failed(error)
                try? store.fileSystem.unlink(name, in: incoming)
                throw error
            }
        }
    }
}

extension AttachmentStore {
    /// How long a content may be that is kept in memory until it gets its place: longer ones gain little by it.
    package static let sealedContentLimit = 1 << 16

    /// How many bytes of such contents there may be: four times what a batch of ``Installation`` has. One batch is being
    /// written while the next one fills, and a transaction may drop some.
    private static let sealedLimit = 4 * Installation.batchByteCount

    /// Whether there is room in memory for content of so many bytes.
    package func canSeal(_ byteCount: Int) -> Bool {
        byteCount <= Self.sealedContentLimit && sealedByteCount.load(ordering: .relaxed) + byteCount <= Self.sealedLimit
    }

    /// Digests short content and, where the store is encrypted, encrypts it, in memory alone: it gets a file when it is
    /// installed, or read before.
    ///
    /// Throws as ``beginStaging()``.
    package func seal(_ content: UnsafeRawBufferPointer) throws(CofferError) -> StagedAttachment {
        let (incoming, lease) = try mayStage()
        var hasher = try ContentHasher()
        unsafe hasher.update(content.bytes)
        var chunks = try ChunkSealer(newEncryptor())
        let header = chunks.header
        let layout = ContentLayout(byteCount: content.count, isEncrypted: isEncrypted)
        var file = header + [UInt8](repeating: 0, count: layout.fileByteCount - header.count)
        var bytes = file.mutableSpan
        for chunk in 0...layout.lastChunk {
            let plaintext = unsafe UnsafeRawBufferPointer(rebasing: content[layout.content(of: chunk)])
            let place = layout.stored(chunk..<chunk + 1)
            try unsafe bytes.withUnsafeMutableBytes { (file) throws(CofferError) in
                let sealed = unsafe UnsafeMutableRawBufferPointer(rebasing: file[place])
                try unsafe chunks.seal(plaintext, isLast: chunk == layout.lastChunk, into: sealed)
            }
        }
        return StagedAttachment(
            self, lease, sealed: file, in: incoming, digest: adjustDigest(hasher.finalize()), header: header)
    }

    /// Writes what is the whole content of a new file.
    fileprivate func write(_ bytes: [UInt8], to file: File) throws(CofferError) {
        if !bytes.isEmpty { try unsafe fileSystem.write(bytes.span.bytes, to: file) }
        // Others may open it, by `contentURL`, and must not write to it.
        if !isEncrypted { try fileSystem.setPermissions(0o400, of: file) }
    }
}

extension StagedAttachment {
    /// Writes content that is in memory to a file in `incoming/`, so that it can be read.
    func write(_ bytes: [UInt8], _ state: inout State) throws(CofferError) -> File {
        let incoming = try store.writable(store.incoming)
        let (file, name) = try store.createIncomingFile(in: incoming)
        do throws(CofferError) {
            try store.write(bytes, to: file)
        } catch {
            try? store.fileSystem.unlink(name, in: incoming)
            throw error
        }
        state.stage = .staged
        state.name = name
        keepOpen(file, &state)
        forget(bytes)
        return file
    }

    /// Writes content that is in memory to a file of this name in `attachments`, which is announced. One that is there has no
    /// row and is replaced.
    ///
    /// On an error some of it may be there.
    func write(
        _ bytes: [UInt8], to attachments: Directory, as name: String, _ intent: InstallIntent, _ state: inout State
    ) throws(CofferError) {
        state.stage = .placing(bytes, as: name, intent)
        let file = try store.createFile(replacing: name, in: attachments)
        try store.fileSystem.hand(file, to: store.owner)
        try store.write(bytes, to: file)
        state.stage = .installed(as: name, intent)
        keepOpen(file, &state)
        forget(bytes)
    }

    /// Content in memory has a file now, or nobody wants it any more.
    func forget(_ bytes: [UInt8]) { store.sealedByteCount.subtract(bytes.count, ordering: .relaxed) }

    private func keepOpen(_ file: File, _ state: inout State) {
        if store.isKeptOpen() { state.file = file }
    }
}
