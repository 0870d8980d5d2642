/// How often, and after which pauses, something that may go well later is tried again.
public struct RetryPolicy: Sendable {
    /// How often a request is tried before its error counts. Default: 5.
    public var attemptCount = 5

    /// The pause after the first attempt; each one after it is twice as long. Default: half a second.
    public var firstPause: Duration = .milliseconds(500)

    /// No pause is longer, but where the server asks for it. Default: 60 seconds.
    public var longestPause: Duration = .seconds(60)

    /// The values that are their defaults.
    public init() {}

    /// The pause after that many attempts that failed.
    ///
    /// - Parameters:
    ///   - chance: from 0 to 1: so that not all clients of a server that comes back ask at once, the pause is between half of
    ///     its length and all of it.
    ///   - serverAsks: what the server's Retry-After says.
    package func pause(after failureCount: Int, chance: Double, serverAsks: Duration? = nil) -> Duration {
        let doublings = max(0, min(failureCount - 1, 30))
        let whole = min(firstPause * (1 << doublings), longestPause)
        let pause = whole * (0.5 + 0.5 * min(max(chance, 0), 1))
        // Nobody waits for ever because a header says so.
        return max(pause, min(serverAsks ?? .zero, .seconds(3600)))
    }
}
