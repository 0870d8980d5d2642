/// What an actor may choose to do, and how often.
enum SoakAction: String, CustomStringConvertible, Sendable {
    // Writing its own documents.
    case save, rewrite, change, delete, purge, fork, merge, refuse, expire, keep, attach, stream, blob, local
    // Writing with others, and several things at once.
    case raise, transact, rollBack
    // Reading.
    case read, list, feed, view, query, count, live
    // What concerns the store as a whole.
    case compact, verify, backup, rekey, keys, index
    // Opening and closing; work that is called off.
    case open, owe, close, cancel

    var description: String { rawValue }

    /// What may happen within a transaction.
    static let ofTransactions: [SoakAction] = [
        .save, .save, .rewrite, .rewrite, .change, .delete, .purge, .fork, .refuse, .expire, .attach, .stream, .blob,
        .local, .read, .view,
    ]

    private static let writing: [SoakAction] = [
        .save, .save, .save, .rewrite, .rewrite, .change, .change, .delete, .purge, .fork, .merge, .refuse, .expire,
        .expire, .keep, .attach, .attach, .stream, .stream, .blob, .local, .raise, .raise, .transact, .transact,
        .rollBack,
    ]

    private static let reading: [SoakAction] = [.read, .read, .read, .list, .feed, .view, .query, .count]

    private static let upkeep: [SoakAction] = [.compact, .compact, .verify, .backup, .rekey, .keys, .index]

    /// Twice the frequent ones for each of the slow ones.
    static let ofThreads = writing + writing + reading + reading + upkeep

    static let ofTasks = writing + writing + reading + reading + upkeep + [.cancel]
}
