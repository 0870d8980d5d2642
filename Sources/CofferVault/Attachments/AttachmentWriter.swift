package import CofferSealing
internal import Synchronization

extension AttachmentStore {
    /// Begins to write content into `incoming/`, encrypted from the first byte where the store is.
    ///
    /// Throws `readOnly` (403) for a store that is locked for reading, `reopenRequired` (500) after a sync that failed,
    /// `noSpace` (507) and `ioFailed` (500).
    package func beginStaging() throws(CofferError) -> AttachmentWriter {
        let incoming = try writable(incoming)
        let name = try IncomingName.random()
        let encryptor = try encryption.map { (encryption) throws(CofferError) in
            try CobblestoneEncryptor(key: encryption.key, context: encryption.context)
        }
        let file = try fileSystem.createFile(name, in: incoming)
        do throws(CofferError) {
            try fileSystem.hand(name, in: incoming, to: owner)
        } catch {
            try? fileSystem.unlink(name, in: incoming)
            throw error
        }
        return AttachmentWriter(self, file, name, in: incoming, encryptor)
    }
}

/// Takes content in pieces of any size, and in one pass digests it, encrypts it and writes it to a file in `incoming/`.
///
/// Its memory is bounded: a chunk for short content, else about a megabyte. Calls may come from any thread, one after
/// another. The file is removed when writing fails or is cancelled, and when nobody finishes it before the last reference
/// goes.
package final class AttachmentWriter: Sendable {
    private let store: AttachmentStore
    private let file: File
    private let name: String
    private let incoming: Directory
    private let header: [UInt8]
    private let state: Mutex<State>

    private struct State: ~Copyable {
        var content: ContentSealer
        var end: End?
    }

    private enum End {
        case finished, cancelled
        case failed(CofferError)
    }

    fileprivate init(
        _ store: AttachmentStore, _ file: File, _ name: String, in incoming: Directory,
        _ encryptor: consuming CobblestoneEncryptor?
    ) {
        self.store = store
        self.file = file
        self.name = name
        self.incoming = incoming
        let content = ContentSealer(encryptor)
        header = content.header
        state = Mutex(State(content: content, end: nil))
    }

    deinit { cancel() }

    /// Takes the next bytes of the content.
    ///
    /// Throws `noSpace` (507) and `ioFailed` (500), again at every call that follows, and `invalidAttachment` (400) for
    /// content of 4 PiB or more.
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
            store, file, name, in: incoming, digest: store.adjustDigest(digest), header: header)
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
            case .finished, .cancelled: preconditionFailure("the content has ended")
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

/// Cuts content into chunks, digests and seals them, and hands them on in large pieces.
private struct ContentSealer: ~Copyable {
    private var hasher = ContentHasher()
    private var encryptor: CobblestoneEncryptor?
    private let layout: ContentLayout

    /// What goes to the file next: `sealedCount` bytes that are ready, then `openCount` bytes of a chunk that isn't full.
    private var buffer: RawBuffer
    private var sealedCount = 0
    private var openCount = 0

    /// Written at once. Larger ones made nothing faster, and smaller ones leave the caches for the content.
    private static let chunksPerWrite = 64

    let header: [UInt8]

    init(_ encryptor: consuming CobblestoneEncryptor?) {
        header = encryptor?.header ?? []
        self.encryptor = encryptor
        layout = ContentLayout(byteCount: 0, isEncrypted: !header.isEmpty)
        // Most attachments may be short, and many may be written at once.
        buffer = RawBuffer(byteCount: header.count + layout.storedChunkByteCount)
        unsafe buffer[0..<header.count].copyBytes(from: header)
        sealedCount = header.count
    }

    typealias Sink = (borrowing RawSpan) throws(CofferError) -> Void

    mutating func take(_ bytes: UnsafeRawBufferPointer, _ sink: Sink) throws(CofferError) {
        var rest = unsafe bytes[...]
        while unsafe !rest.isEmpty {
            try makeRoom(sink)
            if openCount == 0, unsafe rest.count >= ContentLayout.chunkByteCount {
                try unsafe seal(
                    UnsafeRawBufferPointer(rebasing: rest.prefix(ContentLayout.chunkByteCount)), isLast: false)
                unsafe rest = unsafe rest.dropFirst(ContentLayout.chunkByteCount)
                continue
            }
            let count = unsafe min(rest.count, ContentLayout.chunkByteCount - openCount)
            let start = sealedCount + openCount
            unsafe buffer[start..<start + count].copyMemory(from: UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
            unsafe rest = unsafe rest.dropFirst(count)
            openCount += count
            if openCount == ContentLayout.chunkByteCount { try sealOpen(isLast: false) }
        }
    }

    mutating func finish(_ sink: Sink) throws(CofferError) -> ContentDigest {
        try makeRoom(sink)
        try sealOpen(isLast: true)
        try flush(sink)
        return hasher.finalize()
    }

    /// Makes room for another chunk, unless one is open, which has it.
    private mutating func makeRoom(_ sink: Sink) throws(CofferError) {
        guard openCount == 0, sealedCount + layout.storedChunkByteCount > buffer.byteCount else { return }
        try flush(sink)
        let byteCount = Self.chunksPerWrite * layout.storedChunkByteCount
        if buffer.byteCount < byteCount { buffer = RawBuffer(byteCount: byteCount) }
    }

    private mutating func sealOpen(isLast: Bool) throws(CofferError) {
        try unsafe seal(UnsafeRawBufferPointer(buffer[sealedCount..<sealedCount + openCount]), isLast: isLast)
        openCount = 0
    }

    /// Seals a chunk to where the next one belongs, which may be where it is.
    private mutating func seal(_ chunk: UnsafeRawBufferPointer, isLast: Bool) throws(CofferError) {
        unsafe hasher.update(chunk.bytes)
        let sealed = sealedCount..<sealedCount + chunk.count + layout.tagByteCount
        if encryptor != nil {
            try unsafe encryptor?.seal(chunk, isLast: isLast, into: buffer[sealed])
        } else {
            unsafe buffer[sealed].copyMemory(from: chunk)
        }
        sealedCount = sealed.upperBound
    }

    private mutating func flush(_ sink: Sink) throws(CofferError) {
        guard sealedCount > 0 else { return }
        try unsafe sink(UnsafeRawBufferPointer(buffer[0..<sealedCount]).bytes)
        sealedCount = 0
    }
}
