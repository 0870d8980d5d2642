import CofferSealing
import Testing

@testable import CofferSync

/// A server that is far away: no answer comes back before nothing else goes on. Then all that are on their way arrive together,
/// which is a round trip that had to be waited for. So round trips are counted and not measured: however slow the machine is,
/// their number is that of a fast one.
final class DistantServer: HTTPTransport {
    private struct State {
        var requestCounts: [String: Int] = [:]
        var underWay: [String: Int] = [:]
        var mostUnderWay: [String: Int] = [:]
        /// What the server is working on.
        var answeringCount = 0
        var roundTripCount = 0
        var movedAt = ContinuousClock.now
        var longestGap = Duration.zero
    }

    private let inner: any HTTPTransport
    /// Nothing goes on if neither side has moved for that time. Nil for a server that is here.
    private let quiet: Duration?
    private let state = Lock(State())

    /// - Parameter quiet: longer than the client takes to save a batch. Nil for a server that is not far away.
    init(_ inner: any HTTPTransport, quiet: Duration?) {
        self.inner = inner
        self.quiet = quiet
    }

    /// How often everything waited for the server.
    var roundTripCount: Int { state.withLock { $0.roundTripCount } }

    /// The longest time in which the client asked for nothing.
    var longestGap: Duration { state.withLock { $0.longestGap } }

    /// How many requests there were, by the last part of their paths.
    var requestCounts: [String: Int] { state.withLock { $0.requestCounts } }

    /// How many of them were on their way at a time, at most.
    var mostUnderWay: [String: Int] { state.withLock { $0.mostUnderWay } }

    func send(_ request: HTTPRequest) async throws -> HTTPResponse {
        let kind = Self.kind(of: request)
        move { state in
            state.requestCounts[kind, default: 0] += 1
            state.underWay[kind, default: 0] += 1
            state.mostUnderWay[kind] = max(state.mostUnderWay[kind] ?? 0, state.underWay[kind] ?? 0)
            state.answeringCount += 1
        }
        defer { move { $0.underWay[kind, default: 0] -= 1 } }
        var response: HTTPResponse
        do {
            response = try await inner.send(request)
            move { $0.answeringCount -= 1 }
        } catch {
            move { $0.answeringCount -= 1 }
            throw error
        }
        try await travel()
        let (stream, length) = (response.body.stream, response.body.length)
        response.body = .stream(
            ByteStream { [self] in
                defer { move { _ in } }
                return try await stream.next()
            }, length: length)
        return response
    }

    func close() async {}

    /// Waits until everybody waits.
    private func travel() async throws {
        guard let quiet else { return }
        let departure = roundTripCount
        while true {
            let hasArrived = state.withLock { state in
                if state.roundTripCount > departure { return true }
                guard state.answeringCount == 0, .now - state.movedAt >= quiet else { return false }
                state.roundTripCount += 1
                state.movedAt = .now
                return true
            }
            if hasArrived { return }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    private func move(_ change: (inout State) -> Void) {
        state.withLock { state in
            let now = ContinuousClock.now
            state.longestGap = max(state.longestGap, now - state.movedAt)
            state.movedAt = now
            change(&state)
        }
    }

    /// `_bulk_get` and the like; `content` for one of an attachment, `document` for one document, `db` for the database.
    private static func kind(of request: HTTPRequest) -> String {
        let path = request.target.prefix { $0 != "?" }.split(separator: "/")
        guard path.count > 1 else { return "db" }
        if path[1] == "_bulk_get", request.target.contains("attachments=true") { return "contents in _bulk_get" }
        return path[1].hasPrefix("_") ? String(path[1]) : path.count > 2 ? "content" : "document"
    }
}
