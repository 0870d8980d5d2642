#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// How long some work took.
struct Cost {
    /// By the clock.
    var time = Duration.zero
    /// Of all processors together, the kernel's work for this process included. Others on the machine hardly change it.
    var processorTime = Duration.zero

    static func += (sum: inout Cost, cost: Cost) {
        sum.time += cost.time
        sum.processorTime += cost.processorTime
    }
}

/// What `body` costs.
func measure(_ body: () throws -> Void) rethrows -> Cost {
    let start = processorTime()
    let time = try ContinuousClock().measure(body)
    return Cost(time: time, processorTime: processorTime() - start)
}

func processorTime() -> Duration {
    var time = timespec()
    unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}

/// What the same work cost by hand and with Coffer, round by round.
struct Comparison {
    private(set) var byHand: [Cost] = []
    private(set) var own: [Cost] = []

    /// Runs both sides in turn, each time the other one first, after one round that isn't counted. A side says itself what
    /// it cost, so that it can leave out what isn't the work.
    static func run(roundCount: Int, byHand: () throws -> Cost, own: () throws -> Cost) throws -> Comparison {
        var comparison = Comparison()
        for round in 0...roundCount {
            var costs = (byHand: Cost(), own: Cost())
            if round.isMultiple(of: 2) {
                costs.byHand = try byHand()
                costs.own = try own()
            } else {
                costs.own = try own()
                costs.byHand = try byHand()
            }
            guard round > 0 else { continue }
            comparison.byHand.append(costs.byHand)
            comparison.own.append(costs.own)
        }
        return comparison
    }

    /// How many times as fast Coffer was in each round. Within a round the machine is about the same for both.
    var ratios: [Double] { zip(byHand, own).map { $0.time / $1.time } }

    /// The same in processor time.
    var processorRatios: [Double] { zip(byHand, own).map { $0.processorTime / $1.processorTime } }
}

extension Duration {
    var seconds: Double { self / .seconds(1) }
}

extension [Double] {
    /// 0 of nothing.
    var median: Double {
        guard !isEmpty else { return 0 }
        let sorted = sorted()
        return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2
    }
}
