#if SwiftLog
public import Coffer
internal import Logging

extension CofferLog {
    /// Gives messages to swift-log from now on: one logger for each ``LogMessage/Category``, labelled `coffer.storage`,
    /// `coffer.keys`, `coffer.queries` and `coffer.sync`, with the subject and the details as metadata.
    ///
    /// ```swift
    /// LoggingSystem.bootstrap(StreamLogHandler.standardError)
    /// CofferLog.useSwiftLog()
    /// ```
    ///
    /// To be called after `LoggingSystem.bootstrap`. Replaces the handler of ``CofferLog/setHandler(level:slowQueryThreshold:_:)``.
    ///
    /// - Parameters:
    ///   - level: messages that matter less are not made. Default: `info`. The loggers take all that are.
    ///   - slowQueryThreshold: queries and views that take longer than this are logged. Default: 250 milliseconds.
    public static func useSwiftLog(
        level: LogMessage.Level = .info, slowQueryThreshold: Duration = .milliseconds(250)
    ) {
        useSwiftLog(level: level, slowQueryThreshold: slowQueryThreshold) { Logger(label: $0) }
    }

    /// - Parameter makeLogger: makes the logger of a label.
    static func useSwiftLog(
        level: LogMessage.Level, slowQueryThreshold: Duration, makeLogger: (String) -> Logger
    ) {
        var loggers: [LogMessage.Category: Logger] = [:]
        for category in LogMessage.Category.allCases {
            var logger = makeLogger(category.label)
            logger.logLevel = level.inSwiftLog
            loggers[category] = logger
        }
        setHandler(level: level, slowQueryThreshold: slowQueryThreshold) { [loggers] message in
            var metadata = message.details.mapValues { Logger.MetadataValue.string($0) }
            metadata["subject"] = .string(message.subject)
            loggers[message.category]?.log(
                level: message.level.inSwiftLog, "\(message.event)", metadata: metadata, source: "Coffer")
        }
    }
}

extension LogMessage.Level {
    /// The same level, as swift-log has it.
    var inSwiftLog: Logger.Level {
        switch self {
        case .debug: .debug
        case .info: .info
        case .notice: .notice
        case .warning: .warning
        case .error: .error
        }
    }
}
#endif
