package import CofferSealing

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// Goes through everything below a directory, depth first, and follows no link.
///
/// However deep folders are nested, no more than a handful of descriptors are open at a time, and what is kept of each
/// level is the names that are still to come. Levels further up are closed, and come back by `..`, if that is the
/// directory that they were.
package struct TreeWalk {
    package enum Step {
        /// Something in `parent`. The steps after that of a directory are of what is in it.
        case entry(FileName, in: Directory, FileStatus)
        /// All of a directory in `parent` has been gone through.
        case end(FileName, in: Directory)
        /// A directory in `parent` that can't be opened or listed, or something that the system tells nothing of.
        case unreadable(FileName, in: Directory, CofferError)
        /// A directory in `parent` that is deeper than the limit, and wasn't opened.
        case tooDeep(FileName, in: Directory)
    }

    private struct Level {
        let name: FileName
        let identity: FileIdentity
        /// Nil while it is closed.
        var directory: Directory?
        /// Those to come, the next one last.
        var names: [FileName]
    }

    private let fileSystem: any FileSystem
    private let first: Set<FileName>
    private let depthLimit: Int
    private let rootPath: String
    private var levels: [Level] = []
    private var next: FileName?

    /// How many levels are open at a time.
    private static let openLimit = 8
    /// How many levels at either end of a path are named.
    private static let namedLimit = 64
    /// How long the paths are that errors name, in bytes. What is deeper is named without what is between.
    private static let pathLimit = 1024

    /// - Parameters:
    ///   - first: names that come before all others in their directory. The rest comes in the order of bytes.
    ///   - depthLimit: how many levels are opened. Default: all.
    /// - Throws: what the system says of `directory` itself.
    package init(
        below directory: Directory, _ fileSystem: any FileSystem, first: Set<FileName> = [], depthLimit: Int = .max
    ) throws(CofferError) {
        self.fileSystem = fileSystem
        self.first = first
        self.depthLimit = depthLimit
        rootPath = directory.path
        levels = [try level(FileName("."), directory)]
    }

    /// How many levels there are between the directory that it began in, which is at 1, and what the last step was of.
    package var depth: Int { levels.count }

    /// The way from where it began to an entry of the last step; of a very deep one without what is in the middle.
    package func path(of name: FileName) -> String {
        let folders = levels.dropFirst()
        var parts = folders.prefix(Self.namedLimit).map(\.name.description)
        if folders.count > 2 * Self.namedLimit { parts.append("…") }
        parts += folders.dropFirst(Self.namedLimit).suffix(Self.namedLimit).map(\.name.description)
        return (parts + [name.description]).joined(separator: "/")
    }

    /// Goes on; nil at the end.
    ///
    /// - Throws: `ioFailed` (500) when a directory has been moved meanwhile, so that there is no way back.
    package mutating func step() throws(CofferError) -> Step? {
        while let directory = levels.last?.directory {
            if let name = next {
                next = nil
                if levels.count >= depthLimit { return .tooDeep(name, in: directory) }
                do throws(CofferError) {
                    try enter(name, in: directory)
                } catch {
                    if !error.isMissing { return .unreadable(name, in: directory, error) }
                }
            } else if let name = levels[levels.count - 1].names.popLast() {
                do throws(CofferError) {
                    guard let status = try fileSystem.status(of: name, in: directory) else { continue }
                    if status.kind == .directory { next = name }
                    return .entry(name, in: directory, status)
                } catch {
                    return .unreadable(name, in: directory, error)
                }
            } else if let parent = try leave(directory) {
                return parent
            }
        }
        return nil
    }

    private mutating func enter(_ name: FileName, in parent: Directory) throws(CofferError) {
        var directory = try fileSystem.openDirectory(name, in: parent)
        if directory.path.utf8.count > Self.pathLimit {
            directory = directory.renamed(to: "\(rootPath)/…/\(name)")
        }
        levels.append(try level(name, directory))
        if levels.count > Self.openLimit { levels[levels.count - Self.openLimit - 1].directory = nil }
    }

    private func level(_ name: FileName, _ directory: Directory) throws(CofferError) -> Level {
        let names = try fileSystem.names(in: directory).sorted { left, right in
            let (isLeftFirst, isRightFirst) = (first.contains(left), first.contains(right))
            return isLeftFirst == isRightFirst ? right < left : isRightFirst
        }
        return Level(
            name: name, identity: try fileSystem.status(of: directory).identity, directory: directory, names: names)
    }

    /// Nil at the end of all.
    private mutating func leave(_ directory: Directory) throws(CofferError) -> Step? {
        let name = levels.removeLast().name
        guard let level = levels.last else { return nil }
        if let parent = level.directory { return .end(name, in: parent) }
        let parent = try fileSystem.openDirectory(FileName(".."), in: directory).renamed(to: "\(rootPath)/…")
        guard try fileSystem.status(of: parent).identity == level.identity else {
            throw CofferError(.ioFailed, of: directory.path, "somebody moved it meanwhile")
        }
        levels[levels.count - 1].directory = parent
        return .end(name, in: parent)
    }
}
