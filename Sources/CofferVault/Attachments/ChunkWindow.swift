/// Some chunks of a file as they are stored, in memory.
struct ChunkWindow: ~Copyable {
    /// How many it can hold.
    let chunkCount: Int
    private let layout: ContentLayout
    private let buffer: RawBuffer
    private var chunks = 0..<0

    init(_ layout: ContentLayout, chunkCount: Int) {
        self.layout = layout
        self.chunkCount = chunkCount
        buffer = RawBuffer(byteCount: chunkCount * layout.storedChunkByteCount)
    }

    func holds(_ chunk: Int) -> Bool { chunks.contains(chunk) }

    /// Where the stored bytes of `chunks` belong.
    mutating func fill(with chunks: Range<Int>) -> UnsafeMutableRawBufferPointer {
        self.chunks = chunks
        return unsafe buffer[0..<layout.stored(chunks).count]
    }

    /// The stored bytes of a chunk that it holds.
    subscript(chunk: Int) -> UnsafeMutableRawBufferPointer {
        precondition(holds(chunk), "not in the window")
        let start = layout.stored(chunks).lowerBound
        let stored = layout.stored(chunk..<chunk + 1)
        return unsafe buffer[stored.lowerBound - start..<stored.upperBound - start]
    }
}
