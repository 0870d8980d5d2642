/// Some chunks of a file as they are stored, in memory.
struct ChunkWindow: ~Copyable {
    /// How many it can hold.
    let chunkCount: Int
    private let layout: ContentLayout
    private let buffer: RawBuffer
    private var chunks = 0..<0
    /// Where in the buffer the stored bytes begin: as far from a page's start as they are in the file. The system copies
    /// from whole pages, and much faster to a place of the same alignment.
    private var offset = 0

    private static let alignment = RawBuffer.alignment

    init(_ layout: ContentLayout, chunkCount: Int) {
        self.layout = layout
        self.chunkCount = chunkCount
        buffer = RawBuffer(byteCount: chunkCount * layout.storedChunkByteCount + Self.alignment)
    }

    func holds(_ chunk: Int) -> Bool { chunks.contains(chunk) }

    /// Where the stored bytes of `chunks` belong.
    mutating func fill(with chunks: Range<Int>) -> UnsafeMutableRawBufferPointer {
        self.chunks = chunks
        let stored = layout.stored(chunks)
        offset = stored.lowerBound % Self.alignment
        return unsafe buffer[offset..<offset + stored.count]
    }

    /// The stored bytes of a chunk that it holds.
    subscript(chunk: Int) -> UnsafeMutableRawBufferPointer {
        precondition(holds(chunk), "not in the window")
        let start = layout.stored(chunks).lowerBound - offset
        let stored = layout.stored(chunk..<chunk + 1)
        return unsafe buffer[stored.lowerBound - start..<stored.upperBound - start]
    }
}
