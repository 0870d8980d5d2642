import Foundation
import Testing

@testable import Coffer
@testable import CofferVault

/// A file system of a few megabytes in memory, to be filled. Gone with its last reference.
final class SmallDisk: Sendable {
    let directory: URL
    let manager: Manager

    /// Whether this process may mount one: on Linux, as root.
    static let isAvailable: Bool = {
        guard let disk = try? SmallDisk(megabytes: 1) else { return false }
        return FileManager.default.fileExists(atPath: disk.directory.path)
    }()

    init(megabytes: Int) throws {
        directory = URL.temporaryDirectory.appending(
            path: "coffer-disk-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        manager = Manager(
            directory: directory, fileSystem: SystemFileSystem(), passwordCost: .scrypt(log2N: 10, p: 1))
        manager.storageType = TestStores.storageType
        guard Self.mount(directory.path, options: "size=\(megabytes)m", flags: 0) else {
            try? FileManager.default.removeItem(at: directory)
            throw CofferError(.ioFailed, "no disk can be mounted here")
        }
    }

    deinit {
        Self.unmount(directory.path)
        try? FileManager.default.removeItem(at: directory)
    }

    func open(
        _ name: String = "db", key: SymmetricKey? = TestStores.key, _ change: (inout DatabaseOptions) -> Void = { _ in }
    ) throws -> Database {
        var options = DatabaseOptions()
        options.create = true
        options.encryptionKey = key
        change(&options)
        return try manager.openDatabase(named: name, options: options)
    }

    var names: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0 != "ballast" }.sorted()
        }
    }

    /// Takes all space but `byteCount` bytes, in whole pages.
    ///
    /// It looks more than once: a process that another test started meanwhile may have inherited files that are removed by
    /// now, and give their space back when it runs.
    func fill(leaving byteCount: Int) throws {
        let ballast = directory.appending(path: "ballast")
        try Data().write(to: ballast)
        let file = try FileHandle(forWritingTo: ballast)
        for _ in 0..<3 {
            try file.write(contentsOf: Data(count: max(0, try freeByteCount() - byteCount)))
            Thread.sleep(forTimeInterval: 0.02)
        }
        try file.close()
        try #require(try freeByteCount() <= byteCount)
    }

    private func freeByteCount() throws -> Int {
        let attributes = try FileManager.default.attributesOfFileSystem(forPath: directory.path)
        return try #require(attributes[.systemFreeSize] as? NSNumber).intValue
    }

    /// Gives the space back that ``fill(leaving:)`` took.
    ///
    /// It is cut first: a process that another test started meanwhile may have inherited the open file.
    func empty() throws {
        let ballast = directory.appending(path: "ballast")
        try FileHandle(forWritingTo: ballast).truncate(atOffset: 0)
        try FileManager.default.removeItem(at: ballast)
    }

    /// From here on nothing on it can be changed.
    func makeReadOnly() throws {
        try #require(Self.mount(directory.path, options: "", flags: Self.readOnlyRemount))
    }
}

#if canImport(Glibc)
import Glibc

extension SmallDisk {
    fileprivate static let readOnlyRemount = UInt(MS_REMOUNT | MS_RDONLY)

    fileprivate static func mount(_ path: String, options: String, flags: UInt) -> Bool {
        Glibc.mount("none", path, "tmpfs", flags, options) == 0
    }

    fileprivate static func unmount(_ path: String) { umount2(path, Int32(MNT_DETACH)) }
}

/// From here on no file of this process grows beyond `byteCount`, so that writes fail: for a process of its own. Nil for
/// no limit.
func limitFiles(to byteCount: Int?) {
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    limit.rlim_cur = byteCount.map { rlim_t($0) } ?? limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
}
#else
import Darwin

extension SmallDisk {
    fileprivate static let readOnlyRemount: UInt = 0
    fileprivate static func mount(_ path: String, options: String, flags: UInt) -> Bool { false }
    fileprivate static func unmount(_ path: String) {}
}

/// From here on no file of this process grows beyond `byteCount`, so that writes fail: for a process of its own. Nil for
/// no limit.
func limitFiles(to byteCount: Int?) {
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit()
    getrlimit(RLIMIT_FSIZE, &limit)
    limit.rlim_cur = byteCount.map { rlim_t($0) } ?? limit.rlim_max
    setrlimit(RLIMIT_FSIZE, &limit)
}
#endif
