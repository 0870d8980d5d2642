internal import CofferModel

/// Writes JSON that is a list of rows, as they are read: nothing needs them all in memory.
struct RowWriter {
    let head: [UInt8]
    let tail: [UInt8]

    /// - Parameter next: the next row; nil after the last one.
    func stream(_ next: sending @escaping () throws -> JSONValue?) -> ByteStream {
        let rows = RowSource(head: head, tail: tail, next)
        return ByteStream { try await rows.next() }
    }
}

private actor RowSource {
    /// Rows are gathered into pieces of about that many bytes.
    private static let pieceByteCount = 64 << 10

    private let nextRow: () throws -> JSONValue?
    private var head: [UInt8]
    private let tail: [UInt8]
    private var rowCount = 0
    private var isOver = false

    init(head: [UInt8], tail: [UInt8], _ next: sending @escaping () throws -> JSONValue?) {
        self.head = head
        self.tail = tail
        nextRow = next
    }

    func next() throws -> [UInt8]? {
        guard !isOver else { return nil }
        var piece = head
        head = []
        while piece.count < Self.pieceByteCount {
            guard let row = try nextRow() else {
                isOver = true
                return piece + tail
            }
            if rowCount > 0 { piece += [UInt8(ascii: ","), UInt8(ascii: "\n")] }
            rowCount += 1
            piece += try row.canonicalJSON()
        }
        return piece
    }
}

extension HTTPResponse {
    static func json(_ status: Int, stream: ByteStream) -> HTTPResponse {
        HTTPResponse(status, fields: ["Content-Type": "application/json"], body: .stream(stream, length: nil))
    }
}
