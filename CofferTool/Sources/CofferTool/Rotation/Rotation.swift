internal import Coffer
internal import Foundation

/// Changes the encryption key of stores, each as one transaction of its own.
struct Rotation: Sendable {
    let keys: RotationKeys
    let manner: Manner
    /// Told of a store before it is changed. Where it throws, the store is not.
    let willChange: @Sendable (StoreBeginning) throws -> Void
    /// Told when a store is begun, and how far it is; nil if nobody wants to know.
    var progress: (@Sendable (StoreProgress) -> Void)?

    /// How stores are changed.
    struct Manner: Codable, Sendable {
        var dropsOtherKeys = false
        /// Whether it is only looked at what would be done.
        var isRehearsal = false
        /// Whether a rehearsal also reads all of the store.
        var isVerifying = false
        /// Whether a key that is to be kept is left out where it does not open the store.
        var keepsKeysWhereTheyOpen = false
        /// How long to wait for a store that another process has open.
        var waitingSeconds = 0.0
    }

    /// Does it to one store, and says what came of it. A task that is cancelled leaves the store as it was.
    func run(_ path: String) async -> RotationReceipt {
        let clock = ContinuousClock()
        let start = clock.now
        var receipt = RotationReceipt(path: path, outcome: .due)
        progress?(StoreProgress(path: path))
        do {
            let store = try StorePath(path)
            let manager = try Manager(directory: store.folder)
            let info = try manager.storeInfo(named: store.databaseName)
            receipt.info = info
            guard info.isEncrypted else { throw Failure.notEncrypted }
            if manner.isRehearsal { try Rehearsal(store: store).checkCanBeChanged() }
            let keys = try self.keys.keys(ofStoreAt: store.path, info.storeUUID)
            let meter = progress.map { progress in
                CopyMeter(path, try? StoreSizes(of: store, generation: info.generation), progress)
            }
            let work = StoreRotation(
                manager: manager, store: store, keys: keys, manner: manner, willChange: willChange, meter: meter)
            (receipt.outcome, receipt.databaseUUID) = try await work.run()
            // Somebody may have changed it since.
            if case .wasRotated = receipt.outcome, let info = try? manager.storeInfo(named: store.databaseName) {
                receipt.info = info
            }
        } catch {
            receipt.outcome = .failed(Self.failure(error, path))
        }
        receipt.duration = clock.now - start
        return receipt
    }

    private static func failure(_ error: any Error, _ path: String) -> Failure {
        guard (error as? CofferError)?.code == .cancelled else { return Failure(ofOneStore: error, path) }
        return Failure(
            message: "cancelled, and the store is as it was", code: "cancelled", status: 499, exit: .cancelled
        ).about(Console.printable(path))
    }
}
