internal import Coffer
internal import CofferSealing
internal import Foundation
internal import Synchronization

/// One connection to a process that wants something done, from the side of the process that has the store open. It has a
/// thread of its own, which waits for frames.
final class MaintenanceSession {
    private let manager: Manager
    private let channel: FrameChannel
    /// The keys that came since the last request.
    private var keys: [SymmetricKey] = []
    /// What is under way.
    private var running: (task: Task<Void, Never>, ended: DispatchSemaphore)?

    /// A peer that hands over more keys than a store has slots is not one of our tools.
    private static let maximumKeyCount = 16
    /// The time in which it has to be said which store is meant, and with which key.
    private static let greetingTime = Duration.seconds(30)

    init(_ manager: Manager, _ channel: FrameChannel) { (self.manager, self.channel) = (manager, channel) }

    /// Goes on until the other side ends it.
    func run() {
        do throws(CofferError) {
            try serve()
        } catch {
            // Whatever is wrong with a frame: nothing is known of those after it.
            try? channel.send(.failure, error)
        }
        running?.task.cancel()
        wait()
        channel.socket.shutDown()
    }

    private func serve() throws(CofferError) {
        let end = ContinuousClock.now + Self.greetingTime
        guard let work = try greet(until: end) else { return try channel.send(.notHere) }
        try channel.send(.result, true)
        while true {
            switch try channel.receiveRequest() {
            case .key(let key):
                guard keys.count < Self.maximumKeyCount else { throw FrameChannel.isUnknown }
                keys.append(key)
            case .frame(let frame) where frame.kind == .cancel:
                running?.task.cancel()
            case .frame(let frame) where frame.kind == .request:
                let request = try frame.decoded(as: MaintenanceRequest.self)
                // The answer to the one before was sent, or this would not have come.
                wait()
                perform(request, work)
            case .frame:
                throw FrameChannel.isUnknown
            }
        }
    }

    // MARK: Beginning

    /// What is done to the database that is meant; nil if that isn't open here. A key that doesn't open it gets no
    /// second try on this connection.
    private func greet(until end: ContinuousClock.Instant) throws(CofferError) -> MaintenanceWork? {
        func next() throws(CofferError) -> FrameChannel.Request {
            try channel.receiveRequest { ContinuousClock.now < end }
        }
        guard case .frame(let frame) = try next(), frame.kind == .hello else { throw FrameChannel.isUnknown }
        guard try frame.decoded(as: HelloVersion.self).version == Hello.currentVersion else {
            throw CofferError(.unsupportedFormat, of: Frame.subject, "the other process speaks another version")
        }
        let hello = try frame.decoded(as: Hello.self)
        guard let database = try MaintenanceWork.database(hello, manager) else { return nil }
        try channel.send(.welcome, Welcome(isReadOnly: database.isReadOnly))
        let key: SymmetricKey?
        switch try next() {
        case .key(let given): key = given
        case .frame(let frame) where frame.kind == .noKey: key = nil
        case .frame: throw FrameChannel.isUnknown
        }
        return try MaintenanceWork(on: database, hello, manager, openedBy: key)
    }

    // MARK: Working

    private func perform(_ request: MaintenanceRequest, _ work: MaintenanceWork) {
        let (keys, channel) = (keys, channel)
        self.keys = []
        do throws(CofferError) {
            // On this thread, which is nobody else's: it may wait for a derivation, and for the other side to read.
            let database = try work.database()
            if try work.answer(request, keys, on: database, to: channel) { return }
            start(request, keys, work, database)
        } catch {
            try? channel.send(.failure, error)
        }
    }

    /// Begins long work, which a frame can cancel, and has its result sent by a thread that may wait for that.
    private func start(
        _ request: MaintenanceRequest, _ keys: [SymmetricKey], _ work: MaintenanceWork, _ database: Database
    ) {
        let channel = channel
        let done = DispatchSemaphore(value: 0)
        let outcome = Outcome()
        // Beside the app's own tasks: where these hold all threads of their priority, this goes on all the same.
        let task = Task.detached(priority: .utility) {
            do {
                let result = try await work.result(of: request, keys, on: database) {
                    channel.sendIfRoom(.progress, $0)
                }
                outcome.set(.success(result))
            } catch {
                outcome.set(.failure(error as? CofferError ?? CofferError(.ioFailed, cause: error)))
            }
            done.signal()
        }
        let ended = DispatchSemaphore(value: 0)
        Thread.startForMaintenance {
            done.wait()
            switch outcome.get() {
            case .success(let result): try? channel.send(.result, result)
            case .failure(let error): try? channel.send(.failure, error)
            case nil: break
            }
            ended.signal()
        }
        running = (task, ended)
    }

    /// What came of work, on its way from the task to the thread that says it.
    private final class Outcome: Sendable {
        private let value = Lock<Result<any Encodable & Sendable, CofferError>?>(nil)

        func set(_ result: Result<any Encodable & Sendable, CofferError>) { value.withLock { $0 = result } }
        func get() -> Result<any Encodable & Sendable, CofferError>? { value.withLock { $0 } }
    }

    /// Waits for the end of what is under way.
    private func wait() {
        running?.ended.wait()
        running = nil
    }
}
