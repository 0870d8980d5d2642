#if SwiftLog
import CofferSealing
import Logging

/// Writes down what swift-log is given.
struct RecordingLogHandler: LogHandler {
    final class Records: Sendable {
        private let written = Lock<[String]>([])
        var lines: [String] { written.withLock { $0 } }
        func add(_ line: String) { written.withLock { $0.append(line) } }
    }

    let label: String
    let records: Records
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    init(label: String, records: Records) {
        self.label = label
        self.records = records
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let details = (event.metadata ?? [:]).map { "\($0.key)=\($0.value)" }.sorted().joined(separator: " ")
        records.add("\(label) \(event.level) \(event.message) \(details)")
    }
}
#endif
