internal import CZlib

/// Unpacks gzip (RFC 1952) as it comes in: attachments that CouchDB and Couchbase Lite keep packed, and bodies that clients
/// send so.
///
/// Its memory is bounded by what it is asked for at once, however much a piece unpacks to.
@safe package final class GzipDecoder {
    /// The pieces that it gives out have at most that many bytes.
    static let pieceByteCount = 64 << 10

    private let stream: UnsafeMutablePointer<z_stream>
    private var input: [UInt8] = []
    private var inputStart = 0
    /// Whether the end of the packed data was reached.
    package private(set) var isOver = false

    package init() {
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: z_stream())
        guard unsafe coffer_inflate_begin(stream) == Z_OK else { fatalError("zlib has no memory for its state") }
    }

    deinit {
        unsafe inflateEnd(stream)
        unsafe stream.deallocate()
    }

    /// Takes packed bytes. All of those before must have been unpacked.
    package func append(_ bytes: [UInt8]) {
        precondition(inputStart == input.count, "there is packed data left")
        input = bytes
        inputStart = 0
    }

    /// The next unpacked bytes; nil when more packed ones are needed.
    ///
    /// - Throws: ``NotGzip`` for what is not gzip. What stands behind its end has to be gzip as well, whose bytes follow
    ///   (RFC 1952, section 2.2).
    package func next() throws(NotGzip) -> [UInt8]? {
        while inputStart < input.count {
            if isOver {
                guard unsafe inflateReset(stream) == Z_OK else { throw NotGzip() }
                isOver = false
            }
            let output = try unpack()
            if !output.isEmpty { return output }
        }
        return nil
    }

    /// Unpacks as much as fits into a piece: nothing where the packed bytes so far say nothing, and then all of them are taken.
    private func unpack() throws(NotGzip) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: Self.pieceByteCount)
        var (result, consumed, produced) = (Z_OK, 0, 0)
        unsafe input.withUnsafeMutableBufferPointer { input in
            unsafe output.withUnsafeMutableBufferPointer { output in
                guard let source = input.baseAddress, let target = output.baseAddress else { return }
                let available = input.count - inputStart
                unsafe stream.pointee.next_in = source + inputStart
                unsafe stream.pointee.avail_in = UInt32(clamping: available)
                unsafe stream.pointee.next_out = target
                unsafe stream.pointee.avail_out = UInt32(clamping: output.count)
                result = unsafe inflate(stream, Z_NO_FLUSH)
                consumed = unsafe min(available, Int(UInt32.max)) - Int(stream.pointee.avail_in)
                produced = unsafe output.count - Int(stream.pointee.avail_out)
                unsafe stream.pointee.next_in = nil
                unsafe stream.pointee.next_out = nil
            }
        }
        inputStart += consumed
        guard result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR, consumed + produced > 0 else {
            throw NotGzip()
        }
        isOver = result == Z_STREAM_END
        output.removeLast(output.count - produced)
        return output
    }
}

/// Why packed bytes can't be unpacked.
package struct NotGzip: Error {
    init() {}
}
