/// Something in a folder that was not looked into.
public struct SkippedEntry: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The way to it from where the search began.
    public let path: String
    /// Why: what it is, such as `a FIFO`.
    public let reason: String

    package init(path: String, reason: String) {
        self.path = path
        self.reason = reason
    }

    /// Where it is, and why.
    public var description: String { "\(path): \(reason), not looked into" }
}
