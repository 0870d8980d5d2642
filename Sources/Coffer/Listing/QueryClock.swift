internal import CofferRecords
internal import CofferSealing
internal import Synchronization

/// Adds up what one iteration of a query or view takes, and tells of it at its end if that was long: also where whoever asked
/// took only some of the rows.
final class QueryClock: Sendable {
    private struct Reading {
        var duration = Duration.zero
        var rowCount = 0
    }

    private let subject: String
    private let event: String
    private let details: [String: String]
    private let reading = Lock(Reading())

    /// Reads batches by the clock, where somebody wants to know what they take.
    ///
    /// - Parameter read: gives the next batch at each call.
    static func timed<Row>(
        _ subject: String, _ event: String, _ details: @autoclosure () -> [String: String],
        _ read: @escaping () throws(CofferError) -> [Row]
    ) -> () throws(CofferError) -> [Row] {
        guard let clock = QueryClock(subject, event, details()) else { return read }
        return { () throws(CofferError) in try clock.measure(read) }
    }

    /// - Returns: nil if nobody wants to know.
    private init?(_ subject: String, _ event: String, _ details: @autoclosure () -> [String: String]) {
        guard CofferLog.isTold(.notice) else { return nil }
        self.subject = subject
        self.event = event
        self.details = details()
    }

    deinit {
        let reading = reading.withLock { $0 }
        guard reading.duration >= CofferLog.slowQueryThreshold else { return }
        var details = details
        details["rows"] = String(reading.rowCount)
        details["milliseconds"] = reading.duration.inMilliseconds
        CofferLog.write(.notice, .queries, subject, event, details)
    }

    /// Counts what reading a batch takes, and its rows.
    private func measure<Row>(_ read: () throws(CofferError) -> [Row]) throws(CofferError) -> [Row] {
        let start = ContinuousClock.now
        var rowCount = 0
        defer {
            reading.withLock {
                $0.duration += .now - start
                $0.rowCount += rowCount
            }
        }
        let rows = try read()
        rowCount = rows.count
        return rows
    }
}
