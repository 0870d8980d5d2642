internal import Coffer
internal import Foundation
internal import Synchronization
@_spi(Tool) internal import CofferKeys

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// What a process that works as an owner says on its standard output, and is answered on its standard input. Safe from any
/// thread.
final class PartChannel: Sendable {
    /// One message at a time, and with it the answer to it.
    private let turn = Mutex(())
    /// When it was last said of each store how far it is.
    private let lastProgress = Mutex<[String: ContinuousClock.Instant]>([:])

    /// Says that a store is about to be changed, and waits until it may be.
    ///
    /// - Throws: where it may not, or nobody listens any more.
    func announce(_ store: StoreBeginning) throws {
        try turn.withLock { _ in
            try Self.write(.begins(store))
            try PartMessage.receiveAnswer(from: STDIN_FILENO)
        }
    }

    /// Asks for the keys of a store.
    ///
    /// - Throws: if the keys can't be had, or the process that was asked has ended.
    func keys(ofStoreAt path: String, _ uuid: UUID) throws -> [SymmetricKey] {
        try turn.withLock { _ in
            try Self.write(.wantsKeys(path: path, uuid: uuid))
            return try PartMessage.receiveKeys(from: STDIN_FILENO)
        }
    }

    /// Asks for the new key of a store.
    ///
    /// - Throws: if it can't be had, or the process that was asked has ended.
    func newKey(ofStoreAt path: String, _ uuid: UUID) throws -> SymmetricKey {
        let keys = try turn.withLock { _ in
            try Self.write(.wantsNewKey(path: path, uuid: uuid))
            return try PartMessage.receiveKeys(from: STDIN_FILENO)
        }
        guard let key = keys.first else { throw Failure.usage("only coffer rotate runs this") }
        return key
    }

    /// Says what became of a store.
    func report(_ report: RotationReport) throws {
        _ = lastProgress.withLock { $0.removeValue(forKey: report.path) }
        try turn.withLock { _ in try Self.write(.report(report)) }
    }

    /// Says how far a store is, but not more than ten times a second. What nobody hears keeps nothing from being done.
    func show(_ progress: StoreProgress) {
        let now = ContinuousClock.now
        let isDue = lastProgress.withLock { last in
            if let time = last[progress.path], now - time < .milliseconds(100) { return false }
            last[progress.path] = now
            return true
        }
        if isDue { try? turn.withLock { _ in try Self.write(.progress(progress)) } }
    }

    private static func write(_ message: PartedRotation.Message) throws {
        try Console.write(Array(JSONEncoder().encode(message)) + [UInt8(ascii: "\n")], to: STDOUT_FILENO)
    }
}

/// What a process that works as an owner reads: how many keys there are, each of them, and the rest as JSON.
///
/// A key is a byte that says whether it is a password, its length, and itself. Numbers have four bytes, the lowest first. So no
/// key is in an argument, in a file or in the environment.
enum PartMessage {
    private static let channelName = "the message to the owner's process"

    static func send(_ part: some Encodable, _ keys: [PartedRotation.Key], to descriptor: Int32) throws {
        try send(keys, to: descriptor)
        try send(JSONEncoder().encode(part), to: descriptor)
    }

    private static func send(_ keys: [PartedRotation.Key], to descriptor: Int32) throws {
        try write(bytes(of: keys.count), to: descriptor)
        for key in keys {
            try unsafe key.key.withBytes { key_ throws(Failure) in
                try write([key.isPassword ? 1 : 0] + bytes(of: key_.count), to: descriptor)
                try unsafe Console.write(key_, to: descriptor, named: channelName)
            }
        }
    }

    private static func send(_ data: Data, to descriptor: Int32) throws {
        try write(bytes(of: data.count) + Array(data), to: descriptor)
    }

    /// Answers a process that asked for a store's keys: with the keys, or with the reason that they can't be had.
    static func answer(with keys: Result<[PartedRotation.Key], any Error>, to descriptor: Int32) throws {
        switch keys {
        case .success(let keys):
            try write([1], to: descriptor)
            try send(keys, to: descriptor)
        case .failure(let error):
            try write([0], to: descriptor)
            let failure = error as? Failure ?? .keyUnavailable("the key of the store could not be read")
            try send(JSONEncoder().encode(failure), to: descriptor)
        }
    }

    /// The keys that were asked for: the old one, the new one, and those that are kept.
    static func receiveKeys(from descriptor: Int32) throws -> [SymmetricKey] {
        guard try read(1, from: descriptor)[0] == 1 else {
            throw try JSONDecoder().decode(Failure.self, from: data(number(from: descriptor), from: descriptor))
        }
        return try keys(from: descriptor)
    }

    private static func keys(from descriptor: Int32) throws -> [SymmetricKey] {
        var keys: [SymmetricKey] = []
        for _ in 0..<(try number(from: descriptor)) {
            let isPassword = try read(1, from: descriptor)[0] == 1
            let secret = try read(number(from: descriptor), from: descriptor)
            keys.append(try key(secret, isPassword: isPassword))
        }
        return keys
    }

    /// Says whether a store that was announced may be changed.
    static func answer(_ mayChange: Bool, to descriptor: Int32) throws {
        try write([mayChange ? 1 : 0], to: descriptor)
    }

    /// - Throws: where a store that was announced may not be changed.
    static func receiveAnswer(from descriptor: Int32) throws {
        guard try read(1, from: descriptor)[0] == 1 else {
            throw Failure(
                message: "it is as it was: its receipt can't be written", code: "ioFailed", status: 500, exit: .failed)
        }
    }

    /// What was sent.
    static func receive<Part: Decodable>(
        _ type: Part.Type, from descriptor: Int32
    ) throws -> (Part, keys: [SymmetricKey]) {
        let keys = try keys(from: descriptor)
        let rest = try data(number(from: descriptor), from: descriptor)
        guard let part = try? JSONDecoder().decode(type, from: rest) else {
            throw Failure.usage("only coffer runs this")
        }
        return (part, keys)
    }

    private static func key(_ secret: borrowing KeyBytes, isPassword: Bool) throws -> SymmetricKey {
        try unsafe secret.withBytes { bytes in
            guard isPassword else { return try unsafe SymmetricKey(data: bytes) }
            let password = unsafe String(decoding: bytes, as: UTF8.self)
            let key = SymmetricKey(password: password)
            ForgottenEncoding.note(KeyReading(key: key, password: password), of: nil)
            return key
        }
    }

    private static func bytes(of number: Int) -> [UInt8] {
        stride(from: 0, to: 32, by: 8).map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    private static func number(from descriptor: Int32) throws(Failure) -> Int {
        let bytes = try read(4, from: descriptor)
        return (0..<4).reduce(0) { $0 | Int(bytes[$1]) << (8 * $1) }
    }

    private static func data(_ count: Int, from descriptor: Int32) throws(Failure) -> Data {
        var data = Data()
        while data.count < count {
            let piece = try read(min(count - data.count, KeyBytes.maximumByteCount), from: descriptor)
            unsafe piece.withBytes { unsafe data.append(contentsOf: $0) }
        }
        return data
    }

    private static func read(_ count: Int, from descriptor: Int32) throws(Failure) -> KeyBytes {
        try Failure.adapting {
            var bytes = KeyBytes()
            try bytes.append(count, of: descriptor, named: channelName)
            return bytes
        }
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) throws(Failure) {
        try Console.write(bytes, to: descriptor, named: channelName)
    }
}
