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

/// Takes a multipart message (RFC 2046 section 5.1) apart as its bytes come in. Does no I/O.
///
/// Its memory is bounded by what it is given at once and by its limits. What is not such a message is a 502.
package struct MultipartParser {
    package enum Event: Equatable {
        case part(HTTPFields)
        case body([UInt8])
        /// The message is over; what comes after is ignored.
        case end

        package static func == (left: Event, right: Event) -> Bool {
            switch (left, right) {
            case (.part(let left), .part(let right)):
                left.all.map(\.name) == right.all.map(\.name) && left.all.map(\.value) == right.all.map(\.value)
            case (.body(let left), .body(let right)): left == right
            case (.end, .end): true
            case (.part, _), (.body, _), (.end, _): false
            }
        }
    }

    /// The header of one part has at most that many bytes, and so has what stands before the first part.
    static let headerByteLimit = 16 << 10
    /// A message has at most that many parts.
    static let partLimit = 100_000

    private enum State { case preamble, delimiter, header, body, end }

    private var state = State.preamble
    private var buffer: [UInt8] = []
    private var start = 0
    /// CR, LF, two hyphens and the boundary.
    private let delimiter: [UInt8]
    private var partCount = 0
    private var preambleByteCount = 0
    /// What the part's Content-Length still allows; nil without one.
    private var remainingByteCount: Int?

    package init(boundary: String) {
        delimiter = Array("\r\n--\(boundary)".utf8)
        // The first delimiter may stand at the very beginning.
        buffer = [0x0D, 0x0A]
    }

    /// Takes the next bytes.
    package mutating func append(_ bytes: [UInt8]) {
        if state == .end { return }
        if start == buffer.count {
            buffer = bytes
        } else {
            buffer.removeSubrange(..<start)
            buffer += bytes
        }
        start = 0
    }

    /// What comes next; nil when more bytes are needed to tell.
    ///
    /// - Throws: ``SyncError`` 502.
    package mutating func next() throws(SyncError) -> Event? {
        while true {
            switch state {
            case .preamble:
                let found = find()
                preambleByteCount += drop(upTo: found ?? buffer.count - (delimiter.count - 1))
                guard preambleByteCount <= Self.headerByteLimit else {
                    throw .garbage("a multipart message without a first part")
                }
                guard found != nil else { return nil }
                start += delimiter.count
                state = .delimiter
            case .delimiter:
                guard let next = try afterDelimiter() else { return nil }
                state = next
                if next == .end { return .end }
            case .header:
                guard let fields = try header() else { return nil }
                state = .body
                return .part(fields)
            case .body:
                return try body()
            case .end:
                return .end
            }
        }
    }

    /// Whether the message has come to its end.
    package var isOver: Bool { state == .end }

    // MARK: Steps

    /// What follows a delimiter: two hyphens end the message, the end of the line begins a part.
    private mutating func afterDelimiter() throws(SyncError) -> State? {
        var at = start
        while at < buffer.count, buffer[at] == 0x20 || buffer[at] == 0x09 { at += 1 }
        guard at - start < 256 else { throw .garbage("a boundary with more behind it") }
        guard buffer.count - at >= 2 else { return nil }
        if at == start, buffer[at] == UInt8(ascii: "-"), buffer[at + 1] == UInt8(ascii: "-") {
            buffer = []
            start = 0
            return .end
        }
        guard buffer[at] == 0x0D, buffer[at + 1] == 0x0A else { throw .garbage("a boundary with more behind it") }
        partCount += 1
        guard partCount <= Self.partLimit else { throw .garbage("more than \(Self.partLimit) parts") }
        // The line's end stays: it may be the first half of the empty line that ends the header.
        start = at
        return .header
    }

    private mutating func header() throws(SyncError) -> HTTPFields? {
        var end: Int?
        var at = start
        while at + 3 < buffer.count {
            if buffer[at] == 0x0D, buffer[at + 1] == 0x0A, buffer[at + 2] == 0x0D, buffer[at + 3] == 0x0A {
                end = at
                break
            }
            at += 1
        }
        guard (end ?? buffer.count) - start <= Self.headerByteLimit else {
            throw .garbage("a part's header of more than \(Self.headerByteLimit) bytes")
        }
        guard let end else { return nil }
        var fields = HTTPFields()
        let lines = String(decoding: buffer[start..<end], as: UTF8.self)
        for line in lines.split(separator: "\r\n") {
            guard let colon = line.firstIndex(of: ":") else { throw .garbage("a part's header without a colon") }
            fields.add(line[..<colon].trimmed, line[line.index(after: colon)...].trimmed)
        }
        remainingByteCount = nil
        if let text = fields["Content-Length"] {
            guard let length = Int(text), length >= 0 else { throw .garbage("a part's Content-Length is invalid") }
            remainingByteCount = length
        }
        // What follows the empty line's own end may be the delimiter at once: its CR and LF are that of the empty line.
        start = end + 2
        return fields
    }

    private var isAtEmptyLine = false

    private mutating func body() throws(SyncError) -> Event? {
        if !isAtEmptyLine {
            // The empty line that ends the header. A delimiter may share its CR and LF where the part has no body at all.
            guard buffer.count - start >= delimiter.count else { return nil }
            isAtEmptyLine = true
            if !buffer[start...].starts(with: delimiter) { start += 2 }
        }
        let found = find()
        let end = found ?? max(start, buffer.count - (delimiter.count - 1))
        if end > start {
            let piece = Array(buffer[start..<end])
            start = end
            if let remaining = remainingByteCount {
                guard piece.count <= remaining else { throw .garbage("a part is longer than its Content-Length") }
                remainingByteCount = remaining - piece.count
            }
            return .body(piece)
        }
        guard let found else { return nil }
        guard (remainingByteCount ?? 0) == 0 else { throw .garbage("a part is shorter than its Content-Length") }
        start = found + delimiter.count
        isAtEmptyLine = false
        state = .delimiter
        return try next()
    }

    // MARK: Searching

    /// Where the next delimiter begins; nil if none is in what is here.
    private func find() -> Int? {
        let last = buffer.count - delimiter.count
        guard start <= last else { return nil }
        let (bytes, pattern) = (buffer.span, delimiter.span)
        var at = start
        while at <= last {
            if bytes[at] == 0x0D, Self.isEqual(bytes, at, pattern) { return at }
            at += 1
        }
        return nil
    }

    private static func isEqual(_ bytes: Span<UInt8>, _ start: Int, _ pattern: Span<UInt8>) -> Bool {
        for place in pattern.indices where bytes[start + place] != pattern[place] { return false }
        return true
    }

    /// Drops the bytes before `end`, and says how many.
    private mutating func drop(upTo end: Int) -> Int {
        let end = max(start, end)
        defer { start = end }
        return end - start
    }
}
