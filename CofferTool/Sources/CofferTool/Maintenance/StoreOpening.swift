internal import Coffer
@_spi(Tool) internal import CofferMaintenance
internal import Foundation

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
