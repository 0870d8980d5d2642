import Coffer
import CofferModel
import CofferSealing
import CofferTesting
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@testable import CofferSync
import TestSupport

/// A number that several tasks change.
final class Counter: Sendable {
    private let number = Atomic(0)
    var value: Int { number.load(ordering: .sequentiallyConsistent) }
    func add(_ amount: Int) { number.add(amount, ordering: .sequentiallyConsistent) }
}

/// These pieces, one after another.
func stream(_ pieces: [[UInt8]]) -> ByteStream {
    let rest = Lock(pieces[...])
    return ByteStream { rest.withLock { $0.popFirst() } }
}

/// A service over encrypted databases of its own, asked without a network.
final class TestServer: HTTPTransport {
    static let key = makeKey()
    let stores = TemporaryStores()
    let service: Service

    init(
        _ change: (inout ListenerOptions) -> Void = { _ in }, makeTransport: TransportMaker? = nil,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        var options = ListenerOptions(access: .unauthenticatedLoopback)
        options.encryptionKey = { _ in TestServer.key }
        change(&options)
        service = Service(stores.manager, options, makeTransport: makeTransport, now: now)
    }

    func send(_ request: HTTPRequest) async throws -> HTTPResponse { await service.respond(to: request) }
    func close() async {}

    /// An answer whose body was read.
    struct Answer {
        let status: Int
        let fields: HTTPFields
        let body: [UInt8]
        var text: String { String(decoding: body, as: UTF8.self) }
        /// Null where it is no JSON.
        var json: JSONValue { (try? JSONValue(json: body)) ?? nil }
    }

    func call(
        _ method: String, _ target: String, _ json: JSONValue? = nil, fields: HTTPFields = [:]
    ) async throws -> Answer {
        let body = try json.map { HTTPBody.bytes(try $0.canonicalJSON()) } ?? .none
        return try await call(HTTPRequest(method, target, fields: fields, body: body))
    }

    func call(_ request: HTTPRequest) async throws -> Answer {
        let response = await service.respond(to: request)
        return Answer(
            status: response.status, fields: response.fields,
            body: try await response.body.stream.collect(upTo: 1 << 26))
    }

    /// The database of that name, made where it isn't there.
    func database(_ name: String = "db") throws -> Database {
        try stores.manager.patientDatabase(named: name)
    }

    private static func makeKey() -> SymmetricKey {
        do {
            return try SymmetricKey(data: [UInt8](repeating: 7, count: 32))
        } catch {
            fatalError("32 bytes are a key: \(error)")
        }
    }
}

extension Manager {
    /// The database of that name, made where it isn't there. Whoever waits for another's transaction does so for as long as a
    /// busy machine may take.
    func patientDatabase(named name: String) throws -> Database {
        var options = DatabaseOptions()
        options.create = true
        options.encryptionKey = TestServer.key
        options.busyTimeout = longestWait
        return try openDatabase(named: name, options: options)
    }
}

func json(_ text: String) throws -> JSONValue { try JSONValue(json: Array(text.utf8)) }

/// What a command of the shell writes. Waits on a thread of its own: a server in the same process needs those that tasks run
/// on. Foundation's Process lists all open files to close them, and does not bear that others open some meanwhile.
func output(of command: String) async throws -> [UInt8] {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread {
            guard let pipe = popen(command, "r") else {
                continuation.resume(throwing: SyncError(500, "no process can be started"))
                return
            }
            var all: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = fread(&piece, 1, piece.count, pipe)
                if count == 0 { break }
                all += piece[..<count]
            }
            pclose(pipe)
            continuation.resume(returning: all)
        }
    }
}
