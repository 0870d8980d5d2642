internal import CofferRecords

/// Commits that somebody has not taken yet, in their order. Bounded: a consumer that lags too far behind learns that
/// instead.
struct ChangeQueue {
    /// How many commits wait at most.
    static let commitLimit = 1_024

    /// How many changes wait at most, in all these commits: about 20 MB.
    static let changeLimit = PendingChanges.limit

    private var commits: [Commit] = []
    /// How many at the front of `commits` were taken.
    private var takenCount = 0
    private var changeCount = 0
    /// Set when what came after this sequence was dropped, and nobody was told yet. No commit waits then.
    private var missedSince: SequenceNumber?

    var isEmpty: Bool { missedSince == nil && takenCount == commits.count }

    mutating func append(_ commit: Commit) {
        // An observer that missed something looks at what is there by then: this is part of it.
        guard missedSince == nil else { return }
        let waitingCount = commits.count - takenCount
        if commit.isComplete && waitingCount < Self.commitLimit
            && changeCount + commit.changes.count <= Self.changeLimit
        {
            commits.append(commit)
            changeCount += commit.changes.count
        } else {
            missedSince = waitingCount > 0 ? commits[takenCount].sequenceBefore : commit.sequenceBefore
            removeCommits()
        }
    }

    /// Takes what came first; nil when nothing waits.
    mutating func next() -> DatabaseChanges? {
        if let sequence = missedSince {
            missedSince = nil
            return .missed(since: sequence.value)
        }
        guard takenCount < commits.count else { return nil }
        let changes = commits[takenCount].changes
        commits[takenCount].changes = []
        takenCount += 1
        changeCount -= changes.count
        if takenCount == commits.count { removeCommits() } else if takenCount >= Self.commitLimit { compact() }
        return .committed(changes)
    }

    mutating func removeAll() {
        missedSince = nil
        removeCommits()
    }

    private mutating func removeCommits() {
        commits = []
        takenCount = 0
        changeCount = 0
    }

    private mutating func compact() {
        commits.removeSubrange(..<takenCount)
        takenCount = 0
    }
}
