package import CofferSealing
internal import Synchronization

/// Reads the content of one attachment, in any order.
///
/// It holds the file open, so it goes on reading when the file is removed by a compaction or a key change. Nothing is
/// handed out before its chunk's tag is verified; where files aren't encrypted there isn't one, and only
/// ``wholeRead(checking:)`` notices bytes that were changed.
///
/// Calls may come from any thread. All throw `damaged` (500), naming the attachment, for anything but the bytes that were
/// written, and `ioFailed` (500) when the system can't read them: never fewer bytes than asked for.
package final class AttachmentReader: Sendable {
    package let content: ContentDigest
    package var byteCount: Int { content.byteCount }

    /// Names the attachment in errors.
    let subject: String
    let layout: ContentLayout
    private let file: File
    private let fileSystem: any FileSystem
    private let first: ChunkOpener
    /// Another one of the same file, where two threads may decrypt at a time.
    private let second: ChunkOpener
    let canBeReadByTwo: Bool

    /// Which of the two a thread has. Threads that have the same take turns.
    enum Opener { case first, second }

    /// Checks the size of `file`, its header and, if `opensLastChunk` says so, its last chunk.
    init(
        _ file: File, _ content: ContentDigest, header: [UInt8], _ encryption: AttachmentEncryption?, subject: String,
        fileSystem: any FileSystem, opensLastChunk: Bool = true, canBeReadByTwo: Bool = false
    ) throws(CofferError) {
        let layout = ContentLayout(byteCount: content.byteCount, isEncrypted: encryption != nil)
        guard content.byteCount < ContentLayout.maximumByteCount, header.count == layout.headerByteCount else {
            throw CofferError(.damaged, of: subject, "its row is not one of this store")
        }
        let status = try reading(subject) { () throws(CofferError) in try fileSystem.status(of: file) }
        guard status.kind == .file else { throw CofferError(.damaged, of: subject, "its file is not a file") }
        guard status.byteCount == layout.fileByteCount else {
            throw CofferError(
                .damaged, of: subject, "its file has \(status.byteCount) bytes and not \(layout.fileByteCount)")
        }
        var decryptor: CobblestoneDecryptor?
        var second: CobblestoneDecryptor?
        if let encryption {
            let start = try reading(subject) { () throws(CofferError) in
                try fileSystem.read(header.count, from: file, at: 0)
            }
            guard start == header else {
                throw CofferError(.damaged, of: subject, "its file is another one")
            }
            decryptor = try CobblestoneDecryptor(key: encryption.key, context: encryption.context, header: header)
            guard decryptor != nil else {
                throw CofferError(.damaged, of: subject, "its file was not encrypted for this store")
            }
            if canBeReadByTwo {
                second = try CobblestoneDecryptor(key: encryption.key, context: encryption.context, header: header)
            }
        }
        self.content = content
        self.subject = subject
        self.layout = layout
        self.file = file
        self.fileSystem = fileSystem
        self.canBeReadByTwo = canBeReadByTwo && encryption != nil
        first = ChunkOpener(decryptor)
        self.second = ChunkOpener(second)
        // Only the last chunk says that the content ends where it does.
        // A last chunk that holds nothing but its tag no reading opens.
        let holdsNothing = layout.content(of: layout.lastChunk).isEmpty
        if encryption != nil && (opensLastChunk || holdsNothing) { try verify(chunk: layout.lastChunk) }
    }

    /// Fills `output` with the content from `start` on, as much as it holds. After an error its bytes mean nothing.
    ///
    /// Reads and verifies the chunks that the bytes are in, and no others.
    package func read(from start: Int, into output: UnsafeMutableRawBufferPointer) throws(CofferError) {
        try unsafe read(from: start, into: output, .first)
    }

    func read(from start: Int, into output: UnsafeMutableRawBufferPointer, _ opener: Opener) throws(CofferError) {
        let range = start..<start + output.count
        precondition(start >= 0 && range.upperBound <= byteCount, "outside of the content")
        guard !range.isEmpty else { return }
        let chunks = layout.chunks(holding: range)
        var window = ChunkWindow(layout, chunkCount: min(chunks.count, ContentLayout.chunksPerCall))
        for chunk in chunks {
            if !window.holds(chunk) { try load(&window, from: chunk, upTo: chunks.upperBound) }
            let content = layout.content(of: chunk)
            let part = content.clamped(to: range)
            let place = unsafe UnsafeMutableRawBufferPointer(
                rebasing: output[part.lowerBound - start..<part.upperBound - start])
            if part == content {
                try unsafe open(chunk, in: window, into: place, opener)
            } else {
                let opened = try unsafe open(chunk, in: window, opener)
                let offset = part.lowerBound - content.lowerBound
                unsafe place.copyMemory(from: UnsafeRawBufferPointer(rebasing: opened[offset..<offset + part.count]))
            }
        }
    }

    /// The content in `range`.
    package func bytes(in range: Range<Int>) throws(CofferError) -> [UInt8] {
        try [UInt8](capacity: range.count) { (output) throws(CofferError) in
            try unsafe output.withUnsafeMutableBufferPointer { (buffer, count) throws(CofferError) in
                let part = unsafe UnsafeMutableRawBufferPointer(
                    rebasing: UnsafeMutableRawBufferPointer(buffer)[..<range.count])
                try unsafe read(from: range.lowerBound, into: part)
                count = range.count
            }
        }
    }

    /// Fills `window` with chunks from `first` on, but none from `end` on.
    func load(_ window: inout ChunkWindow, from first: Int, upTo end: Int) throws(CofferError) {
        let chunks = first..<min(end, first + window.chunkCount)
        let stored = layout.stored(chunks)
        let place = unsafe window.fill(with: chunks)
        let count = try reading(subject) { () throws(CofferError) in
            try unsafe fileSystem.read(into: place, from: file, at: stored.lowerBound)
        }
        guard count == stored.count else { throw CofferError(.damaged, of: subject, "its file became shorter") }
    }

    /// Opens a chunk that `window` holds into `output`, which has exactly its room.
    func open(
        _ chunk: Int, in window: borrowing ChunkWindow, into output: UnsafeMutableRawBufferPointer,
        _ opener: Opener = .first
    ) throws(CofferError) {
        guard layout.isEncrypted else {
            return unsafe output.copyMemory(from: UnsafeRawBufferPointer(window[chunk]))
        }
        let sealed = unsafe UnsafeRawBufferPointer(window[chunk])
        let isIntact =
            try unsafe opener == .first
            ? first.open(sealed, index: chunk, into: output) : second.open(sealed, index: chunk, into: output)
        guard isIntact else {
            let content = layout.content(of: chunk)
            throw CofferError(
                .damaged, of: subject, "its bytes from \(content.lowerBound) to \(content.upperBound) were changed")
        }
    }

    /// Opens a chunk that `window` holds where it is, once.
    func open(
        _ chunk: Int, in window: borrowing ChunkWindow, _ opener: Opener = .first
    ) throws(CofferError) -> UnsafeRawBufferPointer {
        let place = unsafe UnsafeMutableRawBufferPointer(
            rebasing: window[chunk].prefix(layout.content(of: chunk).count))
        if layout.isEncrypted { try unsafe open(chunk, in: window, into: place, opener) }
        return UnsafeRawBufferPointer(place)
    }

    /// Lends the whole content to `body`, in pieces of one chunk, each of which is what was encrypted. Where nothing is
    /// encrypted, it is for the caller to check the digest.
    func forEachPiece(
        _ body: (UnsafeRawBufferPointer) throws(CofferError) -> Void
    ) throws(CofferError) {
        guard byteCount > 0 else { return }
        let chunks = layout.chunks(holding: 0..<byteCount)
        var window = ChunkWindow(layout, chunkCount: min(chunks.count, ContentLayout.chunksPerCall))
        for chunk in chunks {
            if !window.holds(chunk) { try load(&window, from: chunk, upTo: chunks.upperBound) }
            try unsafe body(open(chunk, in: window))
        }
    }

    /// Reads all of the content, and compares it with its SHA-256.
    package func check() throws(CofferError) {
        var hasher = try ContentHasher(known: content)
        try unsafe forEachPiece { (piece) throws(CofferError) in unsafe hasher.update(piece.bytes) }
        guard hasher.finalize() == content else {
            throw CofferError(.damaged, of: subject, "its SHA-256 is wrong")
        }
    }

    private func verify(chunk: Int) throws(CofferError) {
        var window = ChunkWindow(layout, chunkCount: 1)
        try load(&window, from: chunk, upTo: chunk + 1)
        _ = try unsafe open(chunk, in: window)
    }
}

/// A decryptor that threads take turns with. Opens nothing where there isn't one.
private struct ChunkOpener: ~Copyable, Sendable {
    private let decryptor: Lock<CobblestoneDecryptor?>

    init(_ decryptor: consuming sending CobblestoneDecryptor?) { self.decryptor = Lock(decryptor) }

    /// Whether the chunk was what was sealed there.
    func open(
        _ sealed: UnsafeRawBufferPointer, index: Int, into output: UnsafeMutableRawBufferPointer
    ) throws(CofferError) -> Bool {
        try decryptor.withLock { (decryptor) throws(CofferError) in
            try unsafe decryptor?.open(sealed, index: index, into: output) == true
        }
    }
}

/// Reads from an attachment's file: errors name the attachment, which users know, and not the file.
func reading<Result>(_ subject: String, _ body: () throws(CofferError) -> Result) throws(CofferError) -> Result {
    do throws(CofferError) {
        return try body()
    } catch {
        throw CofferError(error.code, of: subject, error.detail, cause: error.cause)
    }
}
