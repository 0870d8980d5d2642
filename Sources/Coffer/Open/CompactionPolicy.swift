/// When a store is compacted automatically.
struct CompactionPolicy: Sendable {
    /// The fewest bytes that make it worth while.
    var leastByteCount = 16 << 20
    /// The part of the database that they must be, so that a large one is not gone through for little: one in so many.
    var divisor = 8

    func isEnough(_ byteCount: Int, databaseByteCount: Int) -> Bool {
        byteCount >= max(leastByteCount, databaseByteCount / divisor)
    }
}
