internal import Coffer
@_spi(Tool) internal import CofferKeys
internal import Foundation

/// A rotation of stores of several owners: by one process after the other, each of which becomes an owner's for good before it
/// opens anything.
struct PartedRotation: Sendable {
    let parts: [Part]
    /// The old key, the new one, and those that are kept.
    let keys: [Key]

    /// The stores of one owner, and what is done to them: what the process is told, but for the keys.
    struct Part: Codable, Sendable {
        /// Nil for root's own.
        let owner: Owner?
        let paths: [String]
        let jobCount: Int
        let goesOn: Bool
        let isJSON: Bool
        /// Whether the process says which store it is about to change, and waits for a byte before it does.
        let announcesStores: Bool
        var limits: RotationRun.Limits
        let manner: Rotation.Manner
    }

    /// A line of what the process says.
    enum Message: Codable, Sendable {
        case begins(StoreBeginning)
        case report(RotationReport)
    }

    struct Key: Sendable {
        let key: SymmetricKey
        let isPassword: Bool
    }

    /// Does it, and hands out what the processes report as it comes. Cancelled, it ends with the stores under way.
    ///
    /// - Parameter log: records each store before it is changed.
    func run(
        _ log: ReceiptLog?, _ report: (RotationReport) throws -> Void
    ) async throws -> RotationRun.Summary {
        var summary = RotationRun.Summary(storeCount: parts.reduce(0) { $0 + $1.paths.count })
        for var part in parts where !Task.isCancelled && (part.goesOn || summary.failures.isEmpty) {
            if let limit = part.limits.storeCount { part.limits.storeCount = limit - summary.rotatedCount }
            var rest = Set(part.paths)
            func add(_ result: RotationReport) throws {
                // An owner can tell the process to end: that is a failure, and cancels nothing of others'.
                if result.kind == .cancelled, !Self.isCancelled { return }
                rest.remove(result.path)
                summary.add(result)
                try report(result)
            }
            let status = try await run(part, log, add)
            if status == ExitStatus.ok.rawValue { continue }
            // Whatever it ended with: it may have been told to before it noticed such things.
            if Self.isCancelled {
                summary.isCancelled = true
                break
            }
            for path in part.paths where rest.contains(path) {
                let failure = Failure(
                    message: "\(Console.printable(path)): the process that works as its owner ended with \(status)",
                    code: "ioFailed", status: 500, exit: .failed)
                try add(RotationReport(RotationReceipt(path: path, outcome: .failed(failure)), isJSON: part.isJSON))
            }
        }
        summary.isCancelled = summary.isCancelled || (Task.isCancelled && summary.untriedCount > 0)
        return summary
    }

    /// Whether this process was told to end, also where its task was not yet.
    private static var isCancelled: Bool { Task.isCancelled || (try? Interruption.check()) == nil }

    /// - Returns: the status that the process ended with.
    private func run(
        _ part: Part, _ log: ReceiptLog?, _ report: (RotationReport) throws -> Void
    ) async throws -> Int32 {
        let process = try ChildProcess([RotatePartCommand.name] + (part.isJSON ? ["--json"] : []))
        return try await withTaskCancellationHandler {
            do {
                // One that ends before it has read all says why itself.
                try? PartMessage.send(part, keys, to: process.input)
                let decoder = JSONDecoder()
                try process.forEachLine { line in
                    switch try decoder.decode(Message.self, from: line) {
                    case .report(let result): try report(result)
                    case .begins(let store):
                        let mayChange = (try? log?.begin(store)) != nil
                        try? PartMessage.answer(mayChange, to: process.input)
                    }
                }
                process.endInput()
            } catch {
                process.terminate()
                // It may be waiting for room to write in, and would never end.
                try? process.forEachLine { _ in }
                _ = process.wait()
                throw error
            }
            return process.wait()
        } onCancel: {
            process.terminate()
        }
    }
}

/// What a process that works as an owner reads: how many keys there are, each of them, and the rest as JSON.
///
/// A key is a byte that says whether it is a password, its length, and itself. Numbers have four bytes, the lowest first. So no
/// key is in an argument, in a file or in the environment.
enum PartMessage {
    private static let channelName = "what is sent to the process of the owner"

    static func send(_ part: PartedRotation.Part, _ keys: [PartedRotation.Key], to descriptor: Int32) throws {
        try write(bytes(of: keys.count), to: descriptor)
        for key in keys {
            try unsafe key.key.withBytes { key_ throws(Failure) in
                try write([key.isPassword ? 1 : 0] + bytes(of: key_.count), to: descriptor)
                try unsafe Console.write(key_, to: descriptor, named: channelName)
            }
        }
        let rest = try Array(JSONEncoder().encode(part))
        try write(bytes(of: rest.count) + rest, to: descriptor)
    }

    /// Says whether a store that was announced may be changed.
    static func answer(_ mayChange: Bool, to descriptor: Int32) throws {
        try write([mayChange ? 1 : 0], to: descriptor)
    }

    /// - Throws: where a store that was announced may not be changed.
    static func receiveAnswer(from descriptor: Int32) throws {
        guard try read(1, from: descriptor)[0] == 1 else {
            throw Failure(
                message: "it is as it was: its receipt can't be written, or the rotation that is resumed is another",
                code: "ioFailed", status: 500, exit: .failed)
        }
    }

    /// What was sent. There are at least the old key and the new one.
    static func receive(from descriptor: Int32) throws -> (PartedRotation.Part, keys: [SymmetricKey]) {
        var keys: [SymmetricKey] = []
        for _ in 0..<(try number(from: descriptor)) {
            let isPassword = try read(1, from: descriptor)[0] == 1
            let secret = try read(number(from: descriptor), from: descriptor)
            keys.append(try key(secret, isPassword: isPassword))
        }
        let rest = try data(number(from: descriptor), from: descriptor)
        guard keys.count >= 2, let part = try? JSONDecoder().decode(PartedRotation.Part.self, from: rest) else {
            throw Failure.usage("this is for coffer rotate alone")
        }
        return (part, keys)
    }

    private static func key(_ secret: borrowing SecretBytes, isPassword: Bool) throws -> SymmetricKey {
        try unsafe secret.withBytes { bytes in
            guard isPassword else { return try unsafe SymmetricKey(data: bytes) }
            return unsafe SymmetricKey(password: String(decoding: bytes, as: UTF8.self))
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
            let piece = try read(min(count - data.count, SecretBytes.maximumByteCount), from: descriptor)
            unsafe piece.withBytes { unsafe data.append(contentsOf: $0) }
        }
        return data
    }

    private static func read(_ count: Int, from descriptor: Int32) throws(Failure) -> SecretBytes {
        try Failure.adapting {
            var bytes = SecretBytes()
            try bytes.append(count, of: descriptor, named: channelName)
            return bytes
        }
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) throws(Failure) {
        try Console.write(bytes, to: descriptor, named: channelName)
    }
}
