internal import CofferSealing

/// One thing that happened, for a log: see ``CofferLog``.
///
/// Holds names of databases, counts, sizes, times and error codes. Never content, ids of documents, what a query asks for,
/// keys, passwords or addresses.
public struct LogMessage: Sendable, Equatable, CustomStringConvertible {
    /// The part of the work that a message is about.
    public enum Category: String, Sendable, CaseIterable {
        /// Databases are opened, recovered, compacted; documents expire.
        case storage
        /// Keys are refused, changed, added and removed.
        case keys
        /// Queries and views that take long.
        case queries
        /// Replications, and requests to a listener.
        case sync

        /// The category as loggers are usually labelled: `coffer.storage` and so on.
        public var label: String { "coffer.\(rawValue)" }
    }

    /// How much a message matters.
    public enum Level: Int, Sendable, Comparable, CaseIterable {
        /// For whoever looks for a fault: each request, each database that is opened or closed.
        case debug
        /// What happens now and then in a healthy program.
        case info
        /// What an operator may want to know of, and is not a fault.
        case notice
        /// What failed and is tried again, or can be done without.
        case warning
        /// What failed and stays so: damage, a replication that gave up.
        case error

        /// Whether the left one matters less.
        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    /// How much it matters.
    public let level: Level
    /// The part of the work that it is about.
    public let category: Category
    /// The subject, such as `database people`.
    public let subject: String
    /// The event, in a few words that are the same each time.
    public let event: String
    /// Figures and codes: `milliseconds`, `documents`, `status` and the like.
    public let details: [String: String]

    /// All of it in a line: `database people: compacted (bytes 1048576, milliseconds 12)`.
    public var description: String {
        let details = details.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        return "\(subject): \(event)" + (details.isEmpty ? "" : " (\(details.joined(separator: ", ")))")
    }
}

extension LogMessage {
    /// The details that say how something failed: its code and status, and nothing of what it was about.
    package static func details(of error: any Error) -> [String: String] {
        guard let error = error as? CofferError else { return ["error": String(describing: type(of: error))] }
        return ["error": error.code.description, "status": String(error.status)]
    }
}

extension Duration {
    /// In whole milliseconds, as messages have it.
    package var inMilliseconds: String { String(Int64(self / .milliseconds(1))) }
}
