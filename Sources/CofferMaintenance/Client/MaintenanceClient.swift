internal import Coffer
internal import CofferSealing
internal import Foundation
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A connection to the process that has a store open, from the side of whoever wants something done. Closed when its life ends.
final class MaintenanceClient: Sendable {
    /// Which store is meant, and how long to wait for its process.
    struct Target: Sendable {
        let name: String
        let directory: URL
        let runtimeDirectories: [RuntimeDirectory]
        /// Whether something is to be changed, which a process can't that has it open for reading only.
        var isForWriting = false
        /// Whether somebody wants this process to end: then nobody waits for an answer any more, unless it is about a change.
        var isInterrupted: @Sendable () -> Bool = { false }

        var subject: String { "database \(name)" }
    }

    private let channel: FrameChannel
    /// One request at a time.
    private let turn = Lock(())
    private let target: Target

    /// How long a process may take to say whether it has the store open, or to look at a key while it derives others.
    private static let greetingTime = Duration.seconds(120)
    /// How long a short change may take: others may be in front, each for as long as the process lets them wait.
    private static let changeTime = Duration.seconds(120)
    /// How long it may take from a cancellation to what came of it.
    private static let cancellationTime = Duration.seconds(60)

    private init(_ channel: FrameChannel, _ target: Target) { (self.channel, self.target) = (channel, target) }

    deinit { channel.socket.shutDown() }

    // MARK: Beginning

    /// A connection to the process that has the database open; nil if none accepts it.
    static func connected(to target: Target) throws(CofferError) -> MaintenanceClient? {
        let manager = try Manager(directory: target.directory)
        let place = try FileIdentity(ofDirectoryAt: target.directory.path(percentEncoded: false))
        let hello = Hello(
            name: target.name, store: try FileIdentity(ofDirectoryAt: manager.path(ofDatabaseNamed: target.name)))
        var failure: CofferError?
        for path in target.runtimeDirectories.flatMap({ $0.socketPaths(forStoresIn: place) }) {
            do throws(CofferError) {
                if let client = try connected(to: path, hello, target) { return client }
            } catch {
                // One that is stopped, or another version's, need not be the one that has the store.
                if error.code != .closed { failure = error }
            }
            if target.isInterrupted() { throw CofferError(.cancelled, of: target.subject) }
        }
        if let failure { throw failure }
        return nil
    }

    private static func connected(
        to path: String, _ hello: Hello, _ target: Target
    ) throws(CofferError) -> MaintenanceClient? {
        guard let socket = try UnixSocket.connected(to: path) else { return nil }
        // The key goes there next.
        guard let user = socket.peerUser, user == geteuid() || user == 0 else { return nil }
        let channel = FrameChannel(socket)
        try channel.send(.hello, hello)
        let end = ContinuousClock.now + greetingTime
        let answer = try channel.receive(maximumByteCount: Frame.maximumRequestByteCount) {
            ContinuousClock.now < end && !target.isInterrupted()
        }
        if answer.kind == .failure { throw try answer.decoded(as: CofferError.self) }
        guard answer.kind == .welcome else { return nil }
        let isReadOnly = try answer.decoded(as: Welcome.self).isReadOnly
        guard !isReadOnly || !target.isForWriting else { return nil }
        return MaintenanceClient(channel, target)
    }

    /// - Throws: `wrongKey`, `keyRequired` and `notEncrypted` (401) unless the key opens the database.
    func unlock(with key: SymmetricKey?) throws(CofferError) {
        let end = ContinuousClock.now + Self.greetingTime
        try turn.withLock { _ throws(CofferError) in
            try channel.send(key)
            let isInterrupted = target.isInterrupted
            _ = try answer(as: Bool.self, while: { ContinuousClock.now < end && !isInterrupted() })
        }
    }

    // MARK: Asking

    /// Asks for one result, and waits for it on this thread.
    ///
    /// - Parameter changes: whether it changes something. Then it is waited for, for a while, whoever wants this process to end.
    func ask<Value: Decodable & Sendable>(
        _ request: MaintenanceRequest, _ keys: [SymmetricKey] = [], as type: Value.Type, changes: Bool = false
    ) throws(CofferError) -> Value {
        let end = ContinuousClock.now + Self.changeTime
        let isInterrupted = target.isInterrupted
        return try turn.withLock { _ throws(CofferError) in
            if isInterrupted() { throw CofferError(.cancelled, of: target.subject) }
            try send(request, keys)
            return try answer(as: type, while: { changes ? ContinuousClock.now < end : !isInterrupted() })
        }
    }

    /// Asks for one result. A task that is cancelled has the other side cancel it, and waits for what came of it.
    func perform<Value: Decodable & Sendable, Progress: Decodable & Sendable>(
        _ request: MaintenanceRequest, _ keys: [SymmetricKey] = [], as type: Value.Type,
        progress: (@Sendable (Progress) -> Void)?
    ) async throws -> Value {
        let cancellation = Cancellation()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // The wait is for the other process: no thread of the tasks' is to wait for that.
                Thread.startForMaintenance { [self] in
                    let result: Result<Value, any Error>
                    do throws(CofferError) {
                        result = .success(try performed(request, keys, as: type, cancellation, progress))
                    } catch {
                        result = .failure(error)
                    }
                    continuation.resume(with: result)
                }
            }
        } onCancel: { [channel] in
            // Before the request, there is nothing to be cancelled yet.
            if cancellation.begin() { try? channel.send(.cancel) }
        }
    }

    private func performed<Value: Decodable & Sendable, Progress: Decodable & Sendable>(
        _ request: MaintenanceRequest, _ keys: [SymmetricKey], as type: Value.Type, _ cancellation: Cancellation,
        _ progress: (@Sendable (Progress) -> Void)?
    ) throws(CofferError) -> Value {
        try turn.withLock { _ throws(CofferError) in
            try cancellation.unlessBegun(subject: target.subject) { () throws(CofferError) in
                try send(request, keys)
            }
            return try answer(as: type, while: { !cancellation.hasLasted(Self.cancellationTime) }) {
                (frame) throws(CofferError) in
                if frame.kind == .progress, let progress { progress(try frame.decoded(as: Progress.self)) }
            }
        }
    }

    /// Whether a request was sent, and whether it was cancelled since or before.
    private final class Cancellation: Sendable {
        private struct State {
            var isSent = false
            var time: ContinuousClock.Instant?
        }

        private let state = Lock(State())

        /// - Returns: whether the request was sent by then.
        func begin() -> Bool {
            state.withLock { state in
                state.time = state.time ?? .now
                return state.isSent
            }
        }

        func unlessBegun(subject: String, _ send: () throws(CofferError) -> Void) throws(CofferError) {
            try state.withLock { (state) throws(CofferError) in
                guard state.time == nil else { throw CofferError(.cancelled, of: subject) }
                try send()
                state.isSent = true
            }
        }

        func hasLasted(_ duration: Duration) -> Bool {
            state.withLock { $0.time }.map { ContinuousClock.now - $0 > duration } ?? false
        }
    }

    /// Asks for many items, and hands each to `body` on this thread. Where that throws, nothing more can be asked here.
    func stream<Value: Decodable & Sendable>(
        _ request: MaintenanceRequest, as type: Value.Type, _ body: (Data) throws -> Void
    ) throws -> Value {
        try turn.withLock { _ in
            try send(request, [])
            var failure: (any Error)?
            let isInterrupted = target.isInterrupted
            do throws(CofferError) {
                return try answer(as: type, while: { !isInterrupted() }) { (frame) throws(CofferError) in
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
        as type: Value.Type, while patience: () -> Bool,
        _ body: (Frame) throws(CofferError) -> Void = { (_) throws(CofferError) in }
    ) throws(CofferError) -> Value {
        do throws(CofferError) {
            while true {
                let frame = try channel.receive(maximumByteCount: Frame.maximumAnswerByteCount, while: patience)
                switch frame.kind {
                case .result: return try frame.decoded(as: type)
                case .failure: throw try frame.decoded(as: CofferError.self)
                default: try body(frame)
                }
            }
        } catch {
            // What may still come would be taken for the next answer.
            if error.code == .closed { channel.socket.shutDown() }
            if error.code == .closed, !patience(), target.isInterrupted() {
                throw CofferError(.cancelled, of: target.subject)
            }
            throw error.about(target.subject)
        }
    }
}
