/// What a figure should be.
enum Target: Encodable {
    case atLeast(Double)
    case atMost(Double)

    func isMet(by value: Double) -> Bool {
        switch self {
        case .atLeast(let least): value >= least
        case .atMost(let most): value <= most
        }
    }

    /// How many times as good `value` is as `other`.
    func quality(of value: Double, against other: Double) -> Double {
        switch self {
        case .atLeast: value / other
        case .atMost: other / value
        }
    }

    var number: Double {
        switch self {
        case .atLeast(let number), .atMost(let number): number
        }
    }

    /// As `{"atLeast": 0.75}`.
    func encode(to encoder: any Encoder) throws {
        enum Key: CodingKey { case atLeast, atMost }
        var container = encoder.container(keyedBy: Key.self)
        switch self {
        case .atLeast(let least): try container.encode(least, forKey: .atLeast)
        case .atMost(let most): try container.encode(most, forKey: .atMost)
        }
    }
}

enum Verdict: String, Encodable {
    case met, missed
    /// The condition under which the target is meant doesn't hold on this machine.
    case notMeaningful = "not meaningful here"

    init(_ value: Double, _ target: Target, isMeaningful: Bool = true) {
        self = !isMeaningful ? .notMeaningful : target.isMet(by: value) ? .met : .missed
    }
}

enum Unit: String, Encodable {
    /// How many times as fast as by hand.
    case timesAsFast = "×"
    /// How many times the time, or the processor time, of what it is compared with.
    /// How many times less processor time than what it is compared with.
    case timesLessProcessorTime = "× less CPU"
    case timesTheTime = "× the time"
    case timesTheProcessorTime = "× the CPU"
    case partOfItsTime = "of its time"
    case mebibytes = "MiB"
    case bytes
    case microseconds = "µs"

    /// Whether it says the same on a machine that is twice as fast.
    var isRatio: Bool {
        switch self {
        case .timesAsFast, .timesLessProcessorTime, .timesTheTime, .timesTheProcessorTime, .partOfItsTime: true
        case .mebibytes, .bytes, .microseconds: false
        }
    }
}

/// One measured row: a figure, what it should be, and where it comes from.
struct Row: Encodable {
    let name: String
    let value: Double
    let unit: Unit
    /// The least and the greatest value of a round.
    let spread: [Double]
    let target: Target
    let verdict: Verdict
    /// In seconds, one per round, interleaved.
    private(set) var byHandSeconds: [Double] = []
    private(set) var ownSeconds: [Double] = []
    /// The ratio of the processor time, the median. On a busy machine it is steadier than the clock's.
    private(set) var processorRatio: Double?
    /// What was compared, and how.
    let explanation: String

    /// - Parameter values: one of each round; their median counts.
    init(
        _ name: String, _ values: [Double], _ unit: Unit, _ target: Target, isMeaningful: Bool = true,
        explanation: String
    ) {
        self.name = name
        value = values.median
        self.unit = unit
        spread = [values.min() ?? 0, values.max() ?? 0]
        self.target = target
        verdict = Verdict(value, target, isMeaningful: isMeaningful)
        self.explanation = explanation
    }

    /// How many times as fast as by hand.
    init(
        _ name: String, _ comparison: Comparison, atLeast least: Double, isMeaningful: Bool = true, explanation: String
    ) {
        self.init(
            name, comparison.ratios, .timesAsFast, .atLeast(least), isMeaningful: isMeaningful, explanation: explanation
        )
        byHandSeconds = comparison.byHand.map(\.time.seconds)
        ownSeconds = comparison.own.map(\.time.seconds)
        processorRatio = comparison.processorRatios.median
    }

    /// How many times the time of what it is compared with.
    init(_ name: String, time comparison: Comparison, atMost most: Double, explanation: String) {
        self.init(
            name, comparison.ratios.map { 1 / $0 }, .timesTheTime, .atMost(most), explanation: explanation)
        byHandSeconds = comparison.byHand.map(\.time.seconds)
        ownSeconds = comparison.own.map(\.time.seconds)
        processorRatio = 1 / comparison.processorRatios.median
    }

    /// How many times less processor time than what it is compared with.
    init(_ name: String, processorTime comparison: Comparison, atLeast least: Double, explanation: String) {
        self.init(name, comparison.processorRatios, .timesLessProcessorTime, .atLeast(least), explanation: explanation)
        byHandSeconds = comparison.byHand.map(\.processorTime.seconds)
        ownSeconds = comparison.own.map(\.processorTime.seconds)
    }

    /// How many times the processor time of what it is compared with.
    init(_ name: String, processorTime comparison: Comparison, atMost most: Double, explanation: String) {
        self.init(
            name, comparison.processorRatios.map { 1 / $0 }, .timesTheProcessorTime, .atMost(most),
            explanation: explanation)
    }
}
