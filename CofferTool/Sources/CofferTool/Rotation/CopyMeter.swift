internal import Coffer

/// Makes of how far a copy is how far the store is.
struct CopyMeter {
    private let path: String
    private let sizes: StoreSizes?
    private let progress: @Sendable (StoreProgress) -> Void

    init(_ path: String, _ sizes: StoreSizes?, _ progress: @escaping @Sendable (StoreProgress) -> Void) {
        (self.path, self.sizes, self.progress) = (path, sizes, progress)
        show(0)
    }

    /// Contents come before the database.
    @Sendable func show(_ copy: CopyProgress) {
        let before = copy.phase == .database ? sizes?.contentByteCount ?? 0 : 0
        show(before + copy.completedByteCount)
    }

    private func show(_ completed: Int) {
        let total = sizes.map { $0.contentByteCount + $0.databaseByteCount } ?? 0
        progress(
            StoreProgress(path: path, completedByteCount: min(completed, total), totalByteCount: total))
    }
}
