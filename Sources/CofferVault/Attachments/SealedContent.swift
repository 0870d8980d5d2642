package import CofferSealing
internal import Synchronization

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
