/// The parts of a multipart message, read as they come in, one after another.
///
/// A part's body is read before the next part is asked for; what isn't read of it is skipped then. A part may itself be such a
/// message: read it with a reader of its own.
package actor MultipartReader {
    package struct Part: Sendable {
        package let fields: HTTPFields
        /// Ends where the part ends.
        package let body: ByteStream
    }

    private let stream: ByteStream
    private var parser: MultipartParser
    private var current = 0
    private var isInPart = false
    private var pending: MultipartParser.Event?

    package init(_ stream: ByteStream, boundary: String) {
        self.stream = stream
        parser = MultipartParser(boundary: boundary)
    }

    /// - Throws: ``SyncError`` 502 where the fields say nothing of a multipart message.
    package init(_ stream: ByteStream, fields: HTTPFields) throws(SyncError) {
        guard let boundary = fields["Content-Type"].flatMap(MediaType.init)?.boundary else {
            throw .garbage("a multipart message without a boundary")
        }
        self.init(stream, boundary: boundary)
    }

    /// The next part; nil after the last one.
    ///
    /// - Throws: ``SyncError`` 502 for what is not such a message, or ends before its end; what the stream throws.
    package func nextPart() async throws -> Part? {
        while isInPart, try await nextPiece(of: current) != nil {}
        switch try await event() {
        case .part(let fields):
            current += 1
            isInPart = true
            let number = current
            return Part(fields: fields, body: ByteStream { [self] in try await nextPiece(of: number) })
        case .end:
            pending = .end
            // So that the connection can be used again.
            while try await stream.next() != nil {}
            return nil
        case .body:
            throw SyncError.garbage("a multipart message out of order")
        }
    }

    /// The next bytes of the part's body; nil after the last one.
    private func nextPiece(of part: Int) async throws -> [UInt8]? {
        guard part == current, isInPart else { return nil }
        let event = try await event()
        if case .body(let bytes) = event { return bytes }
        isInPart = false
        pending = event
        return nil
    }

    private func event() async throws -> MultipartParser.Event {
        if let event = pending.take() { return event }
        while true {
            if let event = try parser.next() { return event }
            guard let bytes = try await stream.next() else {
                throw SyncError.garbage("a multipart message that ends before its end")
            }
            parser.append(bytes)
        }
    }
}
