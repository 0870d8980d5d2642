import Coffer
import CofferSealing
import CofferSync
import CofferTesting
import Foundation

/// The messages that came while something was done.
final class LogRecorder: Sendable {
    private let recorded = LogSightings()

    /// Records from now on. There is one handler for the process, so only one of these at a time.
    init(level: LogMessage.Level = .debug, slowQueryThreshold: Duration = .zero) {
        CofferLog.setHandler(level: level, slowQueryThreshold: slowQueryThreshold) { [recorded] message in
            _ = recorded.note(message)
        }
    }

    deinit { CofferLog.setHandler(nil) }

    /// All that have come, also from other tests, which run meanwhile.
    var all: [LogMessage] {
        CofferLog.flush()
        return recorded.all
    }

    /// Those about something whose name holds `name`.
    func messages(about name: String) -> [LogMessage] { all.filter { $0.subject.contains(name) } }
}

/// A name that no other database has.
func uniqueName() -> String { "db" + UUID().uuidString.lowercased().filter { $0 != "-" } }

func json(_ number: Int) -> Data { Data(#"{"n":\#(number)}"#.utf8) }

func makeKey(_ byte: UInt8) throws -> SymmetricKey { try SymmetricKey(data: [UInt8](repeating: byte, count: 32)) }

/// Brings requests to a service, without a network.
struct ServiceTransport: HTTPTransport {
    let service: Service
    func send(_ request: HTTPRequest) async throws -> HTTPResponse { await service.respond(to: request) }
    func close() async {}
}

extension Service {
    /// A service of the databases of `manager`, for whoever asks.
    static func open(_ manager: Manager, key: SymmetricKey) -> Service {
        var options = ListenerOptions(access: .unauthenticatedLoopback)
        options.encryptionKey = { _ in key }
        return Service(manager, options)
    }
}

/// Counts messages.
final class LogSightings: Sendable {
    private let seen = Lock<[LogMessage]>([])

    var all: [LogMessage] { seen.withLock { $0 } }

    /// - Returns: how many there have been, this one included.
    func note(_ message: LogMessage) -> Int {
        seen.withLock {
            $0.append(message)
            return $0.count
        }
    }

    func count(of event: String, about name: String) -> Int {
        seen.withLock { $0.count { $0.event == event && $0.subject.contains(name) } }
    }
}
