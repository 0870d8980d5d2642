package import CofferSealing

extension LockedStore {
    /// What in the store's directory is neither a file nor a folder, or can't be listed: nothing of a store's own is, and
    /// nobody looks into it.
    ///
    /// - Parameter depthLimit: how many levels of folders are looked into; a store's own are three.
    package func specialEntries(depthLimit: Int = 1000) throws(CofferError) -> [(path: String, what: String)] {
        try checkOpen()
        var walk = try TreeWalk(below: directory, fileSystem, depthLimit: depthLimit)
        var entries: [(path: String, what: String)] = []
        while let step = try walk.step() {
            switch step {
            case .entry(let name, _, let status):
                if status.kind != .file && status.kind != .directory {
                    entries.append((walk.path(of: name), status.kind.description))
                }
            case .unreadable(let name, _, _): entries.append((walk.path(of: name), "a folder that can't be listed"))
            case .tooDeep(let name, _): entries.append((walk.path(of: name), "a folder below \(depthLimit) others"))
            case .end: break
            }
        }
        return entries
    }
}
