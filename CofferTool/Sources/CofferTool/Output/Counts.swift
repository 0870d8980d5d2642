/// How many things there are, as people say it.
extension Int {
    /// Such as "1 store" or "2 stores".
    func counted(_ noun: String) -> String { "\(self) \(noun)\(self == 1 ? "" : "s")" }

    /// The same of a total, such as "1 of 5 stores"; "1 store" where there is no other.
    func counted(_ noun: String, of total: Int) -> String {
        total == 1 ? counted(noun) : "\(self) of \(total.counted(noun))"
    }

    /// The verb that goes with such a count: the first for one, the other for all else.
    func verb(_ one: String, _ many: String) -> String { self == 1 ? one : many }
}
