package import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

extension FileSystem {
    /// Removes `name` and, when it is a directory, everything in it, and follows no link. Nothing of that name is fine, also
    /// when somebody else removes the same at the same time.
    ///
    /// What can't be removed keeps nothing else from going: the error comes when all that could be removed is gone.
    ///
    /// - Parameters:
    ///   - first: names that go before the others in their directory.
    ///   - last: a file in the tree's own directory that goes when nothing else is left in it.
    /// - Throws: the first error, or the first that is not a refusal, and how many there were.
    package func removeTree(
        _ name: FileName, in directory: Directory, first: Set<FileName> = [], last: FileName? = nil
    ) throws(CofferError) {
        do throws(CofferError) {
            guard let status = try status(of: name, in: directory) else { return }
            guard status.kind == .directory else { return try unlink(name, in: directory) }
            try removeEntries(of: openDirectory(name, in: directory), first: first, last: last)
            try removeDirectory(name, in: directory)
        } catch {
            if error.isMissing { return }
            try removeUnopened(name, in: directory, error)
        }
    }

    /// Removes a directory that can't be opened all the same where it is empty, as one of another user's can be.
    ///
    /// - Throws: `refusal`, what was said of it before.
    private func removeUnopened(
        _ name: FileName, in directory: Directory, _ refusal: CofferError
    ) throws(CofferError) {
        guard refusal.systemErrorNumber == EACCES, (try? removeDirectory(name, in: directory)) != nil else {
            throw refusal
        }
    }

    package func removeTree(_ name: String, in directory: Directory, first: Set<FileName> = []) throws(CofferError) {
        try removeTree(FileName(name), in: directory, first: first)
    }

    /// Throws when something is left.
    private func removeEntries(
        of tree: Directory, first: Set<FileName>, last: FileName?
    ) throws(CofferError) {
        var walk = try TreeWalk(below: tree, self, first: first)
        var failures = RemovalFailures()
        // Something is left in the directories on the way to this depth.
        var depthOfLeft = 0
        var hasLast = false
        func remove(at depth: Int, _ removal: () throws(CofferError) -> Void) {
            do throws(CofferError) {
                try removal()
            } catch  where !error.isMissing {
                failures.add(error)
                depthOfLeft = max(depthOfLeft, depth)
            } catch {}
        }
        do throws(CofferError) {
            while let step = try walk.step() {
                let depth = walk.depth
                switch step {
                case .entry(_, _, let status) where status.kind == .directory: break
                case .entry(let name, _, _) where depth == 1 && name == last: hasLast = true
                case .entry(let name, let parent, _):
                    remove(at: depth) { () throws(CofferError) in try unlink(name, in: parent) }
                case .end(let name, let parent):
                    if depthOfLeft > depth {
                        depthOfLeft = depth
                    } else {
                        remove(at: depth) { () throws(CofferError) in try removeDirectory(name, in: parent) }
                    }
                case .unreadable(let name, let parent, let error):
                    remove(at: depth) { () throws(CofferError) in try removeUnopened(name, in: parent, error) }
                case .tooDeep: preconditionFailure("a removal has no limit")
                }
            }
        } catch {
            failures.add(error)
        }
        if let last, hasLast, failures.error == nil {
            remove(at: 1) { () throws(CofferError) in try unlink(last, in: tree) }
        }
        if let error = failures.error { throw error }
    }
}

/// What went wrong while a tree was removed.
private struct RemovalFailures {
    private var first: CofferError?
    private var count = 0

    mutating func add(_ error: CofferError) {
        count += 1
        if let first, !first.isRefusal || error.isRefusal { return }
        first = error
    }

    var error: CofferError? {
        guard let first, count > 1 else { return first }
        return CofferError(
            first.code, of: first.subject, "\(first.detail ?? "it can't be removed"), and \(count - 1) more are left",
            cause: first.cause)
    }
}

extension CofferError {
    /// Whether the system refused what was to be removed, for what it is: an immutable file, or a folder of another user. A
    /// disk that fails refuses nothing.
    var isRefusal: Bool { systemErrorNumber.map { [EPERM, EACCES, EBUSY, ENOTEMPTY, EEXIST].contains($0) } ?? false }
}
