package import CofferSealing
internal import Synchronization

/// What a reading of the whole content checks, besides its length.
package enum ContentCheck: Sendable {
    /// The tag of each chunk, which with the header that the row has vouches for every byte: nobody without the key can
    /// have changed one. Where files aren't encrypted there are no tags, and the digest is checked instead.
    case tags
    /// Also the SHA-256 that the row has, which takes more than twice as long. It vouches for what was there before the
    /// encryption too: for the memory and the program that wrote it.
    case digest
}

extension AttachmentReader {
    /// A new reading of the whole content, from its first byte to its last.
    package func wholeRead(checking check: ContentCheck = .digest) -> WholeRead { WholeRead(self, check) }

    /// The whole content at once, checked as ``wholeRead(checking:)`` does.
    package func wholeContent(checking check: ContentCheck = .digest) throws(CofferError) -> [UInt8] {
        try [UInt8](capacity: byteCount) { (output) throws(CofferError) in
            try unsafe output.withUnsafeMutableBufferPointer { (buffer, count) throws(CofferError) in
                try unsafe readWhole(into: UnsafeMutableRawBufferPointer(buffer), checking: check)
                count = byteCount
            }
        }
    }

    /// Fills `output`, which has exactly its room, with the whole content, checked as ``wholeRead(checking:)`` does.
    package func readWhole(
        into output: UnsafeMutableRawBufferPointer, checking check: ContentCheck = .digest
    ) throws(CofferError) {
        precondition(output.count == byteCount, "the content doesn't fit")
        if check == .tags, canBeReadByTwo { return try unsafe readHalves(into: output) }
        let reading = wholeRead(checking: check)
        var count = 0
        // Also for no bytes at all, of which the digest is checked too.
        repeat {
            count += try unsafe reading.read(into: UnsafeMutableRawBufferPointer(rebasing: output[count...]))
        } while count < byteCount
    }

    /// Contents that are as long, in bytes, are read by two threads, where only tags are checked. For one of 1 MiB waking the
    /// other thread takes longer than it saves, and for one of 16 MiB it doesn't.
    package static let bytesReadByTwo = 1 << 24

    /// Fills `output` with the whole content, the second half on another thread, if there is one. Each chunk vouches for
    /// itself, and the file's length was checked: so it doesn't matter which is opened first.
    private func readHalves(into output: UnsafeMutableRawBufferPointer) throws(CofferError) {
        let middle = layout.content(of: layout.lastChunk / 2).lowerBound
        let first = unsafe UnsafeMutableRawBufferPointer(rebasing: output[..<middle])
        // It stays for as long as this call does, and this thread has the other half
        // (test: "Side work that another thread has begun is over when the call returns, also when the other work throws").
        nonisolated(unsafe) let second = unsafe UnsafeMutableRawBufferPointer(rebasing: output[middle...])
        let secondHalf = SecondHalf(self)
        do throws(CofferError) {
            try SideWork.run({ unsafe secondHalf.read(from: middle, into: second) }) { () throws(CofferError) in
                try unsafe read(from: 0, into: first, .first)
            }
            try secondHalf.checkSucceeded()
        } catch {
            unsafe output.initializeMemory(as: UInt8.self, repeating: 0)
            throw error
        }
    }
}

/// What another thread reads of a content, and whether it could.
private final class SecondHalf: Sendable {
    private let reader: AttachmentReader
    private let failure = Lock<CofferError?>(nil)

    init(_ reader: AttachmentReader) { self.reader = reader }

    func read(from start: Int, into output: UnsafeMutableRawBufferPointer) {
        do throws(CofferError) {
            try unsafe reader.read(from: start, into: output, .second)
        } catch {
            failure.withLock { $0 = error }
        }
    }

    /// Throws what the reading threw.
    func checkSucceeded() throws(CofferError) {
        if let error = failure.withLock({ $0 }) { throw error }
    }
}

/// Reads the whole content of an attachment in pieces, once. The last bytes are handed out only when all of it is what was
/// written, as far as ``ContentCheck`` asks.
///
/// Calls may come from any thread, one after another. Holds 256 KiB, or the content if that is less.
package final class WholeRead: Sendable {
    private let reader: AttachmentReader
    private let checksDigest: Bool
    private let state: Lock<State>

    private struct State: ~Copyable {
        var window: ChunkWindow
        /// From when the first bytes are digested, where they are.
        var sha256: StreamingDigest?
        var digestedCount = 0
        /// How much was handed out.
        var position = 0
        /// The chunk that is open in the window, part of it not handed out yet.
        var openChunk: Int?
        var isChecked = false
        var failure: CofferError?
    }

    fileprivate init(_ reader: AttachmentReader, _ check: ContentCheck) {
        self.reader = reader
        checksDigest = check == .digest || !reader.layout.isEncrypted
        let chunkCount = min(reader.layout.lastChunk + 1, ContentLayout.chunksPerCall)
        state = Lock(State(window: ChunkWindow(reader.layout, chunkCount: chunkCount)))
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
        guard checksDigest else { return }
        if state.sha256 == nil { state.sha256 = try StreamingDigest(.sha256) }
        unsafe state.sha256?.update(bytes.bytes)
        state.digestedCount += bytes.count
        if state.digestedCount == reader.byteCount { try checkDigest(&state) }
    }

    private func checkDigest(_ state: inout State) throws(CofferError) {
        guard checksDigest, !state.isChecked else { return }
        // Nothing is digested of no bytes.
        if state.sha256 == nil { state.sha256 = try StreamingDigest(.sha256) }
        guard state.sha256?.finalize() == reader.content.sha256 else {
            throw CofferError(.damaged, of: reader.subject, "its SHA-256 is wrong")
        }
        state.isChecked = true
    }
}
