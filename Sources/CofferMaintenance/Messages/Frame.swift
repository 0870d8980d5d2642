internal import CofferSealing
internal import Foundation
internal import Synchronization

/// What goes through the socket: a byte for its kind, the length in four bytes, the lowest first, and that many bytes.
struct Frame {
    enum Kind: UInt8 {
        // From who wants something done.

        /// Which store it is about: a ``Hello``.
        case hello = 1
        /// A key: 1 for a password and 0 for 32 bytes, and the key's bytes. Never part of another frame.
        case key = 2
        /// That there is no key, for a store that is not encrypted.
        case noKey = 3
        /// What is to be done: a ``MaintenanceRequest``. Its keys went before it.
        case request = 4
        /// That nobody wants what is under way any more.
        case cancel = 5

        // From who has the store open.

        /// That the store is open here. It is followed by nothing until the key has come.
        case welcome = 16
        /// That it is not.
        case notHere = 17
        /// How far something is, as JSON.
        case progress = 18
        /// One of many: a document or a piece of a content.
        case item = 19
        /// The result, as JSON. The last frame of an answer.
        case result = 20
        /// What went wrong, a `CofferError` as JSON. The last frame of an answer.
        case failure = 21
    }

    let kind: Kind
    let payload: Data

    func decoded<Value: Decodable>(as type: Value.Type) throws(CofferError) -> Value {
        do {
            return try JSONDecoder().decode(type, from: payload)
        } catch {
            throw CofferError(.ioFailed, of: Frame.subject, "it is not what this version understands")
        }
    }

    static let subject = "the socket for maintenance"

    /// The longest frame but for items and results: no path, label or id is longer.
    static let maximumRequestByteCount = 65_536
    /// The longest item or result: a document, or all that a verification found.
    static let maximumAnswerByteCount = 1 << 30
}

/// One end of a connection, where frames come and go. Safe from any thread: one thread reads, and any may write.
final class FrameChannel: Sendable {
    let socket: UnixSocket
    /// One frame at a time.
    private let turn = Lock(())

    init(_ socket: UnixSocket) {
        self.socket = socket
        socket.setWriteTimeout(seconds: Self.writeTimeout)
    }

    /// Seconds that the other side may take to read.
    private static let writeTimeout = 60

    // MARK: Writing

    func send(_ kind: Frame.Kind, _ payload: Data = Data()) throws(CofferError) {
        try turn.withLock { _ throws(CofferError) in try write(kind, payload) }
    }

    func send(_ kind: Frame.Kind, _ value: some Encodable) throws(CofferError) {
        try send(kind, Self.encoded(value))
    }

    /// Sends what may as well get lost, such as how far something is: never waits for the other side.
    func sendIfRoom(_ kind: Frame.Kind, _ value: some Encodable) {
        guard let payload = try? Self.encoded(value) else { return }
        turn.withLock { _ in
            // A socket with room takes some thousand bytes at once.
            if socket.hasRoom { try? write(kind, payload) }
        }
    }

    /// Sends a key, from the memory that it is kept in.
    func send(_ key: SymmetricKey?) throws(CofferError) {
        try turn.withLock { _ throws(CofferError) in
            guard let key else { return try write(.noKey, Data()) }
            try unsafe key.withBytes { (bytes) throws(CofferError) in
                try write(header(.key, bytes.count + 1) + [key.isPassword ? 1 : 0])
                guard unsafe socket.write(bytes) else { throw Self.isLost }
            }
        }
    }

    private func write(_ kind: Frame.Kind, _ payload: Data) throws(CofferError) {
        try write(header(kind, payload.count))
        guard unsafe payload.withUnsafeBytes({ unsafe socket.write($0) }) else { throw Self.isLost }
    }

    private func write(_ bytes: [UInt8]) throws(CofferError) {
        guard unsafe bytes.withUnsafeBytes({ unsafe socket.write($0) }) else { throw Self.isLost }
    }

    private func header(_ kind: Frame.Kind, _ byteCount: Int) -> [UInt8] {
        [kind.rawValue] + (0..<4).map { UInt8(truncatingIfNeeded: byteCount >> (8 * $0)) }
    }

    private static func encoded(_ value: some Encodable) throws(CofferError) -> Data {
        do {
            return try JSONEncoder().encode(value)
        } catch {
            throw CofferError(.ioFailed, of: Frame.subject, "it can't be said", cause: error)
        }
    }

    // MARK: Reading

    /// The next frame but a key.
    ///
    /// - Throws: `closed` (500) when the other side has gone; `ioFailed` (500) for what no frame can be.
    func receive(maximumByteCount: Int) throws(CofferError) -> Frame {
        let (kind, byteCount) = try receiveHeader(maximumByteCount)
        guard kind != .key else { throw Self.isUnknown }
        var payload = Data(count: byteCount)
        guard unsafe payload.withUnsafeMutableBytes({ unsafe socket.read(into: $0) }) else { throw Self.isLost }
        return Frame(kind: kind, payload: payload)
    }

    /// A frame, or a key, which goes right into memory of its own.
    func receiveRequest() throws(CofferError) -> Request {
        let (kind, byteCount) = try receiveHeader(Frame.maximumRequestByteCount)
        guard kind == .key else {
            var payload = Data(count: byteCount)
            guard unsafe payload.withUnsafeMutableBytes({ unsafe socket.read(into: $0) }) else { throw Self.isLost }
            return .frame(Frame(kind: kind, payload: payload))
        }
        guard byteCount > 0 else { throw Self.isUnknown }
        var tag: [UInt8] = [0]
        guard unsafe tag.withUnsafeMutableBytes({ unsafe socket.read(into: $0) }) else { throw Self.isLost }
        var secret = SecretBytes(byteCount: byteCount - 1)
        guard unsafe secret.withMutableBytes({ unsafe socket.read(into: $0) }) else { throw Self.isLost }
        return .key(try SymmetricKey(lent: secret, isPassword: tag[0] == 1))
    }

    enum Request {
        case key(SymmetricKey)
        case frame(Frame)
    }

    private func receiveHeader(_ maximumByteCount: Int) throws(CofferError) -> (Frame.Kind, Int) {
        var header = [UInt8](repeating: 0, count: 5)
        guard unsafe header.withUnsafeMutableBytes({ unsafe socket.read(into: $0) }) else { throw Self.isLost }
        let byteCount = (0..<4).reduce(0) { $0 | Int(header[1 + $1]) << (8 * $1) }
        guard let kind = Frame.Kind(rawValue: header[0]), byteCount <= maximumByteCount else { throw Self.isUnknown }
        return (kind, byteCount)
    }

    private static var isLost: CofferError { CofferError(.closed, of: Frame.subject, "the other process has gone") }
    private static var isUnknown: CofferError {
        CofferError(.ioFailed, of: Frame.subject, "the other process says what this version doesn't understand")
    }
}
