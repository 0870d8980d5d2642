internal import ArgumentParser
internal import Foundation

/// A moment, such as `05:30`, the next time that a clock here shows that, or `2026-05-31T05:30:00Z` (RFC 3339).
struct PointInTime: ExpressibleByArgument {
    let date: Date

    init?(argument: String) {
        if let date = try? Date(argument, strategy: .iso8601) {
            self.date = date
            return
        }
        let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.count == 2 }), let hour = Int(parts[0]),
            let minute = Int(parts[1]),
            (0...23).contains(hour), (0...59).contains(minute)
        else { return nil }
        let time = DateComponents(hour: hour, minute: minute)
        guard let date = Calendar.current.nextDate(after: Date(), matching: time, matchingPolicy: .nextTime) else {
            return nil
        }
        self.date = date
    }
}

/// How long to wait, such as `30s`, `5m` or `1h`.
struct WaitingTime: ExpressibleByArgument {
    let seconds: Double

    init?(argument: String) {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600]
        guard let unit = argument.last.flatMap({ units[$0] }), let number = Int(argument.dropLast()),
            (0...1_000).contains(number)
        else { return nil }
        seconds = Double(number) * unit
    }
}
