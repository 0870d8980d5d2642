internal import CofferSealing
internal import Dispatch
internal import Synchronization

/// Coffer's log messages, for a handler of the app that writes them to a file, the system's log, or swift-log.
///
/// ```swift
/// CofferLog.setHandler { message in file.write(Data("\(message.level) \(message)\n".utf8)) }
/// ```
///
/// No message is delivered until a handler is set, and then nothing secret: see ``LogMessage``. For swift-log there is
/// the product `CofferLogging`. One handler serves the whole process. Safe from any thread.
public enum CofferLog {
    /// Gives messages to `handler` from now on; nil ends that.
    ///
    /// The handler is called on a queue of its own, one message after another, in the order of what happened on each
    /// thread; it may use databases. Nobody waits for it: a thousand messages may wait, and those beyond are counted; a
    /// message with their number takes their place.
    ///
    /// - Parameters:
    ///   - level: messages that matter less are not made. Default: `info`.
    ///   - slowQueryThreshold: queries and views that take longer than this are logged as notices. Default: 250
    ///     milliseconds.
    ///   - handler: what is done with a message.
    public static func setHandler(
        level: LogMessage.Level = .info, slowQueryThreshold: Duration = .milliseconds(250),
        _ handler: (@Sendable (LogMessage) -> Void)?
    ) {
        backlog.withLock { $0.handler = handler }
        threshold.store(Int64(max(.zero, slowQueryThreshold) / .microseconds(1)), ordering: .relaxed)
        leastLevel.store(handler == nil ? Int.max : level.rawValue, ordering: .releasing)
    }

    /// Waits until all messages of before were handled. For the end of a program; does nothing in a handler.
    public static func flush() {
        guard DispatchQueue.getSpecific(key: isHandlerQueue) == nil else { return }
        // Whoever wrote the first of those that wait may not have come to say so.
        queue.sync { deliver() }
    }

    // MARK: Telling

    /// Tells of something, if anybody wants to know. Costs a look at a number otherwise.
    package static func write(
        _ level: LogMessage.Level, _ category: LogMessage.Category, _ subject: @autoclosure () -> String,
        _ event: String,
        _ details: @autoclosure () -> [String: String] = [:]
    ) {
        guard isTold(level) else { return }
        let message = LogMessage(
            level: level, category: category, subject: subject(), event: event, details: details())
        let isFirst = backlog.withLock { backlog in
            guard backlog.messages.count < limit else {
                backlog.lostCount += 1
                return false
            }
            backlog.messages.append(message)
            return backlog.messages.count == 1
        }
        if isFirst { queue.async { deliver() } }
    }

    /// Whether messages of that level are delivered.
    package static func isTold(_ level: LogMessage.Level) -> Bool {
        level.rawValue >= leastLevel.load(ordering: .relaxed)
    }

    /// From when on a query is slow.
    static var slowQueryThreshold: Duration { .microseconds(threshold.load(ordering: .relaxed)) }

    /// Messages that may wait.
    static let limit = 1_000

    private struct Backlog {
        var handler: (@Sendable (LogMessage) -> Void)?
        var messages: [LogMessage] = []
        var lostCount = 0
    }

    private static let backlog = Lock(Backlog())
    private static let leastLevel = Atomic(Int.max)
    private static let threshold = Atomic<Int64>(250_000)
    private static let isHandlerQueue = DispatchSpecificKey<Bool>()
    private static let queue: DispatchQueue = {
        let queue = DispatchQueue(label: "coffer.log", qos: .utility)
        queue.setSpecific(key: isHandlerQueue, value: true)
        return queue
    }()

    private static func deliver() {
        let taken = backlog.withLock { backlog in
            defer {
                backlog.messages = []
                backlog.lostCount = 0
            }
            return backlog
        }
        guard let handler = taken.handler else { return }
        for message in taken.messages { handler(message) }
        if taken.lostCount > 0 {
            handler(
                LogMessage(
                    level: .warning, category: .storage, subject: "the log", event: "messages were lost",
                    details: ["messages": String(taken.lostCount)]))
        }
    }
}

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
