package import CofferSealing
internal import Synchronization

extension AttachmentReader {
    /// A new reading of the whole content, from its first byte to its last.
    package func wholeRead() -> WholeRead { WholeRead(self) }

    /// The whole content at once, checked as ``wholeRead()`` does.
    package func wholeContent() throws(CofferError) -> [UInt8] {
        let reading = wholeRead()
        return try [UInt8](capacity: byteCount) { (output) throws(CofferError) in
            try unsafe output.withUnsafeMutableBufferPointer { (buffer, count) throws(CofferError) in
                // Also for no bytes at all, of which the digest is checked too.
                repeat {
                    let rest = unsafe UnsafeMutableRawBufferPointer(
                        rebasing: UnsafeMutableRawBufferPointer(buffer)[count..<byteCount])
                    count += try unsafe reading.read(into: rest)
                } while count < byteCount
            }
        }
    }
}

/// Reads the whole content of an attachment in pieces, once, and checks its length and SHA-256 besides what every read
/// checks: the last bytes are handed out only when all of it is what was written.
///
/// Calls may come from any thread, one after another. Holds about a megabyte, or the content if that is less.
package final class WholeRead: Sendable {
    private let reader: AttachmentReader
    private let state: Mutex<State>

    private struct State: ~Copyable {
        var window: ChunkWindow
        var sha256 = StreamingDigest(.sha256)
        /// How much was opened.
        var digestedCount = 0
        /// How much was handed out.
        var position = 0
        /// The chunk that is open in the window, part of it not handed out yet.
        var openChunk: Int?
        var isChecked = false
        var failure: CofferError?
    }

    fileprivate init(_ reader: AttachmentReader) {
        self.reader = reader
        let chunkCount = min(reader.layout.lastChunk + 1, AttachmentReader.chunksPerRead)
        state = Mutex(State(window: ChunkWindow(reader.layout, chunkCount: chunkCount)))
    }

    /// Fills `output` with the next bytes, and returns how many they are: fewer than it holds only at the end, and 0 after
    /// it.
    ///
    /// An error is thrown again by every call that follows, and nothing of `output` was filled then.
    package func read(into output: UnsafeMutableRawBufferPointer) throws(CofferError) -> Int {
        try state.withLock { (state) throws(CofferError) in
            if let failure = state.failure { throw failure }
            do throws(CofferError) {
                return try unsafe fill(output, &state)
            } catch {
                state.failure = error
                unsafe output.initializeMemory(as: UInt8.self, repeating: 0)
                throw error
            }
        }
    }

    private func fill(_ output: UnsafeMutableRawBufferPointer, _ state: inout State) throws(CofferError) -> Int {
        let layout = reader.layout
        if state.position == layout.byteCount { try checkDigest(&state) }
        var count = 0
        while count < output.count, state.position < layout.byteCount {
            let chunk = state.position / ContentLayout.chunkByteCount
            let content = layout.content(of: chunk)
            let room = unsafe UnsafeMutableRawBufferPointer(rebasing: output[count...])
            let taken: Int
            if state.openChunk != chunk, room.count >= content.count {
                let place = unsafe UnsafeMutableRawBufferPointer(rebasing: room.prefix(content.count))
                try load(chunk, &state)
                try unsafe reader.open(chunk, in: state.window, into: place)
                try unsafe digest(UnsafeRawBufferPointer(place), &state)
                taken = content.count
            } else {
                if state.openChunk != chunk {
                    try load(chunk, &state)
                    try unsafe digest(reader.open(chunk, in: state.window), &state)
                    state.openChunk = chunk
                }
                let offset = state.position - content.lowerBound
                taken = min(content.count - offset, room.count)
                unsafe room.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: state.window[chunk][offset..<offset + taken]))
            }
            count += taken
            state.position += taken
        }
        return count
    }

    private func load(_ chunk: Int, _ state: inout State) throws(CofferError) {
        guard !state.window.holds(chunk) else { return }
        let chunks = reader.layout.chunks(holding: 0..<reader.byteCount)
        try reader.load(&state.window, from: chunk, upTo: chunks.upperBound)
    }

    /// Takes the next bytes of the content, before they are handed out.
    private func digest(_ bytes: UnsafeRawBufferPointer, _ state: inout State) throws(CofferError) {
        unsafe state.sha256.update(bytes.bytes)
        state.digestedCount += bytes.count
        if state.digestedCount == reader.byteCount { try checkDigest(&state) }
    }

    private func checkDigest(_ state: inout State) throws(CofferError) {
        guard !state.isChecked else { return }
        guard state.sha256.finalize() == reader.content.sha256 else {
            throw CofferError(.damaged, of: reader.subject, "its SHA-256 is another one")
        }
        state.isChecked = true
    }
}
