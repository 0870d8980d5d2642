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

        /// That the store is open here: a ``Welcome``. It is followed by nothing until the key has come.
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
            throw CofferError(.ioFailed, of: Frame.subject, "this version doesn't understand it")
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
                try check(unsafe socket.write(bytes))
            }
        }
    }

    private func write(_ kind: Frame.Kind, _ payload: Data) throws(CofferError) {
        try write(header(kind, payload.count))
        try check(unsafe payload.withUnsafeBytes { unsafe socket.write($0) })
    }

    private func write(_ bytes: [UInt8]) throws(CofferError) {
        try check(unsafe bytes.withUnsafeBytes { unsafe socket.write($0) })
    }

    private func check(_ isWritten: Bool) throws(CofferError) {
        guard !isWritten else { return }
        // A frame of which only a part was written can't be followed by another.
        socket.shutDown()
        throw Self.isLost
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
    /// - Parameter patience: whether to go on waiting.
    /// - Throws: `closed` (500) when the other side has gone, or nobody waits any more; `ioFailed` (500) for what no frame can be.
    func receive(maximumByteCount: Int, while patience: () -> Bool = { true }) throws(CofferError) -> Frame {
        let (kind, byteCount) = try receiveHeader(maximumByteCount, patience)
        guard kind != .key else { throw Self.isUnknown }
        return Frame(kind: kind, payload: try payload(byteCount, patience))
    }

    /// A frame, or a key, which goes right into memory of its own.
    func receiveRequest(while patience: () -> Bool = { true }) throws(CofferError) -> Request {
        let (kind, byteCount) = try receiveHeader(Frame.maximumRequestByteCount, patience)
        guard kind == .key else { return .frame(Frame(kind: kind, payload: try payload(byteCount, patience))) }
        guard byteCount > 0 else { throw Self.isUnknown }
        let tag = try payload(1, patience)
        var secret = SecretBytes(byteCount: byteCount - 1)
        guard unsafe secret.withMutableBytes({ unsafe socket.read(into: $0, while: patience) }) else {
            throw Self.isLost
        }
        return .key(try SymmetricKey(lent: secret, isPassword: tag.first == 1))
    }

    enum Request {
        case key(SymmetricKey)
        case frame(Frame)
    }

    private func receiveHeader(_ maximumByteCount: Int, _ patience: () -> Bool) throws(CofferError) -> (Frame.Kind, Int)
    {
        let header = [UInt8](try payload(5, patience))
        let byteCount = (0..<4).reduce(0) { $0 | Int(header[1 + $1]) << (8 * $1) }
        guard let kind = Frame.Kind(rawValue: header[0]), byteCount <= maximumByteCount else { throw Self.isUnknown }
        return (kind, byteCount)
    }

    private func payload(_ byteCount: Int, _ patience: () -> Bool) throws(CofferError) -> Data {
        var payload = Data(count: byteCount)
        guard unsafe payload.withUnsafeMutableBytes({ unsafe socket.read(into: $0, while: patience) }) else {
            throw Self.isLost
        }
        return payload
    }

    private static var isLost: CofferError { CofferError(.closed, of: Frame.subject, "the other process has gone") }
    /// What is not a frame of this version, or may not come now.
    static var isUnknown: CofferError {
        CofferError(
            .ioFailed, of: Frame.subject, "the other process sent a message that this version doesn't understand")
    }
}
