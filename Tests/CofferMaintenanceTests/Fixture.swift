import Coffer
import CofferTesting
import Foundation
import Testing

@_spi(Tool) @testable import CofferMaintenance

/// Stores that are open here, sockets of their own, and the way in that another process would take.
final class Fixture: Sendable {
    let stores = TemporaryStores()
    let runtimeDirectory: RuntimeDirectory
    private let runtimeURL = URL(filePath: "/tmp/cm-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)

    init() { runtimeDirectory = RuntimeDirectory(path: runtimeURL.path(percentEncoded: false)) }

    deinit {
        try? FileManager.default.removeItem(at: runtimeURL)
    }

    func create(
        _ name: String = "notes", _ key: SymmetricKey?, busyTimeout: Duration = .seconds(10)
    ) throws -> Database {
        var options = DatabaseOptions()
        options.busyTimeout = busyTimeout
        options.create = true
        options.encryptionKey = key
        return try stores.manager.openDatabase(named: name, options: options)
    }

    func listen() throws -> MaintenanceListener { try stores.manager.acceptMaintenance(in: runtimeDirectory) }

    func find(_ name: String = "notes", _ key: SymmetricKey?) throws -> DatabaseInUse? {
        try DatabaseInUse.find(target(name), key)
    }

    func target(_ name: String = "notes") -> MaintenanceClient.Target {
        MaintenanceClient.Target(name: name, directory: stores.directory, runtimeDirectories: [runtimeDirectory])
    }

    /// A connection for frames of any kind.
    func connect() throws -> FrameChannel {
        let place = try FileIdentity(ofDirectoryAt: stores.directory.path(percentEncoded: false))
        let path = try #require(runtimeDirectory.socketPaths(forStoresIn: place).first)
        return FrameChannel(try #require(try UnixSocket.connected(to: path)))
    }

    func hello(_ name: String = "notes") throws -> Hello {
        Hello(
            name: name,
            store: try FileIdentity(ofDirectoryAt: stores.url(ofDatabaseNamed: name).path(percentEncoded: false)))
    }

    var socketNames: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: runtimeURL.path(percentEncoded: false))) ?? []
    }
}

/// Runs what waits for another thread on a thread of its own, so that it keeps no task from running.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread { continuation.resume(with: Result { try body() }) }.start()
    }
}
