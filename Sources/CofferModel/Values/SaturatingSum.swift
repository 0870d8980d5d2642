extension FixedWidthInteger {
    /// The sum, or the nearest to it that there is. For numbers that others state: lengths can come to any sum, and no
    /// place follows the last one.
    package func addingSaturated(_ other: Self) -> Self {
        let (sum, isTooFar) = addingReportingOverflow(other)
        return isTooFar ? (other < 0 ? .min : .max) : sum
    }
}
