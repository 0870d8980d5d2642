internal import CofferModel
internal import CofferSealing

/// A multipart message to be sent, whose parts are opened as their turn comes.
package struct MultipartBody: Sendable {
    package struct Part: Sendable {
        let fields: HTTPFields
        let length: Int?
        let open: @Sendable () async throws -> ByteStream

        /// - Parameters:
        ///   - length: in bytes, nil if it is not known.
        ///   - open: called when it is this part's turn.
        package init(_ fields: HTTPFields, length: Int?, open: @escaping @Sendable () async throws -> ByteStream) {
            self.fields = fields
            self.length = length
            self.open = open
        }

        package init(_ fields: HTTPFields, _ bytes: [UInt8]) {
            self.init(fields, length: bytes.count) { ByteStream(bytes) }
        }
    }

    package let boundary: String
    private let parts: [Part]

    /// - Parameter boundary: Default: 128 random bits, which no content holds but by chance.
    package init(_ parts: [Part], boundary: String = MultipartBody.randomBoundary()) {
        self.boundary = boundary
        self.parts = parts
    }

    package static func randomBoundary() -> String {
        let digits = Array("0123456789abcdef")
        return String((0..<32).map { _ in digits.randomElement() ?? "0" })
    }

    /// Of the whole message, in bytes; nil if that of a part is not known.
    package var length: Int? {
        var sum = end.count
        for part in parts {
            guard let length = part.length else { return nil }
            sum = sum.addingSaturated(length).addingSaturated(head(of: part).count)
        }
        return sum
    }

    package var body: HTTPBody { .stream(stream, length: length) }

    /// The message. Where a part brings other than its length, it ends with an error.
    package var stream: ByteStream {
        var rest = parts[...]
        return Self.stream(boundary: boundary) { rest.popFirst() }
    }

    /// A message whose parts are made as their turn comes.
    ///
    /// - Parameter next: the next part; nil after the last one.
    package static func stream(boundary: String, _ next: sending @escaping () throws -> Part?) -> ByteStream {
        let writer = Writer(boundary, next)
        return ByteStream { try await writer.next() }
    }

    private func head(of part: Part) -> [UInt8] { Self.head(of: part, boundary) }

    private var end: [UInt8] { Self.end(boundary) }

    private static func head(of part: Part, _ boundary: String) -> [UInt8] {
        var text = "\r\n--\(boundary)\r\n"
        for (name, value) in part.fields.all { text += "\(name): \(value)\r\n" }
        return Array((text + "\r\n").utf8)
    }

    private static func end(_ boundary: String) -> [UInt8] { Array("\r\n--\(boundary)--".utf8) }

    private actor Writer {
        private let boundary: String
        private let nextPart: () throws -> Part?
        private var current: (part: Part, stream: ByteStream)?
        private var byteCount = 0
        private var isOver = false

        init(_ boundary: String, _ nextPart: sending @escaping () throws -> Part?) {
            self.boundary = boundary
            self.nextPart = nextPart
        }

        func next() async throws -> [UInt8]? {
            if let (part, stream) = current {
                if let piece = try await stream.next() {
                    byteCount += piece.count
                    guard part.length.map({ byteCount <= $0 }) ?? true else { throw wrongLength }
                    return piece
                }
                guard part.length.map({ byteCount == $0 }) ?? true else { throw wrongLength }
                current = nil
            }
            guard !isOver else { return nil }
            guard let part = try nextPart() else {
                isOver = true
                return MultipartBody.end(boundary)
            }
            byteCount = 0
            current = (part, try await part.open())
            return MultipartBody.head(of: part, boundary)
        }

        private var wrongLength: SyncError { SyncError(500, "a content has another length than was known of it") }
    }
}
