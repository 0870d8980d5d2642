internal import Coffer
internal import CofferSealing
internal import Foundation
internal import Synchronization

/// A connection to the process that has a store open, from the side of who wants something done. Closed when its life ends.
final class MaintenanceClient: Sendable {
    private let channel: FrameChannel
    /// One request at a time.
    private let turn = Lock(())
    private let subject: String

    private init(_ channel: FrameChannel, _ subject: String) { (self.channel, self.subject) = (channel, subject) }

    deinit { channel.socket.shutDown() }

    // MARK: Beginning

    /// Seconds that a process may take to say whether it has the store open.
    private static let greetingTimeout = 30

    /// A connection to the process that has the database open; nil where none accepts it.
    static func connected(
        named name: String, in directory: URL, _ runtimeDirectory: RuntimeDirectory
    ) throws(CofferError) -> MaintenanceClient? {
        let path = directory.path(percentEncoded: false)
        let place = try FileIdentity(ofDirectoryAt: path)
        let store = try FileIdentity(
            ofDirectoryAt: Manager(directory: directory).path(ofDatabaseNamed: name))
        for path in runtimeDirectory.socketPaths(forStoresIn: place) {
            // One that is at its end, or that is another version's, is none that has the store.
            guard let socket = try? UnixSocket.connected(to: path) else { continue }
            let channel = FrameChannel(socket)
            socket.setReadTimeout(seconds: greetingTimeout)
            guard (try? channel.send(.hello, Hello(name: name, store: store))) != nil,
                let answer = try? channel.receive(maximumByteCount: Frame.maximumRequestByteCount)
            else { continue }
            if answer.kind == .failure { throw try answer.decoded(as: CofferError.self) }
            guard answer.kind == .welcome else { continue }
            socket.setReadTimeout(seconds: nil)
            return MaintenanceClient(channel, "database \(name)")
        }
        return nil
    }

    /// - Throws: `wrongKey`, `keyRequired` and `notEncrypted` (401) unless the key opens the database.
    func unlock(with key: SymmetricKey?) throws(CofferError) {
        try turn.withLock { _ throws(CofferError) in
            try channel.send(key)
            _ = try answer(as: Bool.self) { _ throws(CofferError) in }
        }
    }

    // MARK: Asking

    /// Asks for one result, and waits for it on this thread.
    func ask<Value: Decodable & Sendable>(
        _ request: MaintenanceRequest, _ keys: [SymmetricKey] = [], as type: Value.Type
    ) throws(CofferError) -> Value {
        try turn.withLock { _ throws(CofferError) in
            try send(request, keys)
            return try answer(as: type) { _ throws(CofferError) in }
        }
    }

    /// Asks for one result. A task that is cancelled has the other side cancel it, and waits for what came of it.
    func perform<Value: Decodable & Sendable, Progress: Decodable & Sendable>(
        _ request: MaintenanceRequest, _ keys: [SymmetricKey] = [], as type: Value.Type,
        progress: (@Sendable (Progress) -> Void)?
    ) async throws -> Value {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // The wait is the other process's work: no thread of the tasks' is to wait for that.
                let thread = Thread {
                    let result: Result<Value, any Error>
                    do throws(CofferError) {
                        result = .success(
                            try self.turn.withLock { _ throws(CofferError) in
                                try self.send(request, keys)
                                return try self.answer(as: type) { (frame) throws(CofferError) in
                                    if frame.kind == .progress, let progress {
                                        progress(try frame.decoded(as: Progress.self))
                                    }
                                }
                            })
                    } catch {
                        result = .failure(error)
                    }
                    continuation.resume(with: result)
                }
                thread.name = "coffer.maintenance"
                thread.start()
            }
        } onCancel: {
            try? channel.send(.cancel)
        }
    }

    /// Asks for many items, and hands each to `body` on this thread. Where that throws, nothing more can be asked here.
    func stream<Value: Decodable & Sendable>(
        _ request: MaintenanceRequest, as type: Value.Type, _ body: (Data) throws -> Void
    ) throws -> Value {
        try turn.withLock { _ in
            try send(request, [])
            var failure: (any Error)?
            do throws(CofferError) {
                return try answer(as: type) { (frame) throws(CofferError) in
                    guard frame.kind == .item else { return }
                    do {
                        try body(frame.payload)
                    } catch {
                        failure = error
                        channel.socket.shutDown()
                        throw CofferError(.cancelled)
                    }
                }
            } catch {
                throw failure ?? error
            }
        }
    }

    private func send(_ request: MaintenanceRequest, _ keys: [SymmetricKey]) throws(CofferError) {
        for key in keys { try channel.send(key) }
        try channel.send(.request, request)
    }

    /// Reads to the end of an answer.
    private func answer<Value: Decodable & Sendable>(
        as type: Value.Type, _ body: (Frame) throws(CofferError) -> Void
    ) throws(CofferError) -> Value {
        do throws(CofferError) {
            while true {
                let frame = try channel.receive(maximumByteCount: Frame.maximumAnswerByteCount)
                switch frame.kind {
                case .result: return try frame.decoded(as: type)
                case .failure: throw try frame.decoded(as: CofferError.self)
                default: try body(frame)
                }
            }
        } catch {
            throw error.about(subject)
        }
    }
}
