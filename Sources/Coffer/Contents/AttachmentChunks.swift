internal import CofferModel
internal import CofferSealing
internal import CofferVault
public import Foundation

/// The content of an attachment or blob in pieces of 1 MiB, the last one shorter.
///
/// ```swift
/// if let chunks = try attachment.chunks {
///     for try await chunk in chunks { hasher.update(data: chunk) }
/// }
/// ```
///
/// Every piece has been checked before it comes; after the last one the whole content was. Holds the content open, so that
/// it can be read to its end whatever happens to the database meanwhile.
public struct AttachmentChunks: AsyncSequence, Sendable {
    /// How much comes at once: 1 MiB.
    public static let byteCount = 1 << 20

    private enum Origin: Sendable {
        case memory(Data)
        case reader(AttachmentReader)
    }

    private let origin: Origin

    init?(_ content: Content, subject: String) throws(CofferError) {
        if case .memory(let data) = content.place {
            origin = .memory(data)
        } else if case .source = content.place {
            guard let data = try content.data(subject: subject) else { return nil }
            origin = .memory(data)
        } else {
            guard let reader = try content.reader(subject: subject) else { return nil }
            origin = .reader(reader)
        }
    }

    /// Reads the pieces one after the other.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var cursor: ChunkCursor

        /// The next piece, nil after the last one.
        ///
        /// - Throws: `damaged` (500), `cancelled` (499) when the task was cancelled.
        public mutating func next() async throws -> Data? {
            if Task.isCancelled { throw CofferError(.cancelled) }
            return try cursor.next()
        }
    }

    /// A reading from the beginning.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(cursor: cursor()) }

    /// Gives the pieces to `body` one after the other, for code that is not asynchronous.
    ///
    /// - Throws: what `body` throws; `damaged` (500).
    public func forEach(_ body: (Data) throws -> Void) throws {
        var cursor = cursor()
        while let chunk = try cursor.next() { try body(chunk) }
    }

    func cursor() -> ChunkCursor {
        switch origin {
        case .memory(let data): ChunkCursor(.memory(data))
        case .reader(let reader): ChunkCursor(.reader(reader.wholeRead(checking: .tags)))
        }
    }
}

/// A reading of content from its beginning to its end.
struct ChunkCursor {
    enum Origin {
        case memory(Data)
        case reader(WholeRead)
    }

    private let origin: Origin
    private var offset = 0

    init(_ origin: Origin) { self.origin = origin }

    mutating func next() throws(CofferError) -> Data? {
        switch origin {
        case .memory(let data):
            guard offset < data.count else { return nil }
            let start = data.startIndex + offset
            let end = Swift.min(start + AttachmentChunks.byteCount, data.endIndex)
            offset += end - start
            return data.subdata(in: start..<end)
        case .reader(let reading):
            var chunk = Data(count: AttachmentChunks.byteCount)
            var failure: CofferError?
            let count = unsafe chunk.withUnsafeMutableBytes { buffer in
                do throws(CofferError) {
                    return unsafe try reading.read(into: buffer)
                } catch {
                    failure = error
                    return 0
                }
            }
            if let failure { throw failure }
            return count == 0 ? nil : chunk.prefix(count)
        }
    }
}

/// The content as Foundation's stream.
final class ContentStream: InputStream {
    private let chunks: AttachmentChunks
    private var cursor: ChunkCursor
    private var rest = Data()
    private var status = Stream.Status.notOpen
    private var failure: CofferError?

    init(_ chunks: AttachmentChunks) {
        self.chunks = chunks
        cursor = chunks.cursor()
        super.init(data: Data())
    }

    override var streamStatus: Stream.Status { status }
    override var streamError: (any Error)? { failure }
    override func open() { if status == .notOpen { status = .open } }
    override func close() { status = .closed }

    override var hasBytesAvailable: Bool { status == .open }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        guard status == .open else { return status == .atEnd ? 0 : -1 }
        do {
            if rest.isEmpty {
                guard let next = try cursor.next(), !next.isEmpty else {
                    status = .atEnd
                    return 0
                }
                rest = next
            }
        } catch {
            failure = error
            status = .error
            return -1
        }
        let count = min(maxLength, rest.count)
        unsafe rest.copyBytes(to: buffer, count: count)
        rest = count == rest.count ? Data() : rest.dropFirst(count)
        return count
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool { false }
}
