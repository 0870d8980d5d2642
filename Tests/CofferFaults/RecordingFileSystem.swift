import CofferSealing
import CofferVault
import Foundation
import Synchronization

/// The real file system, with every changing step numbered and logged, and a fault at one of them.
package final class RecordingFileSystem: FileSystem {
    private struct State {
        var log: [DiskOperation] = []
        /// The names of the steps in the log, in its order.
        var effectNames: [String] = []
        var stepNames: [String] = []
        var nodes: [FileIdentity: Int] = [:]
        var nodeCount = 0
        var watcher: DatabaseWatcher?
        var stepCount = 0

        /// The number of what has this identity, from now on another than before if it `isNew`.
        mutating func node(_ identity: FileIdentity, isNew: Bool = false) -> Int {
            if !isNew, let node = nodes[identity] { return node }
            nodes[identity] = nodeCount
            nodeCount += 1
            return nodeCount - 1
        }
        var lockCount = 0
        var reads: [Range<Int>] = []
        var readError: Int32?
        var synchronizedDescriptors: [Int32] = []
    }

    private let system = SystemFileSystem()
    private let fault: Fault?
    private let network: String?
    private let reportsFailedWrites: Bool?
    private let beforeLock: (@Sendable (Int) -> Void)?
    private let beforeUnlock: (@Sendable (Directory) -> Void)?
    private let afterStep: (@Sendable (_ number: Int, _ name: String) -> Void)?
    private let whenOpening: (@Sendable (_ name: String, _ isMissing: Bool) -> Void)?
    private let unopenable: (prefix: String, errno: Int32)?
    private let state = Lock(State())

    /// `beforeLock` is called with the number of the attempt at a lock that is about to be made, from 1, `beforeUnlock` with
    /// what is about to be unlocked, and `afterStep` after each step. `whenOpening` is called before a file is opened, and again
    /// where that wasn't there. Directories whose names start with `unopenable` can't be opened, for want of
    /// descriptors unless another error is given.
    package init(
        _ fault: Fault? = nil, network: String? = nil, unopenable: String? = nil, _ unopenableErrno: Int32 = EMFILE,
        reportsFailedWrites: Bool? = nil,
        beforeLock: (@Sendable (Int) -> Void)? = nil, beforeUnlock: (@Sendable (Directory) -> Void)? = nil,
        afterStep: (@Sendable (_ number: Int, _ name: String) -> Void)? = nil,
        whenOpening: (@Sendable (_ name: String, _ isMissing: Bool) -> Void)? = nil
    ) {
        self.whenOpening = whenOpening
        self.fault = fault
        self.unopenable = unopenable.map { ($0, unopenableErrno) }
        self.afterStep = afterStep
        self.network = network
        self.reportsFailedWrites = reportsFailedWrites
        self.beforeLock = beforeLock
        self.beforeUnlock = beforeUnlock
    }

    /// The steps that were attempted.
    package var stepCount: Int { state.withLock { $0.stepCount } }

    /// One line for each attempted step.
    package var stepNames: [String] { state.withLock { $0.stepNames } }

    /// One line for each step that had its effect, in the order of the log: of two threads the one that began later may be
    /// done first.
    package var effectNames: [String] { state.withLock { $0.effectNames } }

    /// The steps that had their effect, as a model file system would replay them.
    package var log: [DiskOperation] { state.withLock { $0.log } }

    /// Which bytes of a file were asked for, in order.
    package var reads: [Range<Int>] { state.withLock { $0.reads } }

    /// Which openings of directories were synced, in order: a failed write is reported once to each.
    package var synchronizedDescriptors: [Int32] { state.withLock { $0.synchronizedDescriptors } }

    package func forgetReads() { state.withLock { $0.reads = [] } }

    /// Fails every reading of a file from now on.
    package func failReads(_ number: Int32?) { state.withLock { $0.readError = number } }

    // MARK: Numbering

    private func node(_ identity: FileIdentity) -> Int { state.withLock { $0.node(identity) } }

    /// A number of its own for what was just made, whatever had that inode before.
    private func newNode(_ identity: FileIdentity) -> Int { state.withLock { $0.node(identity, isNew: true) } }

    /// Numbers all that is in the directory at `path`, and from here on also notes what is written there beside the steps:
    /// by the database library, between one step and the next.
    ///
    /// Returns what is there, for the log to be replayed on.
    package func watch(_ path: String) throws -> DiskTree {
        try state.withLock { state in
            let tree = try DiskTree(at: path) { state.node($0) }
            state.watcher = DatabaseWatcher(path, tree)
            return tree
        }
    }

    /// Notes in the log that something was promised: the number of what was acknowledged last.
    package func acknowledge(_ number: Int) {
        observe()
        state.withLock { $0.log.append(.acknowledged(number)) }
    }

    /// Notes in the log what the database library did since the last step.
    package func observe() {
        state.withLock { state in
            guard var watcher = state.watcher else { return }
            state.log += watcher.changes { state.node($0) }
            state.watcher = watcher
        }
    }

    private func place(_ name: String, _ directory: Directory) throws(CofferError) -> DiskOperation.Place {
        DiskOperation.Place(directory: node(try system.status(of: directory).identity), name: name)
    }

    private func step<Result>(
        _ name: String, takesSpace: Bool = false, torn: () throws(CofferError) -> Void = {},
        _ effect: () throws(CofferError) -> (Result, DiskOperation)
    ) throws(CofferError) -> Result {
        observe()
        let (number, isFirst) = state.withLock { state in
            let isFirst = !state.stepNames.contains(name)
            state.stepCount += 1
            state.stepNames.append(name)
            return (state.stepCount, isFirst)
        }
        switch fault {
        case .killBefore(number): die()
        case .killWithin(number) where name.hasPrefix("write "):
            try torn()
            die()
        case .fail(number, let errno): throw Self.error(errno, name)
        case .failEach(name, let errno): throw Self.error(errno, name)
        case .stopBefore(let first) where number >= first: throw Self.error(EIO, name)
        case .fullFrom(let first) where number >= first && takesSpace: throw Self.error(ENOSPC, name)
        default: break
        }
        let (result, operation) = try effect()
        state.withLock { state in
            state.log.append(operation)
            state.effectNames.append(name)
        }
        afterStep?(number, name)
        switch fault {
        case .killAfter(number), .killWithin(number): die()
        case .failAfter(number, let errno): throw Self.error(errno, name)
        case .failFirst(name, let errno) where isFirst: throw Self.error(errno, name)
        default: return result
        }
    }

    private static func error(_ number: Int32, _ step: String) -> CofferError {
        CofferError(SystemError(call: "injected", number: number), at: step)
    }

    private func die() -> Never {
        kill(getpid(), SIGKILL)
        while true { sleep(1) }
    }

    // MARK: Changes

    package func makeDirectory(_ name: String, in parent: Directory) throws(CofferError) {
        try step("mkdir \(name)", takesSpace: true) { () throws(CofferError) in
            try system.makeDirectory(name, in: parent)
            let made = newNode(try system.status(of: system.openDirectory(name, in: parent)).identity)
            return ((), .makeDirectory(try place(name, parent), made: made))
        }
    }

    package func createFile(_ name: String, in directory: Directory) throws(CofferError) -> File {
        try step("create \(name)", takesSpace: true) { () throws(CofferError) in
            let file = try system.createFile(name, in: directory)
            return (file, .createFile(try place(name, directory), made: newNode(try system.status(of: file).identity)))
        }
    }

    package func write(_ bytes: borrowing RawSpan, to file: File) throws(CofferError) {
        let copy = bytes.withUnsafeBytes { Array($0) }
        let torn = { () throws(CofferError) in
            try self.system.write(Array(copy.prefix(copy.count / 2)).span.bytes, to: file)
        }
        try step("write \(copy.count) bytes", takesSpace: true, torn: torn) { () throws(CofferError) in
            try system.write(copy.span.bytes, to: file)
            return ((), .write(copy, to: node(try system.status(of: file).identity)))
        }
    }

    package func synchronize(_ file: File) throws(CofferError) {
        try step("fsync file \(file.path.split(separator: "/").last ?? "")") { () throws(CofferError) in
            try system.synchronize(file)
            return ((), .synchronizeFile(node(try system.status(of: file).identity)))
        }
    }

    package func synchronize(_ directory: Directory) throws(CofferError) {
        try step("fsync directory \(directory.path.split(separator: "/").last ?? "")") { () throws(CofferError) in
            try system.synchronize(directory)
            state.withLock { $0.synchronizedDescriptors.append(directory.descriptor) }
            return ((), .synchronizeDirectory(node(try system.status(of: directory).identity)))
        }
    }

    package func synchronizeFileSystem(of directory: Directory) throws(CofferError) {
        try step("syncfs") { () throws(CofferError) in
            try system.synchronizeFileSystem(of: directory)
            return ((), .synchronizeFileSystem)
        }
    }

    package func rename(
        _ name: String, in directory: Directory, to newName: String, in newDirectory: Directory
    ) throws(CofferError) {
        // In another directory it needs a place of its own.
        try step("rename \(name)", takesSpace: directory.path != newDirectory.path) { () throws(CofferError) in
            try system.rename(name, in: directory, to: newName, in: newDirectory)
            return ((), .rename(try place(name, directory), to: try place(newName, newDirectory)))
        }
    }

    package func renameWithoutReplacing(
        _ name: String, in directory: Directory, to newName: String, in newDirectory: Directory
    ) throws(CofferError) {
        try step("rename without replacing \(name)") { () throws(CofferError) in
            try system.renameWithoutReplacing(name, in: directory, to: newName, in: newDirectory)
            return ((), .renameWithoutReplacing(try place(name, directory), to: try place(newName, newDirectory)))
        }
    }

    package func exchange(
        _ name: String, in directory: Directory, with otherName: String, in otherDirectory: Directory
    ) throws(CofferError) {
        try step("exchange \(name)") { () throws(CofferError) in
            try system.exchange(name, in: directory, with: otherName, in: otherDirectory)
            return ((), .exchange(try place(name, directory), with: try place(otherName, otherDirectory)))
        }
    }

    package func unlink(_ name: FileName, in directory: Directory) throws(CofferError) {
        try step("unlink \(name)") { () throws(CofferError) in
            try system.unlink(name, in: directory)
            return ((), .unlink(try place(name.description, directory)))
        }
    }

    package func removeDirectory(_ name: FileName, in parent: Directory) throws(CofferError) {
        try step("rmdir \(name)") { () throws(CofferError) in
            try system.removeDirectory(name, in: parent)
            return ((), .removeDirectory(try place(name.description, parent)))
        }
    }

    package func setOwner(_ owner: FileOwner, of file: File) throws(CofferError) {
        try step("chown of a file") { () throws(CofferError) in
            try system.setOwner(owner, of: file)
            return ((), .setOwner(node(try system.status(of: file).identity)))
        }
    }

    package func setOwner(_ owner: FileOwner, of directory: Directory) throws(CofferError) {
        try step("chown of a directory") { () throws(CofferError) in
            try system.setOwner(owner, of: directory)
            return ((), .setOwner(node(try system.status(of: directory).identity)))
        }
    }

    package func setPermissions(_ permissions: UInt16, of file: File) throws(CofferError) {
        try step("chmod") { () throws(CofferError) in
            try system.setPermissions(permissions, of: file)
            return ((), .setPermissions(node(try system.status(of: file).identity)))
        }
    }

    // MARK: What changes nothing

    package func openDirectory(path: String) throws(CofferError) -> Directory { try system.openDirectory(path: path) }

    package func openDirectory(_ name: FileName, in parent: Directory) throws(CofferError) -> Directory {
        if let unopenable, name.description.hasPrefix(unopenable.prefix) {
            throw Self.error(unopenable.errno, parent.path(of: name.description))
        }
        return try system.openDirectory(name, in: parent)
    }

    package func openFile(_ name: FileName, in directory: Directory) throws(CofferError) -> File {
        whenOpening?(name.description, false)
        do throws(CofferError) {
            return try system.openFile(name, in: directory)
        } catch {
            if error.systemErrorNumber == ENOENT { whenOpening?(name.description, true) }
            throw error
        }
    }

    package func read(
        into buffer: UnsafeMutableRawBufferPointer, from file: File, at offset: Int
    ) throws(CofferError) -> Int {
        let readError = state.withLock {
            $0.reads.append(offset..<offset + buffer.count)
            return $0.readError
        }
        if let readError { throw Self.error(readError, "read") }
        return try system.read(into: buffer, from: file, at: offset)
    }

    package func data(of file: File, from offset: Int) throws(CofferError) -> Range<Int>? {
        try system.data(of: file, from: offset)
    }

    package func reportsFailedWrites(_ directory: Directory) throws(CofferError) -> Bool {
        if let reportsFailedWrites { return reportsFailedWrites }
        return try system.reportsFailedWrites(directory)
    }

    package func names(in directory: Directory) throws(CofferError) -> [FileName] { try system.names(in: directory) }

    package func status(of name: FileName, in directory: Directory) throws(CofferError) -> FileStatus? {
        try system.status(of: name, in: directory)
    }

    package func status(of file: File) throws(CofferError) -> FileStatus { try system.status(of: file) }

    package func status(of directory: Directory) throws(CofferError) -> FileStatus { try system.status(of: directory) }

    package func networkFileSystem(of directory: Directory) throws(CofferError) -> String? {
        if let network { return network }
        return try system.networkFileSystem(of: directory)
    }

    package func lock(_ directory: Directory, for use: LockUse) throws(CofferError) -> Bool {
        let count = state.withLock {
            $0.lockCount += 1
            return $0.lockCount
        }
        beforeLock?(count)
        return try system.lock(directory, for: use)
    }

    package func unlock(_ directory: Directory) {
        beforeUnlock?(directory)
        system.unlock(directory)
    }
}
