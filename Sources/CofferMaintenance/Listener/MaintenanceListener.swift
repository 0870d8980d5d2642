internal import Coffer
internal import CofferSealing
internal import Foundation
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A socket on which a process listens for the tool: see `Manager.acceptMaintenance(in:)`. Safe from any thread.
public final class MaintenanceListener: Sendable {
    private struct State {
        var connections: [ObjectIdentifier: FrameChannel] = [:]
        var hasStopped = false
    }

    /// Those that listen, by the directories of their managers: they last until they are stopped.
    private static let listeners = Lock<[FileIdentity: MaintenanceListener]>([:])

    /// How many connections there may be at once: a few for each of the most stores that a rotation works on at a time. More are
    /// closed at once; only this user can make them.
    static let maximumConnectionCount = 256

    private let manager: Manager
    private let place: FileIdentity
    private let socket: UnixSocket
    private let path: String
    /// A byte in the second end wakes the thread that waits for connections.
    private let waking: (reading: Int32, writing: Int32)
    private let state = Lock(State())

    static func listener(
        for manager: Manager, _ place: FileIdentity, in directory: RuntimeDirectory
    ) throws(CofferError) -> MaintenanceListener {
        try listeners.withLock { (listeners) throws(CofferError) in
            if let listener = listeners[place] {
                // The system may have cleared the directory up.
                if listener.hasSocket { return listener }
                listener.end()
            }
            try directory.make()
            directory.removeDeadSockets(forStoresIn: place)
            let listener = try MaintenanceListener(manager, place, at: directory.newSocketPath(forStoresIn: place))
            listeners[place] = listener
            listener.start()
            return listener
        }
    }

    private init(_ manager: Manager, _ place: FileIdentity, at path: String) throws(CofferError) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw SystemError.failure(errno, "a pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        waking = (ends[0], ends[1])
        do throws(CofferError) {
            socket = try UnixSocket.listening(at: path)
        } catch {
            for end in ends { close(end) }
            throw error
        }
        (self.manager, self.place, self.path) = (manager, place, path)
    }

    deinit {
        close(waking.reading)
        close(waking.writing)
    }

    /// Stops listening, and cancels what is under way: a change of the key that was not made by then is not made.
    ///
    /// Stopping again does nothing.
    public func stop() {
        Self.listeners.withLock { listeners in
            if listeners[place] === self { listeners[place] = nil }
        }
        end()
    }

    /// How many connections there are now.
    var connectionCount: Int { state.withLock { $0.connections.count } }

    private var hasSocket: Bool { unsafe access(path, F_OK) == 0 }

    private func end() {
        let connections = state.withLock { state in
            guard !state.hasStopped else { return [FrameChannel]() }
            state.hasStopped = true
            unsafe unlink(path)
            var byte: UInt8 = 0
            unsafe write(waking.writing, &byte, 1)
            return Array(state.connections.values)
        }
        for connection in connections { connection.socket.shutDown() }
        socket.shutDown()
    }

    private func start() {
        Thread.startForMaintenance { [self] in
            while let connection = socket.accepted(orUntilReadable: waking.reading) { serve(FrameChannel(connection)) }
        }
    }

    private func serve(_ channel: FrameChannel) {
        let user = channel.socket.peerUser
        guard user == geteuid() || user == 0, begin(channel) else { return }
        Thread.startForMaintenance { [self] in
            MaintenanceSession(manager, channel).run()
            state.withLock { _ = $0.connections.removeValue(forKey: ObjectIdentifier(channel)) }
        }
    }

    private func begin(_ channel: FrameChannel) -> Bool {
        state.withLock { state in
            guard !state.hasStopped, state.connections.count < Self.maximumConnectionCount else { return false }
            state.connections[ObjectIdentifier(channel)] = channel
            return true
        }
    }
}
