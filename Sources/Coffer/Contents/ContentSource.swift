internal import CofferSealing
internal import CofferVault
internal import Foundation
internal import Synchronization

/// Something that content is read from, once, from its beginning to its end.
protocol ContentSource: Sendable {
    /// Whether ``read(_:)`` brings the same again.
    var canBeReadAgain: Bool { get }

    /// Gives all bytes to `body`, in pieces.
    ///
    /// - Throws: `invalidAttachment` (400) where it can't be read, with the reason as its cause; what `body` throws.
    func read(_ body: (UnsafeRawBufferPointer) throws(CofferError) -> Void) throws(CofferError)
}

/// How much is read at once.
private let pieceByteCount = 1 << 20

struct DataSource: ContentSource {
    let data: Data
    init(_ data: Data) { self.data = data }
    var canBeReadAgain: Bool { true }

    func read(_ body: (UnsafeRawBufferPointer) throws(CofferError) -> Void) throws(CofferError) {
        // Data may be of several regions, each lent for itself.
        for region in data.regions {
            var failure: CofferError?
            unsafe region.withUnsafeBytes { bytes in
                do throws(CofferError) { try unsafe body(bytes) } catch { failure = error }
            }
            if let failure { throw failure }
        }
    }
}

struct FileSource: ContentSource {
    let url: URL
    var canBeReadAgain: Bool { true }

    /// - Throws: `invalidAttachment` (400) where there is no such file, so that it is known when it is named.
    init(_ url: URL) throws(CofferError) {
        guard url.isFileURL else { throw CofferError(.invalidAttachment, "the URL is not a file URL") }
        self.url = url
        do {
            try FileHandle(forReadingFrom: url).close()
        } catch {
            throw CofferError(.invalidAttachment, of: "file \(url.lastPathComponent)", "it can't be read", cause: error)
        }
    }

    func read(_ body: (UnsafeRawBufferPointer) throws(CofferError) -> Void) throws(CofferError) {
        do {
            let file = try FileHandle(forReadingFrom: url)
            defer { try? file.close() }
            while let piece = try file.read(upToCount: pieceByteCount), !piece.isEmpty {
                unsafe try DataSource(piece).read(body)
            }
        } catch let error as CofferError {
            throw error
        } catch {
            throw CofferError(.invalidAttachment, of: "file \(url.lastPathComponent)", "it can't be read", cause: error)
        }
    }
}

/// A stream, which is read by the first who asks.
final class StreamSource: ContentSource {
    private let stream: Lock<InputStream?>
    var canBeReadAgain: Bool { false }

    init(_ stream: sending InputStream) { self.stream = Lock(stream) }

    func read(_ body: (UnsafeRawBufferPointer) throws(CofferError) -> Void) throws(CofferError) {
        guard let stream = stream.withLock({ $0.take() }) else {
            throw CofferError(.invalidAttachment, "the stream was read already")
        }
        if stream.streamStatus == .notOpen { stream.open() }
        defer { stream.close() }
        var piece = [UInt8](repeating: 0, count: pieceByteCount)
        while true {
            let count = unsafe stream.read(&piece, maxLength: piece.count)
            if count == 0 { return }
            guard count > 0 else {
                throw CofferError(.invalidAttachment, "the stream can't be read to its end", cause: stream.streamError)
            }
            var failure: CofferError?
            unsafe piece.withUnsafeBytes { bytes in
                do throws(CofferError) {
                    unsafe try body(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
                } catch {
                    failure = error
                }
            }
            if let failure { throw failure }
        }
    }
}

/// Content that is saved already, perhaps in another database.
struct ReaderSource: ContentSource {
    let reader: AttachmentReader
    init(_ reader: AttachmentReader) { self.reader = reader }
    var canBeReadAgain: Bool { true }

    func read(_ body: (UnsafeRawBufferPointer) throws(CofferError) -> Void) throws(CofferError) {
        var offset = 0
        while offset < reader.byteCount {
            let end = min(offset + pieceByteCount, reader.byteCount)
            unsafe try DataSource(Data(try reader.bytes(in: offset..<end))).read(body)
            offset = end
        }
    }
}
