internal import CofferSealing
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// A connected or listening socket of this machine (unix(7)). Closed when its life ends.
///
/// Safe from any thread: one thread may read while another writes.
final class UnixSocket: Sendable {
    let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    // MARK: Making one

    /// A socket that listens at `path`, where nothing may be.
    ///
    /// Only for this user: its directory is, and so is the socket.
    static func listening(at path: String) throws(CofferError) -> UnixSocket {
        let socket = try UnixSocket.make()
        let result = try unsafe withAddress(path) { unsafe bind(socket.descriptor, $0, $1) }
        guard result == 0 else { throw SystemError.failure(errno, "the socket for maintenance") }
        guard unsafe chmod(path, 0o600) == 0, listen(socket.descriptor, 64) == 0 else {
            let number = errno
            unsafe unlink(path)
            throw SystemError.failure(number, "the socket for maintenance")
        }
        return socket
    }

    /// A connection to whoever listens at `path`.
    ///
    /// - Returns: nil if nobody does any more.
    static func connected(to path: String) throws(CofferError) -> UnixSocket? {
        let socket = try UnixSocket.make()
        // One that has no room for another connection is stopped, or hangs.
        socket.setWriteTimeout(seconds: 5)
        while try unsafe withAddress(path, { unsafe connect(socket.descriptor, $0, $1) }) != 0 {
            switch errno {
            case EINTR: continue
            case ECONNREFUSED, ENOENT: return nil
            default: throw SystemError.failure(errno, "the socket of the process that has it open")
            }
        }
        return socket
    }

    private static func make() throws(CofferError) -> UnixSocket {
        #if canImport(Glibc)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        #else
        let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { throw SystemError.failure(errno, "a socket") }
        return prepared(descriptor)
    }

    /// Neither inherited by other programs, nor the end of the process when the other side has gone.
    private static func prepared(_ descriptor: Int32) -> UnixSocket {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        #if canImport(Darwin)
        var yes: Int32 = 1
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &yes, socklen_t(MemoryLayout<Int32>.size))
        #endif
        return UnixSocket(descriptor)
    }

    /// The longest path that an address has room for, in bytes.
    static var maximumPathByteCount: Int { MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1 }

    private static func withAddress(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws(CofferError) -> Int32 {
        guard path.utf8.count <= maximumPathByteCount else {
            throw CofferError(
                .invalidArgument, "the directory for sockets has too long a path: \(maximumPathByteCount) bytes is all")
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        let byteCount = socklen_t(MemoryLayout<sockaddr_un>.size)
        return unsafe withUnsafePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, byteCount) }
        }
    }

    // MARK: The process at the other end

    /// Waits for the next connection; nil when ``shutDown()`` or the other end of `waking` ends the waiting.
    func accepted(orUntilReadable waking: Int32) -> UnixSocket? {
        while true {
            var waiting = [
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: waking, events: Int16(POLLIN), revents: 0),
            ]
            guard unsafe poll(&waiting, 2, -1) >= 0 || errno == EINTR else { return nil }
            if waiting[1].revents != 0 { return nil }
            guard waiting[0].revents != 0 else { continue }
            let connection = accept(descriptor, nil, nil)
            if connection >= 0 { return Self.prepared(connection) }
            // Whoever it was has gone, or there are no descriptors left just now.
            if errno == EMFILE || errno == ENFILE { usleep(50_000) }
        }
    }

    /// The user that the process at the other end ran as when it connected (SO_PEERCRED in unix(7), getpeereid(3)).
    var peerUser: uid_t? {
        #if canImport(Glibc)
        // struct ucred: process, user and group.
        var credentials: (pid_t, uid_t, gid_t) = (0, uid_t.max, gid_t.max)
        var byteCount = socklen_t(MemoryLayout.size(ofValue: credentials))
        guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &byteCount) == 0 else { return nil }
        return credentials.1
        #else
        var (user, group) = (uid_t.max, gid_t.max)
        return unsafe getpeereid(descriptor, &user, &group) == 0 ? user : nil
        #endif
    }

    // MARK: Bytes

    /// Ends what may wait on this socket, in either direction, at both ends.
    func shutDown() {
        #if canImport(Glibc)
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
        #else
        _ = shutdown(descriptor, SHUT_RDWR)
        #endif
    }

    /// How long a write may wait for the other side to read; nil for as long as it takes.
    func setWriteTimeout(seconds: Int?) {
        var time = timeval(tv_sec: seconds ?? 0, tv_usec: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Whether something can be written without waiting.
    var hasRoom: Bool {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return unsafe poll(&waiting, 1, 0) == 1 && Int32(waiting.revents) & POLLOUT != 0
    }

    /// Writes all of `bytes`.
    ///
    /// - Returns: false when the other side has gone, or reads nothing.
    func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var position = 0
        while position < bytes.count {
            let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[position...])
            #if canImport(Glibc)
            let count = unsafe send(descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            #else
            let count = unsafe send(descriptor, rest.baseAddress, rest.count, 0)
            #endif
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            position += count
        }
        return true
    }

    /// Fills all of `bytes`.
    ///
    /// - Parameter patience: asked ten times a second whether to go on waiting.
    /// - Returns: false when the other side has gone before, or nobody waits any more.
    func read(into bytes: UnsafeMutableRawBufferPointer, while patience: () -> Bool) -> Bool {
        var position = 0
        while position < bytes.count {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard unsafe poll(&waiting, 1, 100) > 0 else {
                if patience() { continue }
                return false
            }
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[position...])
            let count = unsafe recv(descriptor, rest.baseAddress, rest.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            position += count
        }
        return true
    }
}

extension Thread {
    /// Runs `body` on a thread of its own, for what waits for another process.
    static func startForMaintenance(_ body: @escaping @Sendable () -> Void) {
        let thread = Thread(block: body)
        thread.name = "coffer.maintenance"
        thread.start()
    }
}

enum SystemError {
    /// What the system says to an error number (strerror(3)), and of what.
    static func failure(_ number: Int32, _ subject: String) -> CofferError {
        let reason = unsafe strerror(number).map { unsafe String(cString: $0) } ?? "error \(number)"
        return CofferError(number == ENOSPC ? .noSpace : .ioFailed, of: subject, reason)
    }
}
