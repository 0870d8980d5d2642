internal import CofferModel

/// Writes JSON that is a list of rows, as they are read: nothing needs them all in memory.
struct RowWriter {
    let head: [UInt8]
    let tail: [UInt8]

    /// - Parameter next: the next row; nil after the last one.
    func stream(_ next: sending @escaping () throws -> JSONValue?) -> ByteStream {
        streamTexts { try next()?.canonicalJSON() }
    }

    /// - Parameter next: the next row as text; nil after the last one.
    func streamTexts(_ next: sending @escaping () throws -> [UInt8]?) -> ByteStream {
        var isFirst = true
        return streamPieces {
            guard let row = try next() else { return nil }
            defer { isFirst = false }
            return isFirst ? row : [UInt8(ascii: ","), UInt8(ascii: "\n")] + row
        }
    }

    /// - Parameter next: the next piece of the text between head and tail; nil after the last one.
    func streamPieces(_ next: sending @escaping () throws -> [UInt8]?) -> ByteStream {
        let source = PieceSource(head: head, tail: tail, next)
        return ByteStream { try await source.next() }
    }
}

private actor PieceSource {
    /// What is small is gathered into pieces of about that many bytes.
    private static let pieceByteCount = 64 << 10

    private let nextPiece: () throws -> [UInt8]?
    private var head: [UInt8]
    private let tail: [UInt8]
    private var isOver = false

    init(head: [UInt8], tail: [UInt8], _ next: sending @escaping () throws -> [UInt8]?) {
        self.head = head
        self.tail = tail
        nextPiece = next
    }

    func next() throws -> [UInt8]? {
        guard !isOver else { return nil }
        var gathered = head
        head = []
        while gathered.count < Self.pieceByteCount {
            try Task.checkCancellation()
            guard let piece = try nextPiece() else {
                isOver = true
                return gathered + tail
            }
            gathered += piece
        }
        return gathered
    }
}

extension HTTPResponse {
    static func json(_ status: Int, stream: ByteStream) -> HTTPResponse {
        HTTPResponse(status, fields: ["Content-Type": "application/json"], body: .stream(stream, length: nil))
    }
}
