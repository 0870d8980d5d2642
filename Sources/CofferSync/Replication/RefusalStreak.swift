/// How many documents in a row a server has refused one by one: where that goes on, it is not about them.
struct RefusalStreak {
    /// So many end a run.
    static let limit = 20

    private var count = 0

    /// Notes that one was refused.
    ///
    /// - Throws: the error, where it has been too many.
    mutating func add(_ error: SyncError) throws(SyncError) {
        count += 1
        if count >= Self.limit { throw error }
    }

    /// Notes that the server took something.
    mutating func end() { count = 0 }
}
