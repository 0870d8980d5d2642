internal import CofferSealing
internal import CofferRecords

// Who may keep how much of the page cache: see ``CacheBudget``.

extension Storage {
    /// Lets the readers have the writer's part of the cache, if nobody has written since the last span of reads and nobody
    /// does now. Called by who reads, after each span: it waits for nobody.
    func considerCache() {
        let cache = settings.cache
        guard cache.endSpan(at: clock.settled), !cache.areReadersAlone,
            writer.acquireBriefly()
        else { return }
        defer { writer.release() }
        let isShrunk = writer.lend {
            (try? $0.tables.setCache(byteCount: CacheBudget.leastByteCount)) != nil
        }
        guard isShrunk == true else { return }
        cache.areReadersAlone = true
        databaseFile.setSharedCache(byteCount: cache.sharedByteCount)
    }

    /// Gives the writer its part again. Called by who has it, before a transaction.
    func takeBackCache(for writer: borrowing Writer) {
        settings.cache.areReadersAlone = false
        databaseFile.setSharedCache(byteCount: settings.cache.sharedByteCount)
        // Those at work drop what is too much when they are done.
        generation.shrinkIdleCaches()
        // With less it would be slow, and right.
        try? writer.tables.setCache(
            byteCount: settings.cache.writerByteCount(besideShared: databaseFile.hasSharedCache))
    }
}
