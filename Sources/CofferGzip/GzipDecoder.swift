internal import CZlib

/// Decompresses gzip (RFC 1952) as it arrives: attachments that CouchDB and Couchbase Lite store compressed, and
/// compressed bodies that clients send.
///
/// Its memory is bounded by the size of a piece, however much the input expands to.
@safe package final class GzipDecoder {
    /// The maximum length of a piece of output.
    static let pieceByteCount = 64 << 10

    private let stream: UnsafeMutablePointer<z_stream>
    private var input: [UInt8] = []
    private var inputStart = 0
    /// Whether the end of the compressed data was reached.
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

    /// Takes compressed bytes. All earlier ones must have been decompressed.
    package func append(_ bytes: [UInt8]) {
        precondition(inputStart == input.count, "there is compressed data left")
        input = bytes
        inputStart = 0
    }

    /// The next decompressed bytes; nil if more compressed bytes are needed.
    ///
    /// - Throws: ``NotGzip`` if the input is not gzip. More data may follow the end, but it has to be gzip too (RFC
    ///   1952, section 2.2).
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

    /// Decompresses as much as fits into a piece. It returns nothing if the input so far yields no output; then all of
    /// it is consumed.
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

/// The input is not gzip.
package struct NotGzip: Error {
    init() {}
}
