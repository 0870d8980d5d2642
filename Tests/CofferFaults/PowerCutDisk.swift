import Foundation

/// What may be on a disk after a power cut, of what a log says was done to it.
///
/// The weakest file system that the assumptions allow: content is whole only after a sync of its file, and of the changes
/// of a directory since its last sync any may have arrived without the others. The database library syncs its own files,
/// and its word is taken for that, but only for a database that the vault has made durable once: before, what it wrote is
/// like anything else.
package struct PowerCutDisk {
    /// As the running process sees it.
    private var current: DiskTree
    /// As it is for certain. A file that is not among the contents was never synced.
    private var durable: DiskTree
    private var pending: [Pending] = []
    /// Files that were synced once for themselves, or were there before: a database among them is in use.
    private var settledFiles: Set<Int>
    private var dirtyFiles: Set<Int> = []
    private var nextOwnNumber = -1

    /// Names that change in one step, when and if the change arrives.
    private struct Pending {
        let places: Set<DiskOperation.Place>
        var directories: Set<Int> { Set(places.map(\.directory)) }
        let change: (inout [DiskOperation.Place: Int]) -> Void
    }

    /// A disk on which `base` is durable.
    package init(_ base: DiskTree) {
        current = base
        durable = base
        settledFiles = Set(base.contents.keys)
    }

    package mutating func apply(_ operation: DiskOperation) {
        switch operation {
        case .makeDirectory(let place, let made): change([place]) { $0[place] = made }
        case .createFile(let place, let made):
            current.contents[made] = Data()
            dirtyFiles.insert(made)
            change([place]) { $0[place] = made }
        case .write(let bytes, let file):
            current.contents[file]?.append(contentsOf: bytes)
            dirtyFiles.insert(file)
        case .synchronizeFile(let file):
            settleFile(file)
            // A file that is still empty is no database yet.
            if current.contents[file]?.isEmpty == false { settledFiles.insert(file) }
        case .synchronizeDirectory(let directory): settleNames { $0.contains(directory) }
        case .synchronizeFileSystem:
            settleNames { _ in true }
            for file in dirtyFiles { settleFile(file) }
        case .rename(let place, let newPlace), .renameWithoutReplacing(let place, let newPlace):
            let moved = current.names[place]
            change([place, newPlace]) {
                $0[place] = nil
                $0[newPlace] = moved
            }
        case .exchange(let place, let other):
            let (first, second) = (current.names[place], current.names[other])
            change([place, other]) {
                $0[place] = second
                $0[other] = first
            }
        case .unlink(let place), .removeDirectory(let place): change([place]) { $0[place] = nil }
        case .databaseFile(let place, let content): writeDatabaseFile(place, content)
        case .setOwner, .setPermissions, .acknowledged: break
        }
    }

    private mutating func change(
        _ places: [DiskOperation.Place], _ change: @escaping (inout [DiskOperation.Place: Int]) -> Void
    ) {
        change(&current.names)
        pending.append(Pending(places: Set(places), change: change))
    }

    private mutating func settleFile(_ file: Int) {
        durable.contents[file] = current.contents[file]
        dirtyFiles.remove(file)
    }

    private mutating func settleNames(_ isSettled: (Set<Int>) -> Bool) {
        // What a name was before a change that is durable can't come after it.
        var settled = pending.map { isSettled($0.directories) }
        var places: Set<DiskOperation.Place> = []
        for index in pending.indices.reversed() {
            if !settled[index] { settled[index] = !places.isDisjoint(with: pending[index].places) }
            if settled[index] { places.formUnion(pending[index].places) }
        }
        for (one, isSettled) in zip(pending, settled) where isSettled { one.change(&durable.names) }
        pending = zip(pending, settled).filter { !$0.1 }.map(\.0)
    }

    private mutating func writeDatabaseFile(_ place: DiskOperation.Place, _ content: Data?) {
        guard let content else {
            // An emptied log is removed without a sync, and may come back.
            if current.names[place] != nil { change([place]) { $0[place] = nil } }
            return
        }
        let main = DiskOperation.Place(directory: place.directory, name: DatabaseWatcher.databaseName)
        let isSettled = current.names[main].map(settledFiles.contains) ?? false
        let file: Int
        if let known = current.names[place] {
            file = known
        } else {
            file = nextOwnNumber
            nextOwnNumber -= 1
            change([place]) { $0[place] = file }
        }
        // With the first sync of a log, its directory is synced too. An empty one was not synced.
        if isSettled && !content.isEmpty { settleNames { $0.contains(place.directory) } }
        current.contents[file] = content
        dirtyFiles.insert(file)
        if isSettled { settleFile(file) }
    }

    // MARK: Outcomes

    /// What becomes of content that was not synced.
    private enum Loss: CaseIterable {
        /// It is as it was at the last sync, or empty.
        case all
        case nothing
        /// Half of it arrived.
        case half
        /// Its length arrived without it.
        case zeros
    }

    /// What may be there when the power is cut now: everything lost, everything arrived, and beyond that all combinations
    /// where they are few; else, `sampleCount` times each, one change alone or missing, and any of them.
    package func outcomes(sampleCount: Int, using generator: inout some RandomNumberGenerator) -> [DiskTree] {
        let count = pending.count
        let losses: [Loss] = dirtyFiles.isEmpty ? [.nothing] : Loss.allCases
        let extremes = [true, false].map { Array(repeating: $0, count: count) }
        var outcomes = extremes.flatMap { arrived in losses.map { loss in outcome(arrived) { loss } } }
        if count <= 3 {
            let combinations = (1..<max(1, 1 << count - 1)).map { choice in (0..<count).map { choice >> $0 & 1 == 1 } }
            outcomes += combinations.flatMap { arrived in losses.map { loss in outcome(arrived) { loss } } }
        }
        guard count > 3 || dirtyFiles.count > 1 else { return outcomes }
        for _ in 0..<sampleCount {
            let one = Int.random(in: 0..<max(1, count), using: &generator)
            for arrived in [
                (0..<count).map { $0 == one }, (0..<count).map { $0 != one },
                (0..<count).map { _ in Bool.random(using: &generator) },
            ] {
                outcomes.append(outcome(arrived) { losses.randomElement(using: &generator) ?? .nothing })
            }
        }
        return outcomes
    }

    private func outcome(_ arrived: [Bool], _ loss: () -> Loss) -> DiskTree {
        var tree = durable
        for (one, isThere) in zip(pending, arrived) where isThere { one.change(&tree.names) }
        for file in dirtyFiles.sorted() {
            let whole = current.contents[file] ?? Data()
            switch loss() {
            case .all: tree.contents[file] = durable.contents[file] ?? Data()
            case .nothing: tree.contents[file] = whole
            case .half: tree.contents[file] = Data(whole.prefix(whole.count / 2))
            case .zeros: tree.contents[file] = Data(count: whole.count)
            }
        }
        return tree
    }
}
