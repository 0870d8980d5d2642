internal import CofferSealing

/// Seals chunks where there is an encryptor, and copies them where there isn't.
struct ChunkSealer: ~Copyable {
    private var encryptor: CobblestoneEncryptor?
    /// Empty where nothing is encrypted.
    let header: [UInt8]

    init(_ encryptor: consuming CobblestoneEncryptor?) {
        header = encryptor?.header ?? []
        self.encryptor = encryptor
    }

    /// Writes the next chunk to `output`, which is as long as it is sealed, and may begin where the chunk does.
    mutating func seal(
        _ chunk: UnsafeRawBufferPointer, isLast: Bool, into output: UnsafeMutableRawBufferPointer
    ) throws(CofferError) {
        if encryptor != nil {
            try unsafe encryptor?.seal(chunk, isLast: isLast, into: output)
        } else {
            unsafe output.copyMemory(from: chunk)
        }
    }
}

/// Digests content, cuts it into chunks, seals these, and hands them on in large pieces.
struct ContentSealer: ~Copyable {
    private var hasher: ContentHasher
    private var chunks: ChunkPacker

    /// Pieces that are as long, in bytes, are digested on other threads while they are sealed and written.
    static let bytesDigestedApart = 1 << 17

    /// Takes new content, or the content that is `known` already, whose SHA-1 need not be made again.
    init(_ encryptor: consuming CobblestoneEncryptor?, known: ContentDigest? = nil) throws(CofferError) {
        hasher = try ContentHasher(known: known)
        chunks = ChunkPacker(encryptor)
    }

    /// Empty where nothing is encrypted.
    var header: [UInt8] { chunks.header }

    typealias Sink = (borrowing RawSpan) throws(CofferError) -> Void

    mutating func take(_ bytes: UnsafeRawBufferPointer, _ sink: Sink) throws(CofferError) {
        if bytes.count < Self.bytesDigestedApart {
            unsafe hasher.update(bytes.bytes)
            try unsafe chunks.append(bytes, sink)
        } else {
            try unsafe hasher.update(bytes) { () throws(CofferError) in try unsafe chunks.append(bytes, sink) }
        }
    }

    mutating func finish(_ sink: Sink) throws(CofferError) -> ContentDigest {
        try chunks.finish(sink)
        return hasher.finalize()
    }
}

/// Cuts content into chunks, seals them, and hands them on in large pieces.
private struct ChunkPacker: ~Copyable {
    typealias Sink = ContentSealer.Sink

    private var sealer: ChunkSealer
    private let layout: ContentLayout

    /// What goes to the file next: `sealedCount` bytes that are ready, then `openCount` bytes of a chunk that isn't full.
    private var buffer: RawBuffer
    private var sealedCount = 0
    private var openCount = 0

    var header: [UInt8] { sealer.header }

    init(_ encryptor: consuming CobblestoneEncryptor?) {
        sealer = ChunkSealer(encryptor)
        let header = sealer.header
        layout = ContentLayout(byteCount: 0, isEncrypted: !header.isEmpty)
        // Most attachments may be short, and many may be written at once.
        buffer = RawBuffer(byteCount: header.count + layout.storedChunkByteCount)
        unsafe buffer[0..<header.count].copyBytes(from: header)
        sealedCount = header.count
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer, _ sink: Sink) throws(CofferError) {
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

    mutating func finish(_ sink: Sink) throws(CofferError) {
        try makeRoom(sink)
        try sealOpen(isLast: true)
        try flush(sealedCount, sink)
    }

    /// Makes room for another chunk, unless one is open, which has it.
    private mutating func makeRoom(_ sink: Sink) throws(CofferError) {
        guard openCount == 0, sealedCount + layout.storedChunkByteCount > buffer.byteCount else { return }
        if sealedCount >= ContentLayout.bytesPerWrite {
            try flush(ContentLayout.bytesPerWrite, sink)
        } else {
            let larger = RawBuffer(byteCount: ContentLayout.bytesPerWrite + layout.storedChunkByteCount)
            unsafe larger[0..<sealedCount].copyMemory(from: UnsafeRawBufferPointer(buffer[0..<sealedCount]))
            buffer = larger
        }
    }

    private mutating func sealOpen(isLast: Bool) throws(CofferError) {
        try unsafe seal(UnsafeRawBufferPointer(buffer[sealedCount..<sealedCount + openCount]), isLast: isLast)
        openCount = 0
    }

    /// Seals a chunk to where the next one belongs, which may be where it is.
    private mutating func seal(_ chunk: UnsafeRawBufferPointer, isLast: Bool) throws(CofferError) {
        let sealed = sealedCount..<sealedCount + chunk.count + layout.tagByteCount
        try unsafe sealer.seal(chunk, isLast: isLast, into: buffer[sealed])
        sealedCount = sealed.upperBound
    }

    /// Hands on the first `byteCount` bytes that are ready.
    private mutating func flush(_ byteCount: Int, _ sink: Sink) throws(CofferError) {
        guard byteCount > 0 else { return }
        try unsafe sink(UnsafeRawBufferPointer(buffer[0..<byteCount]).bytes)
        // Less than a chunk and a header, so that the two don't overlap.
        let rest = unsafe UnsafeRawBufferPointer(buffer[byteCount..<sealedCount])
        unsafe buffer[0..<rest.count].copyMemory(from: rest)
        sealedCount = rest.count
    }
}
