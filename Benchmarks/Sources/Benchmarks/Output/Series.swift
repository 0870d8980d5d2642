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
    /// The same work by hand; empty where there is none.
    let byHandPoints: [Point]
    /// Where the growth begins to count: costs that don't depend on the size hide it before.
    let growthFrom: Int
    /// The last value divided by the one at `growthFrom`.
    let growth: Double
    let byHandGrowth: Double?
    let target: Target
    let verdict: Verdict
    let explanation: String

    init(
        _ name: String, _ axis: Axis, unit: String, points: [Point], byHand: [Point] = [], growthFrom: Int? = nil,
        target: Target, explanation: String
    ) {
        let start = growthFrom ?? points.first?.at ?? 0
        func growth(_ points: [Point]) -> Double? {
            guard let first = points.first(where: { $0.at >= start }), let last = points.last else { return nil }
            return last.value / first.value
        }
        self.name = name
        self.axis = axis
        self.unit = unit
        self.points = points
        self.growthFrom = start
        byHandPoints = byHand
        byHandGrowth = growth(byHand)
        self.growth = growth(points) ?? 0
        self.target = target
        verdict = Verdict(self.growth, target)
        self.explanation = explanation
    }
}
