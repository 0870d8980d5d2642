internal import Coffer
@_spi(Tool) internal import CofferMaintenance

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// What can be known before a rotation of one store of what would stop it, without changing anything.
struct Rehearsal {
    let store: StorePath

    /// Throws where the store can't be written, or another process has it open: before this one opens it.
    func checkCanBeChanged() throws(Failure) {
        try checkIsWritable()
        try checkIsFree()
    }

    private func checkIsWritable() throws(Failure) {
        guard unsafe access(store.path, W_OK | X_OK) != 0 else { return }
        let reason = Failure.system(errno, store.path)
        throw Failure(
            message: reason.message, hint: reason.hint, code: "readOnly", status: 403, exit: .failed)
    }

    /// Takes the lock that whoever writes has, and gives it back.
    private func checkIsFree() throws(Failure) {
        let descriptor = unsafe open(store.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure.system(errno, store.path) }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK else { return }
        let isAccepted = DatabaseInUse.isAccepted(
            named: store.databaseName, in: store.folder, isInterrupted: { Interruption.wasNoticed })
        guard !isAccepted else { return }
        throw Failure(
            message: "another process has it open (503)", hint: "try again when it is done", code: "busy", status: 503,
            exit: .busy)
    }

    /// Throws where a second copy of the store has no room beside the first.
    func checkHasRoom(generation: Int) throws(Failure) {
        let sizes = try StoreSizes(of: store, generation: generation)
        // As the change itself counts: each file has its own last block, and each content a header.
        let needed = sizes.databaseByteCount + sizes.contentByteCount + sizes.contentCount * 8192 + 65_536
        var status = statvfs()
        guard unsafe statvfs(store.path, &status) == 0 else { throw Failure.system(errno, store.path) }
        let blockByteCount = Int(clamping: status.f_frsize)
        let (free, isMore) = Int(clamping: status.f_bavail).multipliedReportingOverflow(by: blockByteCount)
        guard free < needed && !isMore else { return }
        throw Failure(
            message: "\(needed) bytes are needed for a second copy, and \(free) are free", code: "noSpace", status: 507,
            exit: .noSpace)
    }
}
