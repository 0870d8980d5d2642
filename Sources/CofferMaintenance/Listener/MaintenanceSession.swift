internal import Coffer
internal import CofferSealing
internal import Foundation

/// One connection to a process that wants something done, from the side of the process that has the store open. It has a
/// thread of its own, which waits for frames.
final class MaintenanceSession {
    private let manager: Manager
    private let channel: FrameChannel
    /// The keys that came since the last request.
    private var keys: [SymmetricKey] = []
    /// What is under way.
    private var task: Task<Void, Never>?

    /// Who may hand over more keys than a store has slots is no tool of ours.
    private static let maximumKeyCount = 16
    /// Seconds in which it has to be said which store is meant, and with which key.
    private static let greetingTimeout = 30

    init(_ manager: Manager, _ channel: FrameChannel) { (self.manager, self.channel) = (manager, channel) }

    /// Goes on until the other side ends it.
    func run() {
        do throws(CofferError) {
            try serve()
        } catch {
            // Whatever is wrong with a frame: nothing is known of those after it.
            try? channel.send(.failure, error)
        }
        task?.cancel()
        wait()
        channel.socket.shutDown()
    }

    private func serve() throws(CofferError) {
        channel.socket.setReadTimeout(seconds: Self.greetingTimeout)
        guard let database = try greet() else { return try channel.send(.notHere) }
        let work = try openWork(on: database)
        channel.socket.setReadTimeout(seconds: nil)
        while true {
            switch try channel.receiveRequest() {
            case .key(let key):
                guard keys.count < Self.maximumKeyCount else { throw Self.isUnknown }
                keys.append(key)
            case .frame(let frame) where frame.kind == .cancel:
                task?.cancel()
            case .frame(let frame) where frame.kind == .request:
                let request = try frame.decoded(as: MaintenanceRequest.self)
                // The answer to the one before was sent, or this would not have come.
                wait()
                perform(request, work)
            case .frame:
                throw Self.isUnknown
            }
        }
    }

    private static var isUnknown: CofferError {
        CofferError(.ioFailed, of: Frame.subject, "the other process says what this version doesn't understand")
    }

    // MARK: Beginning

    /// The database that is meant, if it is open here.
    private func greet() throws(CofferError) -> Database? {
        guard case .frame(let frame) = try channel.receiveRequest(), frame.kind == .hello else { throw Self.isUnknown }
        let hello = try frame.decoded(as: Hello.self)
        guard hello.version == Hello.currentVersion else {
            throw CofferError(.unsupportedFormat, of: Frame.subject, "the other process speaks another version")
        }
        guard let database = try manager.databaseInUse(named: hello.name),
            try FileIdentity(ofDirectoryAt: database.url.path(percentEncoded: false)) == hello.store
        else { return nil }
        try channel.send(.welcome)
        return database
    }

    /// Sees that the key opens the database. One that doesn't gets no second try on this connection.
    private func openWork(on database: Database) throws(CofferError) -> MaintenanceWork {
        let key: SymmetricKey?
        switch try channel.receiveRequest() {
        case .key(let given): key = given
        case .frame(let frame) where frame.kind == .noKey: key = nil
        case .frame: throw Self.isUnknown
        }
        let work = try MaintenanceWork(on: database, openedBy: key)
        try channel.send(.result, true)
        return work
    }

    // MARK: Working

    private func perform(_ request: MaintenanceRequest, _ work: MaintenanceWork) {
        let (keys, channel) = (keys, channel)
        self.keys = []
        switch request {
        case .listDocuments, .readContent:
            // They wait for the other side to read: on this thread, which is nobody else's. Whoever wants no more closes.
            Self.answer(channel) { () throws(CofferError) in try work.stream(request, to: channel) }
        default:
            task = Task.detached {
                do {
                    let result = try await work.result(of: request, keys) { channel.sendIfRoom(.progress, $0) }
                    try channel.send(.result, result)
                } catch {
                    try? channel.send(.failure, error as? CofferError ?? CofferError(.ioFailed, cause: error))
                }
            }
        }
    }

    private static func answer(_ channel: FrameChannel, _ body: () throws(CofferError) -> Void) {
        do throws(CofferError) { try body() } catch { try? channel.send(.failure, error) }
    }

    /// Waits for the end of what is under way.
    private func wait() {
        guard let task else { return }
        let ended = DispatchSemaphore(value: 0)
        Task.detached {
            await task.value
            ended.signal()
        }
        ended.wait()
        self.task = nil
    }
}
