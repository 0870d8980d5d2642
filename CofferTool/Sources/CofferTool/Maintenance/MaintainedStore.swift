internal import Coffer
@_spi(Tool) internal import CofferMaintenance
internal import Foundation

/// A store that is worked on as a whole: open here, or in another process that does the work.
protocol MaintainedStore: Sendable {
    var isEncrypted: Bool { get }

    func describe() throws(CofferError) -> DatabaseDescription
    func count() throws(CofferError) -> DatabaseCounts

    func addKey(_ key: SymmetricKey, label: String?) throws(CofferError) -> DatabaseKey
    func removeKey(_ id: DatabaseKey.ID) throws(CofferError)
    func replaceKey(_ id: DatabaseKey.ID?, with key: SymmetricKey, label: String?) throws(CofferError) -> DatabaseKey
    func changeKey(_ change: KeyChangeOrder, _ progress: (@Sendable (CopyProgress) -> Void)?) async throws
        -> KeyChangeResult
    func converted(
        to type: StorageType, _ progress: (@Sendable (CopyProgress) -> Void)?
    ) async throws -> ConversionResult?

    func setMaxRevTreeDepth(_ depth: Int) throws(CofferError)
    func compacted() async throws -> CompactionResult
    func verified(
        _ level: VerificationLevel, _ progress: (@Sendable (VerificationProgress) -> Void)?
    ) async throws -> Verification
    func backUp(
        to url: URL, _ key: SymmetricKey?, _ progress: (@Sendable (CopyProgress) -> Void)?
    ) async throws -> BackupResult

    /// Ends the work on it. One that is open elsewhere stays open there.
    func end() throws
    /// The same, for a task.
    func end() async throws
}

extension MaintainedStore {
    /// Throws where there are no keys, before one is asked for.
    func checkIsEncrypted(_ store: String) throws(Failure) {
        guard !isEncrypted else { return }
        throw Failure.notEncrypted.about(store)
    }

    /// Throws unless there is a key with that id: a failure, and no mistake in the command line.
    func checkHasKey(_ id: String) throws {
        guard try describe().keys.contains(where: { $0.id == id }) else {
            throw Failure(
                message: "key \(id): no key has this id", hint: "coffer key list shows the ids",
                code: "invalidArgument", status: 400, exit: .failed)
        }
    }
}

extension Database: MaintainedStore {
    func describe() throws(CofferError) -> DatabaseDescription {
        DatabaseDescription(uuid: try? uuid, keys: try keys, oldGenerations: try oldGenerations)
    }

    func count() throws(CofferError) -> DatabaseCounts { try DatabaseCounts(self) }

    func changeKey(
        _ change: KeyChangeOrder, _ progress: (@Sendable (CopyProgress) -> Void)?
    ) async throws -> KeyChangeResult {
        try await changeEncryptionKey(
            to: change.newKey, keeping: change.keptKeys, droppingOtherKeys: change.dropsOtherKeys,
            keyedNames: change.keyedNames, progress: progress)
    }

    func converted(
        to type: StorageType, _ progress: (@Sendable (CopyProgress) -> Void)?
    ) async throws -> ConversionResult? {
        try await convert(to: type, progress: progress)
    }

    func compacted() async throws -> CompactionResult { try await compact() }

    func verified(
        _ level: VerificationLevel, _ progress: (@Sendable (VerificationProgress) -> Void)?
    ) async throws -> Verification {
        try await verify(level, progress: progress)
    }

    func backUp(
        to url: URL, _ key: SymmetricKey?, _ progress: (@Sendable (CopyProgress) -> Void)?
    ) async throws -> BackupResult {
        try await backup(to: url, encryptionKey: key, progress: progress)
    }

    func end() throws { try close() }

    func end() async throws { try await close() }
}

extension DatabaseInUse: MaintainedStore {
    func end() {}
}

/// How a store is opened for work on it as a whole: here, or where another process has it open and accepts such work.
struct StoreOpening {
    let manager: Manager
    let store: StorePath
    let key: SymmetricKey?
    var readOnly = false
    var compactsInBackground = true

    private var options: DatabaseOptions {
        var options = DatabaseOptions()
        options.readOnly = readOnly
        options.encryptionKey = key
        options.compactsInBackground = compactsInBackground
        return options
    }

    /// - Throws: as `Manager.openDatabase` does; `busy` (503) where another process has it open and accepts no work on it.
    func open() throws -> any MaintainedStore {
        do {
            return try manager.openDatabase(named: store.databaseName, options: options)
        } catch {
            guard error.code == .busy else { throw error }
            if let other = try inUse() { return other }
            // It may have closed it, or ended, before it was asked.
            return try manager.openDatabase(named: store.databaseName, options: options)
        }
    }

    /// The store in the process that has it open.
    ///
    /// - Parameter error: what is thrown where that accepts no work on it.
    func openElsewhere(insteadOf error: CofferError) throws -> DatabaseInUse {
        guard let other = try inUse() else { throw error }
        return other
    }

    /// The same, for a task.
    ///
    /// - Parameter waitingSeconds: how long to wait for a process that accepts no work.
    func open(waitingSeconds: Double) async throws -> any MaintainedStore {
        do {
            return try await manager.openDatabase(named: store.databaseName, options: options)
        } catch let error as CofferError where error.code == .busy {
            if let other = try inUse() { return other }
        }
        var options = options
        options.lockTimeout = .seconds(waitingSeconds)
        return try await manager.openDatabase(named: store.databaseName, options: options)
    }

    /// The store in the process that has it open, if that accepts work on it.
    private func inUse() throws -> DatabaseInUse? {
        try DatabaseInUse.find(
            named: store.databaseName, in: store.folder, encryptionKey: key, isForWriting: !readOnly,
            isInterrupted: { Interruption.wasNoticed })
    }
}
