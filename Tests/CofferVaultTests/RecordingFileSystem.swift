import CofferSealing
import CofferVault
import Foundation
import Synchronization

/// One change of the file system, with all that a replay of it needs. Files and directories are numbered in the order in
/// which they were first seen, since inodes are used again.
enum Operation: Sendable, Equatable {
    struct Place: Sendable, Equatable {
        let directory: Int
        let name: String
    }

    case makeDirectory(Place, made: Int)
    case createFile(Place, made: Int)
    case write([UInt8], to: Int)
    case synchronizeFile(Int)
    case synchronizeDirectory(Int)
    case synchronizeFileSystem
    case rename(Place, to: Place)
    case renameWithoutReplacing(Place, to: Place)
    case exchange(Place, with: Place)
    case link(Place, to: Place)
    case unlink(Place)
    case removeDirectory(Place)
    case setOwner(Place)
    case setPermissions(Int)

    /// Whether it takes space, so that a full disk refuses it.
    var takesSpace: Bool {
        switch self {
        case .makeDirectory, .createFile, .write, .link: true
        default: false
        }
    }
}

/// What happens at one numbered step, from 1. Each step is one changing call.
enum Fault: Sendable, Codable, Equatable {
    case killBefore(Int)
    /// A write is torn: half of it arrives. Any other step is killed after its effect.
    case killWithin(Int)
    case killAfter(Int)
    /// The step has no effect and fails.
    case fail(Int, Int32)
    /// The step has its effect and yet reports a failure.
    case failAfter(Int, Int32)
    /// Neither this step nor any later one has an effect: a kill as seen from the disk, without a process of its own.
    case stopBefore(Int)
    /// From this step on whatever takes space fails.
    case fullFrom(Int)
}

/// The real file system, with every changing step numbered and logged, and a fault at one of them.
final class RecordingFileSystem: FileSystem {
    private struct State {
        var log: [Operation] = []
        var stepNames: [String] = []
        var nodes: [FileIdentity: Int] = [:]
        var stepCount = 0
        var lockCount = 0
        var reads: [Range<Int>] = []
        var readError: Int32?
    }

    private let system = SystemFileSystem()
    private let fault: Fault?
    private let network: String?
    private let reportsFailedWrites: Bool?
    private let beforeLock: (@Sendable (Int) -> Void)?
    private let afterStep: (@Sendable (_ number: Int, _ name: String) -> Void)?
    private let unopenable: String?
    private let state = Mutex(State())

    /// `beforeLock` is called with the number of the attempt at a lock that is about to be made, from 1, and `afterStep`
    /// after each step. Directories whose names start with `unopenable` can't be opened, for want of descriptors.
    init(
        _ fault: Fault? = nil, network: String? = nil, unopenable: String? = nil, reportsFailedWrites: Bool? = nil,
        beforeLock: (@Sendable (Int) -> Void)? = nil,
        afterStep: (@Sendable (_ number: Int, _ name: String) -> Void)? = nil
    ) {
        self.fault = fault
        self.unopenable = unopenable
        self.afterStep = afterStep
        self.network = network
        self.reportsFailedWrites = reportsFailedWrites
        self.beforeLock = beforeLock
    }

    /// The steps that were attempted.
    var stepCount: Int { state.withLock { $0.stepCount } }

    /// One line for each attempted step.
    var stepNames: [String] { state.withLock { $0.stepNames } }

    /// The steps that had their effect, as a model file system would replay them.
    var log: [Operation] { state.withLock { $0.log } }

    /// Which bytes of a file were asked for, in order.
    var reads: [Range<Int>] { state.withLock { $0.reads } }

    func forgetReads() { state.withLock { $0.reads = [] } }

    /// Fails every reading of a file from now on.
    func failReads(_ number: Int32?) { state.withLock { $0.readError = number } }

    // MARK: Numbering

    private func node(_ identity: FileIdentity) -> Int {
        state.withLock {
            if let node = $0.nodes[identity] { return node }
            $0.nodes[identity] = $0.nodes.count
            return $0.nodes.count - 1
        }
    }

    /// A number of its own for what was just made, whatever had that inode before.
    private func newNode(_ identity: FileIdentity) -> Int {
        state.withLock { state in
            let node = state.nodes.count + state.log.count
            state.nodes[identity] = node
            return node
        }
    }

    private func place(_ name: String, _ directory: Directory) throws(CofferError) -> Operation.Place {
        Operation.Place(directory: node(try system.status(of: directory).identity), name: name)
    }

    private func step<Result>(
        _ name: String, takesSpace: Bool = false, torn: () throws(CofferError) -> Void = {},
        _ effect: () throws(CofferError) -> (Result, Operation)
    ) throws(CofferError) -> Result {
        let number = state.withLock {
            $0.stepCount += 1
            $0.stepNames.append(name)
            return $0.stepCount
        }
        switch fault {
        case .killBefore(number): die()
        case .killWithin(number) where name.hasPrefix("write "):
            try torn()
            die()
        case .fail(number, let errno): throw Self.error(errno, name)
        case .stopBefore(let first) where number >= first: throw Self.error(EIO, name)
        case .fullFrom(let first) where number >= first && takesSpace: throw Self.error(ENOSPC, name)
        default: break
        }
        let (result, operation) = try effect()
        state.withLock { $0.log.append(operation) }
        afterStep?(number, name)
        switch fault {
        case .killAfter(number), .killWithin(number): die()
        case .failAfter(number, let errno): throw Self.error(errno, name)
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

    func makeDirectory(_ name: String, in parent: Directory) throws(CofferError) {
        try step("mkdir \(name)", takesSpace: true) { () throws(CofferError) in
            try system.makeDirectory(name, in: parent)
            let made = newNode(try system.status(of: system.openDirectory(name, in: parent)).identity)
            return ((), .makeDirectory(try place(name, parent), made: made))
        }
    }

    func createFile(_ name: String, in directory: Directory) throws(CofferError) -> File {
        try step("create \(name)", takesSpace: true) { () throws(CofferError) in
            let file = try system.createFile(name, in: directory)
            return (file, .createFile(try place(name, directory), made: newNode(try system.status(of: file).identity)))
        }
    }

    func write(_ bytes: borrowing RawSpan, to file: File) throws(CofferError) {
        let copy = bytes.withUnsafeBytes { Array($0) }
        let torn = { () throws(CofferError) in
            try self.system.write(Array(copy.prefix(copy.count / 2)).span.bytes, to: file)
        }
        try step("write \(copy.count) bytes", takesSpace: true, torn: torn) { () throws(CofferError) in
            try system.write(copy.span.bytes, to: file)
            return ((), .write(copy, to: node(try system.status(of: file).identity)))
        }
    }

    func synchronize(_ file: File) throws(CofferError) {
        try step("fsync file \(file.path.split(separator: "/").last ?? "")") { () throws(CofferError) in
            try system.synchronize(file)
            return ((), .synchronizeFile(node(try system.status(of: file).identity)))
        }
    }

    func synchronize(_ directory: Directory) throws(CofferError) {
        try step("fsync directory \(directory.path.split(separator: "/").last ?? "")") { () throws(CofferError) in
            try system.synchronize(directory)
            return ((), .synchronizeDirectory(node(try system.status(of: directory).identity)))
        }
    }

    func synchronizeFileSystem(of directory: Directory) throws(CofferError) {
        try step("syncfs") { () throws(CofferError) in
            try system.synchronizeFileSystem(of: directory)
            return ((), .synchronizeFileSystem)
        }
    }

    func rename(
        _ name: String, in directory: Directory, to newName: String, in newDirectory: Directory
    ) throws(CofferError) {
        try step("rename \(name)") { () throws(CofferError) in
            try system.rename(name, in: directory, to: newName, in: newDirectory)
            return ((), .rename(try place(name, directory), to: try place(newName, newDirectory)))
        }
    }

    func renameWithoutReplacing(
        _ name: String, in directory: Directory, to newName: String, in newDirectory: Directory
    ) throws(CofferError) {
        try step("rename without replacing \(name)") { () throws(CofferError) in
            try system.renameWithoutReplacing(name, in: directory, to: newName, in: newDirectory)
            return ((), .renameWithoutReplacing(try place(name, directory), to: try place(newName, newDirectory)))
        }
    }

    func exchange(
        _ name: String, in directory: Directory, with otherName: String, in otherDirectory: Directory
    ) throws(CofferError) {
        try step("exchange \(name)") { () throws(CofferError) in
            try system.exchange(name, in: directory, with: otherName, in: otherDirectory)
            return ((), .exchange(try place(name, directory), with: try place(otherName, otherDirectory)))
        }
    }

    func link(
        _ name: String, in directory: Directory, to newName: String, in newDirectory: Directory
    ) throws(CofferError) {
        try step("link \(name)", takesSpace: true) { () throws(CofferError) in
            try system.link(name, in: directory, to: newName, in: newDirectory)
            return ((), .link(try place(name, directory), to: try place(newName, newDirectory)))
        }
    }

    func unlink(_ name: String, in directory: Directory) throws(CofferError) {
        try step("unlink \(name)") { () throws(CofferError) in
            try system.unlink(name, in: directory)
            return ((), .unlink(try place(name, directory)))
        }
    }

    func removeDirectory(_ name: String, in parent: Directory) throws(CofferError) {
        try step("rmdir \(name)") { () throws(CofferError) in
            try system.removeDirectory(name, in: parent)
            return ((), .removeDirectory(try place(name, parent)))
        }
    }

    func setOwner(_ owner: FileOwner, of name: String, in directory: Directory) throws(CofferError) {
        try step("chown \(name)") { () throws(CofferError) in
            try system.setOwner(owner, of: name, in: directory)
            return ((), .setOwner(try place(name, directory)))
        }
    }

    func setPermissions(_ permissions: UInt16, of file: File) throws(CofferError) {
        try step("chmod") { () throws(CofferError) in
            try system.setPermissions(permissions, of: file)
            return ((), .setPermissions(node(try system.status(of: file).identity)))
        }
    }

    // MARK: What changes nothing

    func openDirectory(path: String) throws(CofferError) -> Directory { try system.openDirectory(path: path) }

    func openDirectory(_ name: String, in parent: Directory) throws(CofferError) -> Directory {
        if let unopenable, name.hasPrefix(unopenable) { throw Self.error(EMFILE, parent.path(of: name)) }
        return try system.openDirectory(name, in: parent)
    }

    func openFile(_ name: String, in directory: Directory) throws(CofferError) -> File {
        try system.openFile(name, in: directory)
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, from file: File, at offset: Int
    ) throws(CofferError) -> Int {
        let readError = state.withLock {
            $0.reads.append(offset..<offset + buffer.count)
            return $0.readError
        }
        if let readError { throw Self.error(readError, "read") }
        return try system.read(into: buffer, from: file, at: offset)
    }

    func reportsFailedWrites(_ directory: Directory) throws(CofferError) -> Bool {
        if let reportsFailedWrites { return reportsFailedWrites }
        return try system.reportsFailedWrites(directory)
    }

    func names(in directory: Directory) throws(CofferError) -> [String] { try system.names(in: directory) }

    func status(of name: String, in directory: Directory) throws(CofferError) -> FileStatus? {
        try system.status(of: name, in: directory)
    }

    func status(of file: File) throws(CofferError) -> FileStatus { try system.status(of: file) }

    func status(of directory: Directory) throws(CofferError) -> FileStatus { try system.status(of: directory) }

    func networkFileSystem(of directory: Directory) throws(CofferError) -> String? {
        if let network { return network }
        return try system.networkFileSystem(of: directory)
    }

    func lock(_ directory: Directory, for use: LockUse) throws(CofferError) -> Bool {
        let count = state.withLock {
            $0.lockCount += 1
            return $0.lockCount
        }
        beforeLock?(count)
        return try system.lock(directory, for: use)
    }

    func unlock(_ directory: Directory) { system.unlock(directory) }
}
