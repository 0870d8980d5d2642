/// Estimates how long the rest of a rotation takes, from the stores that are done.
///
/// A store takes some time however small it is, most of it to derive keys from passwords, and more with each byte. Both are
/// fitted to the stores that were rotated, by least squares; before the first of them is done, the bytes of those under way have
/// to do. Where no sizes are known, stores take as long as others on average.
struct TimeLeft {
    /// The stores that have not been begun, in the order in which they will be.
    private var waiting: [String]
    private let byteCounts: [String: Int]
    private let jobCount: Int
    private var underWay: [String: (progress: StoreProgress, begun: ContinuousClock.Instant)] = [:]
    /// Of the stores that were rotated.
    private var changes = Sample()
    /// Of those of which something else came, which may be much faster.
    private var others = Sample()

    /// - Parameter byteCounts: how many bytes each store has, as far as that is known.
    init(paths: [String], byteCounts: [String: Int], jobCount: Int) {
        // Taken from the end.
        waiting = paths.reversed()
        self.byteCounts = byteCounts
        self.jobCount = jobCount
    }

    mutating func update(_ progress: StoreProgress, at now: ContinuousClock.Instant) {
        if underWay[progress.path] == nil { removeWaiting(progress.path) }
        underWay[progress.path] = (progress, underWay[progress.path]?.begun ?? now)
    }

    /// - Parameter isChange: whether it was rotated, or in a rehearsal would be.
    mutating func finish(_ path: String, isChange: Bool, at now: ContinuousClock.Instant) {
        guard let store = underWay.removeValue(forKey: path) else { return removeWaiting(path) }
        let byteCount = byteCounts[path] ?? store.progress.totalByteCount
        let seconds = (now - store.begun) / .seconds(1)
        if isChange {
            changes.add(byteCount, seconds)
        } else {
            others.add(byteCount, seconds)
        }
    }

    /// - Parameter limit: how many further stores are begun at most; nil for all.
    /// - Returns: nil if it can't be told yet.
    func estimate(at now: ContinuousClock.Instant, limit: Int? = nil) -> Duration? {
        let rest = waiting.suffix(max(0, limit ?? waiting.count)).map { byteCounts[$0] ?? 0 }
        let sample = changes.count > 0 ? changes : others
        guard sample.count > 0 else { return fromBytes(rest, at: now) }
        let fit = sample.fit
        let current = underWay.values.map { store in
            let share = store.progress.share
            let expected = fit.seconds(store.progress.totalByteCount)
            return share > 0 ? expected * (1 - share) : max(0, expected - (now - store.begun) / .seconds(1))
        }
        let total = current.reduce(0, +) + rest.reduce(0) { $0 + fit.seconds($1) }
        // As many at a time as there are, and no sooner than the longest of them.
        let parallel = Double(max(1, min(jobCount, current.count + rest.count)))
        return .seconds(max(total / parallel, current.max() ?? 0))
    }

    /// From what has been done of the stores under way, before one is done.
    private func fromBytes(_ rest: [Int], at now: ContinuousClock.Instant) -> Duration? {
        let done = underWay.values.reduce(0) { $0 + $1.progress.completedByteCount }
        let total = underWay.values.reduce(0) { $0 + $1.progress.totalByteCount }
        guard let begun = underWay.values.map(\.begun).min(), done > 0, Double(done) >= 0.02 * Double(total),
            // Stores of unknown size may be of any.
            !rest.contains(0)
        else { return nil }
        let left = total - done + rest.reduce(0, +)
        return (now - begun) * (Double(left) / Double(done))
    }

    private mutating func removeWaiting(_ path: String) {
        if let index = waiting.lastIndex(of: path) { waiting.remove(at: index) }
    }

    /// How long stores of how many bytes have taken.
    private struct Sample {
        private(set) var count = 0
        private var bytes = 0.0
        private var seconds = 0.0
        private var squaredBytes = 0.0
        private var products = 0.0

        mutating func add(_ byteCount: Int, _ seconds: Double) {
            let byteCount = Double(byteCount)
            count += 1
            bytes += byteCount
            self.seconds += seconds
            squaredBytes += byteCount * byteCount
            products += byteCount * seconds
        }

        /// The line through them, neither part of which is below 0.
        var fit: Fit {
            let number = Double(count)
            let (meanBytes, meanSeconds) = (bytes / number, seconds / number)
            let variance = squaredBytes / number - meanBytes * meanBytes
            let covariance = products / number - meanBytes * meanSeconds
            // Sizes that are all alike say nothing of what a byte costs.
            let slope = variance > 1e-9 * meanBytes * meanBytes ? max(0, covariance / variance) : 0
            let base = meanSeconds - slope * meanBytes
            guard base < 0 else { return Fit(base: base, slope: slope) }
            return Fit(base: 0, slope: meanSeconds / meanBytes)
        }
    }

    private struct Fit {
        let base: Double
        let slope: Double

        func seconds(_ byteCount: Int) -> Double { base + slope * Double(byteCount) }
    }
}
