public import Coffer
public import CofferSealing
public import Foundation
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

extension Manager {
    /// Lets the tool `coffer` work on the databases that this process has open in this manager's directory, and on those that it
    /// opens later. Without it the tool finds such a store busy.
    ///
    /// ```swift
    /// try Manager.shared.acceptMaintenance()
    /// ```
    ///
    /// The process listens on a Unix socket (unix(7)), in a directory of its user's alone: `$COFFER_RUNTIME_DIR` if that is set,
    /// otherwise `/run/user/UID/coffer`, or `/tmp/coffer-UID` where the system has no run-time directory for the user. The
    /// tool looks there when it finds a store busy, and has this process do the work: `info`, `check`, `backup`, `export`,
    /// `compact`, `key list`, `add`, `remove` and `replace`, `rekey` and `rotate`. It must run as the same user, or as root, and
    /// **its key must open the store, as always**: one that doesn't is a 401. Keys go through that socket and nowhere else.
    ///
    /// Whatever is done is what the same call of ``Database`` does: others read and write meanwhile, streams and drafts go on
    /// working, and a database whose key was changed stays open. **This process must use the new key the next time.**
    /// When the tool ends before the work does, the work is cancelled.
    ///
    /// An app goes on without it where it throws, as anybody may have taken the place in `/tmp`. Calling it again for the same
    /// directory does nothing, unless the system has removed the socket. It lasts until ``MaintenanceListener/stop()``, or as long as the
    /// process does. The manager's directory is made if it isn't there.
    ///
    /// - Parameter directory: another directory for sockets, such as a service's own: the tool finds it by `COFFER_RUNTIME_DIR`.
    ///   Made if it isn't there, closed to everybody else. Default: nil, as said above.
    /// - Returns: what ends it. It needs not be kept.
    /// - Throws: `invalidArgument` (400) where the path of the directory for sockets is longer than an address can be;
    ///   `notOwner` (403) where that directory isn't this user's, or others may look into it; `ioFailed` (500).
    @discardableResult
    public func acceptMaintenance(in directory: URL? = nil) throws(CofferError) -> MaintenanceListener {
        try acceptMaintenance(
            in: directory.map { RuntimeDirectory(path: $0.path(percentEncoded: false)) }
                ?? RuntimeDirectory.candidates()[0])
    }

    func acceptMaintenance(in directory: RuntimeDirectory) throws(CofferError) -> MaintenanceListener {
        try makeDirectory()
        let place = try FileIdentity(ofDirectoryAt: self.directory.path(percentEncoded: false))
        return try MaintenanceListener.listener(for: self, place, in: directory)
    }
}

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
