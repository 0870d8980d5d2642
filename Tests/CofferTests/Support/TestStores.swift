import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferVault

/// A directory of databases of the test's own, removed with it. Passwords cost little here.
final class TestStores: Sendable {
    let directory: URL
    let manager: Manager
    let fileSystem: any FileSystem
    private let isOwner: Bool

    init(
        fileSystem: any FileSystem = SystemFileSystem(), attachmentBatchCount: Int = Installation.batchCount,
        adjustDigest: @escaping @Sendable (ContentDigest) -> ContentDigest = { $0 }
    ) {
        directory = URL.temporaryDirectory.appending(
            path: "coffer-tests-\(UUID().uuidString)", directoryHint: .isDirectory)
        manager = Manager(
            directory: directory, fileSystem: fileSystem, passwordCost: .scrypt(log2N: 10, p: 1),
            attachmentBatchCount: attachmentBatchCount, adjustDigest: adjustDigest)
        manager.storageType = Self.storageType
        self.fileSystem = fileSystem
        isOwner = true
        DatabaseCalls.install()
    }

    /// The directory of another test, seen from a process of its own.
    init(
        sharing path: String, fileSystem: any FileSystem = SystemFileSystem(),
        attachmentBatchCount: Int = Installation.batchCount
    ) {
        directory = URL(filePath: path, directoryHint: .isDirectory)
        manager = Manager(
            directory: directory, fileSystem: fileSystem, passwordCost: .scrypt(log2N: 10, p: 1),
            attachmentBatchCount: attachmentBatchCount)
        manager.storageType = Self.storageType
        self.fileSystem = fileSystem
        isOwner = false
        DatabaseCalls.install()
    }

    deinit { if isOwner { try? FileManager.default.removeItem(at: directory) } }

    /// Creates or opens a database. Calls wait for each other's transactions for as long as a busy machine may take, unless
    /// `change` says otherwise.
    func open(
        _ name: String = "db", key: SymmetricKey? = TestStores.key, _ change: (inout DatabaseOptions) -> Void = { _ in }
    ) throws -> Database {
        var options = DatabaseOptions()
        options.create = true
        options.encryptionKey = key
        options.busyTimeout = longestWait
        change(&options)
        return try manager.openDatabase(named: name, options: options)
    }

    static let key = testKey(7)

    /// The engine of encrypted databases that name none: what the environment variable `COFFER_ENGINE` says, so that all
    /// suites run on each.
    static let storageType: StorageType =
        ProcessInfo.processInfo.environment["COFFER_ENGINE"] == "sealed" ? .sealed : .sqlite

    /// For tests about bytes that SQLCipher alone writes.
    static let isSQLCipher = storageType == .sqlite

    func url(_ name: String = "db") -> URL { directory.appending(path: "\(name).coffer", directoryHint: .isDirectory) }

    /// The directory of the store's one generation.
    func generation(_ name: String = "db") throws -> URL {
        let names = try FileManager.default.contentsOfDirectory(atPath: url(name).path).filter { $0.hasPrefix("g0") }
        try #require(names.count == 1)
        return url(name).appending(path: names[0], directoryHint: .isDirectory)
    }

    func databaseFile(_ name: String = "db") throws -> URL { try generation(name).appending(path: "db.sqlite3") }

    /// Every file and directory below this directory, with its content and mode. Links are not followed.
    func snapshot(ignoring: Set<String> = []) throws -> [String: Data] {
        var snapshot: [String: Data] = [:]
        let names = FileManager.default.enumerator(atPath: directory.path)
        while let name = names?.nextObject() as? String {
            if ignoring.contains((name as NSString).lastPathComponent) { continue }
            let url = directory.appending(path: name)
            let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
            let mode = (attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0
            let content =
                switch attributes[.type] as? FileAttributeType {
                case .typeDirectory: Data()
                case .typeSymbolicLink: Data(try FileManager.default.destinationOfSymbolicLink(atPath: url.path).utf8)
                default: try Data(contentsOf: url)
                }
            snapshot[name] = Data("\(mode) ".utf8) + content
        }
        return snapshot
    }

    /// The files in which `text` stands readable, as UTF-8.
    func files(containing text: String) throws -> [String] {
        try snapshot().filter { $0.value.range(of: Data(text.utf8)) != nil }.map(\.key)
    }
}

/// The error that `body` throws, which must be Coffer's.
func thrown<Value>(_ body: () throws -> Value) -> CofferError? {
    do {
        _ = try body()
        return nil
    } catch {
        return error as? CofferError
    }
}

extension URL {
    /// Changes bytes of the file in place.
    func patch(_ change: (inout Data) throws -> Void) throws {
        var data = try Data(contentsOf: self)
        try change(&data)
        try data.write(to: self)
    }
}

/// A key of 32 equal bytes.
func testKey(_ byte: UInt8) -> SymmetricKey {
    do {
        return try SymmetricKey(data: [UInt8](repeating: byte, count: 32))
    } catch {
        fatalError("32 bytes are a key: \(error)")
    }
}
