import Foundation
import Glibc

/// Stands between a client and a server on this machine, and passes on what the server says only after a while, as if it were far
/// away. However much is under way, all of it is delayed by the same time.
final class DelayingProxy: @unchecked Sendable {
    let port: Int
    private let serverPort: Int
    private let delay: Duration
    private let lock = NSLock()
    private var count = 0

    /// - Throws: ``Failure`` if nothing can be listened at.
    init(to serverPort: Int, delay: Duration) throws {
        self.serverPort = serverPort
        self.delay = delay
        let listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.loopback(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listening, address, length) == 0 && listen(listening, 64) == 0
                    && getsockname(listening, address, &length) == 0
            }
        }
        guard isListening else { throw Failure("nothing can be listened at") }
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { [weak self] in
            while case let client = accept(listening, nil, nil), client >= 0 { self?.serve(client) }
        }
    }

    /// How many requests there were since this was last asked.
    func takeRequestCount() -> Int {
        lock.withLock {
            defer { count = 0 }
            return count
        }
    }

    private static func loopback(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port)).bigEndian
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        return address
    }

    private func serve(_ client: Int32) {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.loopback(serverPort)
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isConnected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(server, $0, length) == 0 }
        }
        guard isConnected else { return _ = close(client) }
        for end in [client, server] {
            var on: Int32 = 1
            setsockopt(end, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        }
        Thread.detachNewThread { [self] in
            let mark = Array(" HTTP/1.1\r\n".utf8)
            while let bytes = Self.read(client) {
                let found = bytes.withUnsafeBytes { all in
                    var (found, rest) = (0, all[...])
                    while let at = rest.firstIndex(of: mark[0]) {
                        if rest[at...].starts(with: mark) { found += 1 }
                        rest = rest[(at + 1)...]
                    }
                    return found
                }
                lock.withLock { count += found }
                guard Self.write(bytes, to: server) else { break }
            }
            shutdown(server, Int32(SHUT_WR))
        }
        let late = LatePieces()
        Thread.detachNewThread { [delay] in
            while let bytes = Self.read(server) { late.add(bytes, due: .now + delay) }
            late.add(nil, due: .now + delay)
        }
        Thread.detachNewThread {
            while let bytes = late.next(), Self.write(bytes, to: client) {}
            shutdown(client, Int32(SHUT_RDWR))
        }
    }

    private static func read(_ end: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = Glibc.read(end, &bytes, bytes.count)
        return count > 0 ? Array(bytes[..<count]) : nil
    }

    private static func write(_ bytes: [UInt8], to end: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(end, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}

/// Pieces that wait until they are due. Nil ends them.
private final class LatePieces: @unchecked Sendable {
    private let condition = NSCondition()
    private var pieces: [(bytes: [UInt8]?, due: ContinuousClock.Instant)] = []

    func add(_ bytes: [UInt8]?, due: ContinuousClock.Instant) {
        condition.withLock {
            pieces.append((bytes, due))
            condition.signal()
        }
    }

    func next() -> [UInt8]? {
        condition.lock()
        while pieces.isEmpty { condition.wait() }
        let piece = pieces.removeFirst()
        condition.unlock()
        let rest = (piece.due - .now) / .seconds(1)
        if rest > 0 { Thread.sleep(forTimeInterval: rest) }
        return piece.bytes
    }
}
