internal import CofferSealing

/// The hidden directories beside a store in which one is built before it gets its name, and taken apart after it lost it.
///
/// Whoever works in one holds its lock. One that can be locked was left behind by a process that was killed.
enum Sibling {
    private static let prefix = ".coffer-"

    static func randomName() throws(CofferError) -> String { prefix + hexadecimal(try randomNumber()) }

    /// Whether `name` is one that only ``randomName()`` makes.
    static func isSiblingName(_ name: String) -> Bool {
        let digits = name.utf8.dropFirst(prefix.utf8.count)
        return name.utf8.starts(with: prefix.utf8) && digits.count == 16 && digits.allSatisfy(\.isLowerCaseHexDigit)
    }

    /// Makes a sibling of `location` and locks it.
    ///
    /// Someone who removes leftovers may see it before it is locked; then it is theirs, and another is made.
    static func make(beside location: StoreLocation) throws(CofferError) -> (StoreLock, at: StoreLocation) {
        // Each is lost only to someone who looks in the few microseconds before it is locked.
        for _ in 0..<100 {
            let sibling = location.beside(try randomName())
            try sibling.fileSystem.makeDirectory(sibling.name, in: sibling.parent)
            let attempt: StoreLock.Attempt
            do {
                attempt = try StoreLock.attempt(sibling.openDirectory(), at: sibling, for: .writing)
            } catch {
                if error.code == .databaseNotFound { continue }
                // Empty, and its name in nobody else's hand.
                try? sibling.fileSystem.removeDirectory(sibling.name, in: sibling.parent)
                throw error
            }
            if case .locked(let lock) = attempt { return (lock, sibling) }
        }
        throw CofferError(.busy, of: location.path, "other processes keep removing what is being made")
    }

    /// Removes what killed processes left beside `location`; never a sibling that someone holds, never another name.
    ///
    /// What can't be removed now stays for the next time: it must not keep a store from being made or deleted.
    static func removeLeftovers(beside location: StoreLocation) {
        let fileSystem = location.fileSystem
        guard let names = try? fileSystem.textNames(in: location.parent) else { return }
        for name in names where isSiblingName(name) {
            let sibling = location.beside(name)
            guard let directory = try? sibling.openDirectory(),
                case .locked(let lock)? = try? StoreLock.attempt(directory, at: sibling, for: .writing)
            else { continue }
            try? fileSystem.removeTree(name, in: location.parent, first: Generation.firstNames)
            lock.unlock()
        }
    }
}
