/// How a figure changes as something grows.
struct Series: Encodable {
    enum Axis: String, Encodable, CaseIterable { case documents, bytes, readers }

    struct Point: Encodable {
        /// How many of what the axis says.
        let at: Int
        let value: Double
        /// The least and the greatest value of a round.
        let spread: [Double]

        /// - Parameter values: one of each round; their median counts.
        init(at: Int, _ values: [Double]) {
            self.at = at
            value = values.median
            spread = [values.min() ?? 0, values.max() ?? 0]
        }
    }

    let name: String
    let axis: Axis
    let unit: String
    let points: [Point]
    /// Where the growth begins to count: costs that don't depend on the size hide it before.
    let growthFrom: Int
    /// The last value divided by the one at `growthFrom`.
    let growth: Double
    let target: Target
    let verdict: Verdict
    let explanation: String

    init(
        _ name: String, _ axis: Axis, unit: String, points: [Point], growthFrom: Int? = nil, target: Target,
        explanation: String
    ) {
        self.name = name
        self.axis = axis
        self.unit = unit
        self.points = points
        self.growthFrom = growthFrom ?? points.first?.at ?? 0
        let first = points.first { [start = self.growthFrom] in $0.at >= start }?.value ?? 0
        growth = (points.last?.value ?? 0) / first
        self.target = target
        verdict = Verdict(growth, target)
        self.explanation = explanation
    }
}
