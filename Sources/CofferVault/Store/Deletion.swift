package import CofferSealing
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

extension LockedStore {
    /// Deletes the store, and unlocks what is left of it: nothing. Whatever is open in it must be closed before; content that
    /// is being staged is given up.
    ///
    /// It first loses its name in one step, durably, and is then taken apart. So whatever happens, a power cut included,
    /// the store is whole or its name is free, and what a killed process leaves is removed by the next creation or
    /// deletion in the same directory.
    ///
    /// Throws `readOnly` (403) when it was locked for reading, `ioFailed` (500) when it is no longer where it was opened.
    /// After an error while it is taken apart the name is free and the store closed; after an earlier one it is whole
    /// and open.
    package func delete() throws(CofferError) {
        try checkWritable()
        guard try location.status()?.identity == lock.identity else {
            throw CofferError(.ioFailed, of: path, "the store was moved while it was open")
        }
        let sibling = location.beside(try Sibling.randomName())
        try fileSystem.renameWithoutReplacing(location.name, in: location.parent, to: sibling.name, in: sibling.parent)
        do {
            try fileSystem.synchronize(location.parent)
        } catch {
            // Whether the name would stay away is open, so what it names must stay whole.
            do {
                try fileSystem.renameWithoutReplacing(
                    sibling.name, in: sibling.parent, to: location.name, in: location.parent)
            } catch {
                close()
            }
            throw error
        }
        isDeleted.store(true, ordering: .sequentiallyConsistent)
        defer {
            close()
            Sibling.removeLeftovers(beside: location)
        }
        try takeApart(sibling)
    }

    /// Content is staged without a lock: a file that was let in before the deletion may come into a directory that was
    /// emptied. None is let in any more, so each attempt finds fewer.
    private func takeApart(_ sibling: StoreLocation) throws(CofferError) {
        for _ in 0..<100 {
            do throws(CofferError) {
                return try fileSystem.removeTree(sibling.name, in: sibling.parent, first: Generation.firstNames)
            } catch  where error.systemErrorNumber == ENOTEMPTY {}
        }
        try fileSystem.removeTree(sibling.name, in: sibling.parent, first: Generation.firstNames)
    }
}
