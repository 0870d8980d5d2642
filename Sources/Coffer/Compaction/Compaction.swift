internal import CofferModel
internal import CofferSealing
internal import CofferRecords
internal import CofferVault

/// One compaction, by whoever holds the right to change the store as a whole.
///
/// What there is to do is looked for beside all others, and done in short transactions, between which others write. Each
/// leaves a store that is whole, so that a compaction may end anywhere.
struct Compaction {
    private let storage: Storage
    private let monitor: CompactionMonitor
    private var result = CompactionResult()

    /// Revisions whose properties are dropped in one transaction, and contents that are removed after one.
    private static let revisionStep = 500
    private static let attachmentStep = 64
    /// Documents with branches that are pruned in one transaction.
    private static let documentStep = 16
    /// Sequences that are looked through in one snapshot.
    private static let sequenceStep: Int64 = 10_000

    init(_ storage: Storage, _ monitor: CompactionMonitor) {
        self.storage = storage
        self.monitor = monitor
    }

    func run() throws(CofferError) -> CompactionResult {
        var compaction = self
        do throws(CofferError) {
            try compaction.pruneBranches()
            try compaction.dropProperties()
            try compaction.removeDeadTerms()
            try compaction.removeContents()
            try compaction.removeFilesWithoutRows()
            try compaction.giveBackPages()
        } catch {
            if error.code != .cancelled {
                CofferLog.write(.warning, .storage, storage.subject, "not compacted", LogMessage.details(of: error))
            }
            throw error.about(storage.subject)
        }
        let result = compaction.result
        CofferLog.write(
            .info, .storage, storage.subject, "compacted",
            [
                "revisions": String(result.revisionCount), "contents": String(result.attachmentCount),
                "bytes": String(result.byteCount),
            ])
        return result
    }

    /// Runs one step, and lets others write before the next.
    private func step<Value>(_ body: (borrowing Writer) throws(CofferError) -> Value) throws(CofferError) -> Value {
        try monitor.check(storage)
        defer { storage.letOthersWrite() }
        return try storage.alone { (writer) throws(CofferError) in try storage.write(in: writer, body) }
    }

    // MARK: Revisions

    private func pruneBranches() throws(CofferError) {
        let documents = try storage.read { (tables) throws(CofferError) in try tables.compaction.branchedDocuments() }
        for first in stride(from: 0, to: documents.count, by: Self.documentStep) {
            let some = documents[first..<min(first + Self.documentStep, documents.count)]
            try step { (writer) throws(CofferError) in
                try writer.change { () throws(CofferError) in
                    let pruning = try Pruning(in: writer)
                    for number in some { try pruning.pruneTree(number, in: writer) }
                }
            }
        }
    }

    /// Drops what replaced revisions hold. Each was replaced by one that came later, so that those which came since the last
    /// compaction name all of them.
    private mutating func dropProperties() throws(CofferError) {
        let (first, last) = try storage.read { (tables) throws(CofferError) in
            (try tables.compaction.position(), try tables.lastSequence())
        }
        monitor.begin(.revisions, itemCount: Int(max(0, last - first)))
        var position = first
        while position < last {
            let end = min(position.advanced(by: Self.sequenceStep), last)
            let replaced = try storage.read { (tables) throws(CofferError) in
                try tables.compaction.replaced(after: position, upTo: end)
            }
            for first in stride(from: 0, to: replaced.count, by: Self.revisionStep) {
                let some = replaced[first..<min(first + Self.revisionStep, replaced.count)]
                result.revisionCount += try step { (writer) throws(CofferError) in
                    try writer.change { () throws(CofferError) in try Self.dropProperties(of: some, in: writer) }
                }
            }
            // On to where the next one is: purged documents leave long gaps.
            let next =
                end < last && replaced.isEmpty
                ? min(try nextSequence(after: end).map { $0.advanced(by: -1) } ?? last, last) : end
            monitor.advance(itemCount: Int(next - position))
            position = next
        }
        // A long way without anything to drop is not gone twice either.
        guard result.revisionCount > 0 || last - first >= Self.sequenceStep else { return }
        try step { (writer) throws(CofferError) in
            try writer.change { () throws(CofferError) in try writer.records.compaction.note(position: last) }
        }
    }

    /// Drops what revisions hold that were replaced, if they still are.
    ///
    /// - Returns: how many were.
    private static func dropProperties(
        of sequences: ArraySlice<SequenceNumber>, in writer: borrowing Writer
    ) throws(CofferError) -> Int {
        var count = 0
        var leaves: [DocumentNumber: Set<SequenceNumber>] = [:]
        for sequence in sequences {
            guard let (number, row) = try writer.records.compaction.document(of: sequence), row.winner != sequence
            else { continue }
            if row.flags.contains(.isBranched) {
                if leaves[number] == nil {
                    leaves[number] = Set(try writer.tables.trees.leaves(ofDocument: number).map(\.sequence))
                }
                if leaves[number]?.contains(sequence) == true { continue }
            }
            try writer.records.compaction.drop(sequence)
            count += 1
        }
        return count
    }

    private func nextSequence(after last: SequenceNumber) throws(CofferError) -> SequenceNumber? {
        try storage.read { (tables) throws(CofferError) in try tables.compaction.nextSequence(after: last) }
    }

    // MARK: Text indexes

    /// Removes from text indexes the terms of documents that changed since.
    private func removeDeadTerms() throws(CofferError) {
        for index in try storage.listIndexes(.text, { (row, _) throws(CofferError) in row.number }) {
            let begun = try storage.readIndexes { (tables) throws(CofferError) in
                try tables.indexes.areUsable() ? TextCompaction(of: index, tables) : nil
            }
            guard var texts = begun else { continue }
            if texts.shouldRebuild {
                // It is filled again when it is next asked.
                try step { (writer) throws(CofferError) in
                    try writer.change { () throws(CofferError) in try writer.records.indexes.restart(texts.index) }
                }
                continue
            }
            while !texts.isOver {
                texts = try storage.healingIndexes { () throws(CofferError) in
                    try step { (writer) throws(CofferError) in
                        var next = texts
                        try next.run(writer)
                        return next
                    }
                }
            }
        }
    }

    // MARK: Contents

    private mutating func removeContents() throws(CofferError) {
        let unused = try storage.read { (tables) throws(CofferError) in try tables.attachments.unusedAttachments() }
        monitor.begin(.attachments, itemCount: unused.count)
        for first in stride(from: 0, to: unused.count, by: Self.attachmentStep) {
            let some = unused[first..<min(first + Self.attachmentStep, unused.count)]
            try removeContents(Array(some))
            monitor.advance(itemCount: some.count)
        }
    }

    private mutating func removeContents(_ numbers: [ContentNumber]) throws(CofferError) {
        try monitor.check(storage)
        defer { storage.letOthersWrite() }
        let (sha1s, byteCount) = try storage.alone { (writer) throws(CofferError) in
            let removed = try storage.durably(writer) { (writer) throws(CofferError) in
                try writer.change { () throws(CofferError) in try writer.records.compaction.removeUnused(numbers) }
            }
            // The rows are gone from the disk, and nobody can add one before this is done.
            try storage.attachments.remove(removed.sha1s)
            return removed
        }
        result.attachmentCount += sha1s.count
        // Lengths that others state can come to any sum.
        result.attachmentByteCount = min(result.attachmentByteCount + byteCount, Int(Schema.counts.upperBound))
    }

    /// Removes what a process left that was killed in the middle of the above, or whose last commits a power cut took back.
    private func removeFilesWithoutRows() throws(CofferError) {
        let names = try storage.attachments.allNames()
        guard !names.isEmpty else { return }
        let known = try storage.read { (tables) throws(CofferError) in
            try tables.attachments.names(by: storage.attachments.naming)
        }
        let suspects = names.filter { !known.contains($0) }
        guard !suspects.isEmpty else { return }
        try monitor.check(storage)
        try storage.alone { (writer) throws(CofferError) in
            // Some may have got a row since. A file is removed for want of one, so none may be overlooked.
            let kept = try storage.durably(writer) { (writer) throws(CofferError) in
                try writer.tables.attachments.names(by: storage.attachments.naming)
            }
            try storage.attachments.remove(named: suspects.filter { !kept.contains($0) })
        }
    }

    // MARK: Space

    private mutating func giveBackPages() throws(CofferError) {
        let start = try step { (writer) throws(CofferError) in
            try writer.change { () throws(CofferError) in try writer.state.reclaimable.forget(in: writer.records) }
            return try writer.records.compaction.pages()
        }
        monitor.begin(.space, itemCount: start.free)
        var pages = start
        while pages.free > 0 {
            let before = pages
            pages = try step { (writer) throws(CofferError) in
                // Making the file shorter means moving what is at its end, which may be a page that can't be read.
                if try writer.tables.indexes.haveAbandonedPages() { return before }
                // 2 MiB at a time.
                try writer.records.giveBackPages()
                return try writer.records.compaction.pages()
            }
            monitor.advance(itemCount: max(0, before.free - pages.free))
            guard pages.free < before.free else { break }
        }
        result.databaseByteCount = max(0, start.all - pages.all) * Schema.pageByteCount
        guard pages.all < start.all else { return }
        // Only then does the file get shorter.
        try storage.alone { (writer) throws(CofferError) in storage.emptyLog(writer) }
    }
}

extension Storage {
    /// Compacts the store.
    func compact(_ monitor: CompactionMonitor) throws(CofferError) -> CompactionResult {
        try maintain { () throws(CofferError) in try Compaction(self, monitor).run() }
    }

    /// Runs `body` in a transaction of the writer, which is on the disk when this returns, whatever others promise.
    func durably<Value>(
        _ writer: borrowing Writer, _ body: (borrowing Writer) throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        guard settings.durability == .relaxed else { return try write(in: writer, body) }
        try writer.records.synchronizeCommits(true)
        // Where that fails commits stay more durable than was asked for.
        defer { try? writer.records.synchronizeCommits(false) }
        return try write(in: writer) { (writer) throws(CofferError) in
            // Without a change there would be no commit, and what was committed before would stay where it is.
            try writer.change { () throws(CofferError) in try writer.records.compaction.touch() }
            return try body(writer)
        }
    }
}
