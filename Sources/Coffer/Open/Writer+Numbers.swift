internal import CofferRecords
internal import CofferSealing

extension Writer {
    /// The number of the row that is to be inserted next. No row of the table ever had it.
    ///
    /// - Throws: `damaged` (500) where none is left, which only who writes the disk of a store without encryption can bring about.
    func nextNumber(in table: NumberedTable) throws(CofferError) -> Int64 {
        let number = try state.numbers.next(table) { () throws(CofferError) in try records.numbers.last(of: table) }
        guard let number else {
            throw CofferError(.damaged, of: records.subject, "all row numbers are used up")
        }
        return number
    }

    /// Notes in the database which numbers the transaction under way has given. Called before each commit of an outermost one.
    func noteNumbers() throws(CofferError) {
        for (table, last) in state.numbers.takeUnnoted() { try records.numbers.note(last, of: table) }
    }
}
