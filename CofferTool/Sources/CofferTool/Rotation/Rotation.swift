internal import Coffer
internal import Foundation
@_spi(Tool) internal import CofferMaintenance

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

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

/// The rotation of one store, whose keys are there.
struct StoreRotation {
    let manager: Manager
    let store: StorePath
    let keys: RotationKeys.OfStore
    let manner: Rotation.Manner
    let willChange: @Sendable (StoreBeginning) throws -> Void
    /// Is told how far the copy is; nil if nobody asks.
    let meter: CopyMeter?

    /// Does it, and says what came of it, and the UUID of the database.
    func run() async throws -> (RotationReceipt.Outcome, UUID?) {
        let before = try manager.storeInfo(named: store.databaseName).generation
        do {
            return try await attempt(waitingSeconds: manner.waitingSeconds, isOnlyLook: false)
        } catch  where Self.isUncertain(error) {
            // The process that had it open has ended, or closed it, before it said what came of it. What did is looked at, even
            // if this one is to end: in a task that isn't cancelled.
            let (waitingSeconds, isOnlyLook) = (max(manner.waitingSeconds, Self.timeToEnd), Task.isCancelled)
            do {
                return try await Task { [self] in
                    try await attempt(waitingSeconds: waitingSeconds, isOnlyLook: isOnlyLook)
                }.value
            } catch {
                let now = try manager.storeInfo(named: store.databaseName).generation
                guard now > before else { throw error }
                throw Failure(
                    message:
                        "the process that has it open stopped answering; its generation was \(before) and is now \(now)",
                    hint: "coffer info with each of the two keys says which one opens it", code: "ioFailed",
                    status: 500,
                    exit: .failed)
            }
        }
    }

    /// Whether it has to be looked at what came of it.
    private static func isUncertain(_ error: any Error) -> Bool {
        error is OldKeyHasEnded || (error as? CofferError)?.code == .closed
    }

    /// The old key opened the store, and does so no more: somebody changes the keys in another process.
    private struct OldKeyHasEnded: Error {}

    private static let wasCancelled = Failure(
        message: "cancelled, and the store is as it was", code: "cancelled", status: 499, exit: .cancelled)

    /// Seconds that a process may take to give up its lock after it has closed its socket.
    private static let timeToEnd = 5.0

    /// - Parameter isOnlyLook: whether nothing is to be changed any more.
    private func attempt(
        waitingSeconds: Double, isOnlyLook: Bool
    ) async throws -> (RotationReceipt.Outcome, UUID?) {
        let database: any MaintainedStore
        do {
            database = try await open(keys.old, readOnly: manner.isRehearsal, waitingSeconds: waitingSeconds)
        } catch let error as CofferError where error.code == .wrongKey {
            // For writing: a run that was killed may have left it to be finished, and all that is under the old key.
            guard let rotated = try await opened(by: keys.new, readOnly: manner.isRehearsal) else {
                throw Failure(
                    message: "neither the old key nor the new one opens it (401)", hint: Failure.hint(for: .wrongKey),
                    code: "wrongKey", status: 401, exit: .wrongKey)
            }
            return try await closing(rotated) {
                .wasRotated(try await differences(of: rotated), left: try rotated.describe().oldGenerations)
            }
        }
        return try await closing(database) {
            guard !isOnlyLook else { throw Self.wasCancelled }
            return try await rotate(database)
        }
    }

    /// What `body` makes of an open database, which is closed then. What was done is done, and what failed has failed, whatever
    /// becomes of the closing.
    private func closing(
        _ database: any MaintainedStore, _ body: () async throws -> RotationReceipt.Outcome
    ) async throws -> (RotationReceipt.Outcome, UUID?) {
        do {
            // Before: a key that has ended opens nothing to ask it by.
            let uuid = try database.describe().uuid
            let outcome = try await body()
            try? await database.end()
            return (outcome, uuid)
        } catch {
            try? await database.end()
            throw error
        }
    }

    private static let keptKeyDoesNotOpen = Failure(
        message: "a key that is to be kept does not open it (401)",
        hint: "--keep-key-where-it-opens keeps it in the stores that have it", code: "wrongKey", status: 401,
        exit: .wrongKey)

    /// In what a store that the new key opens, and the old one does not, is other than a rotation would have left it.
    private func differences(of database: any MaintainedStore) async throws -> [RotationReceipt.Difference] {
        var differences: [RotationReceipt.Difference] = []
        let slots = try database.describe().keys
        if slots.contains(where: { $0.isCurrent && !$0.isOriginal }) { differences.append(.notEncryptedAnew) }
        var keptCount = 0
        let new = try keys.new
        for key in keys.kept where key != new {
            if try await opened(by: key) != nil {
                keptCount += 1
            } else if !manner.keepsKeysWhereTheyOpen {
                differences.append(.keptKeyIsMissing)
            }
        }
        if slots.count > 1 + keptCount { differences.append(.otherKeysOpen) }
        return differences
    }

    private func rotate(_ database: any MaintainedStore) async throws -> RotationReceipt.Outcome {
        var kept: [SymmetricKey] = []
        for key in keys.kept {
            if manner.keepsKeysWhereTheyOpen, try await opened(by: key) == nil { continue }
            kept.append(key)
        }
        // A new key that opens the store already, beside the old one, would not be dropped.
        let details = try database.describe()
        if details.keys.count > 1 + kept.count, try await opened(by: keys.new) != nil { kept.append(try keys.new) }
        guard manner.isRehearsal else {
            let info = try manager.storeInfo(named: store.databaseName)
            try willChange(
                StoreBeginning(
                    path: store.path, uuid: info.storeUUID.uuidString.lowercased(),
                    databaseUUID: details.uuid?.uuidString.lowercased(), generation: info.generation))
            do {
                return .rotated(
                    try await database.changeKey(
                        KeyChangeOrder(newKey: keys.new, keptKeys: kept, dropsOtherKeys: manner.dropsOtherKeys),
                        meter?.show))
            } catch let error as CofferError where error.code == .wrongKey {
                // The old key has opened it; it may have ended since, where another process has the store open.
                guard try await opened(by: keys.old) != nil else { throw OldKeyHasEnded() }
                throw Self.keptKeyDoesNotOpen
            }
        }
        for key in kept where try await opened(by: key) == nil { throw Self.keptKeyDoesNotOpen }
        let otherCount = details.keys.count - 1 - kept.count
        guard otherCount <= 0 || manner.dropsOtherKeys else {
            throw Failure(
                message: otherCount == 1
                    ? "another key also opens it: keep it or drop it"
                    : "\(otherCount) other keys open it, which were neither kept nor dropped",
                hint: Failure.hint(for: .otherKeysExist), code: "otherKeysExist", status: 409, exit: .failed)
        }
        if manner.isVerifying { try await verify(database) }
        let generation = try manager.storeInfo(named: store.databaseName).generation
        try Rehearsal(store: store).checkHasRoom(generation: generation)
        return .due
    }

    private func verify(_ database: any MaintainedStore) async throws {
        let findings = try await database.verified(.everything, nil).findings
        guard let first = findings.first else { return }
        let rest = findings.count > 1 ? ", and \((findings.count - 1).counted("more finding"))" : ""
        throw Failure(
            message: "it is damaged: \(first)\(rest)", hint: "coffer check lists what is damaged", code: "damaged",
            status: 500, exit: .damaged)
    }

    /// The database, opened so or as it is open, if `key` opens it.
    private func opened(by key: SymmetricKey, readOnly: Bool = true) async throws -> (any MaintainedStore)? {
        do {
            return try await open(key, readOnly: readOnly, waitingSeconds: manner.waitingSeconds)
        } catch let error as CofferError where error.code == .wrongKey {
            return nil
        }
    }

    private func open(
        _ key: SymmetricKey, readOnly: Bool, waitingSeconds: Double
    ) async throws -> any MaintainedStore {
        let opening = StoreOpening(
            manager: manager, store: store, key: key, readOnly: readOnly, compactsInBackground: false)
        return try await opening.open(waitingSeconds: waitingSeconds)
    }
}

/// What can be known before a rotation of one store of what would stop it, without changing anything.
struct Rehearsal {
    let store: StorePath

    /// Throws where the store can't be written, or another process has it open: before this one opens it.
    func checkCanBeChanged() throws(Failure) {
        try checkIsWritable()
        try checkIsFree()
    }

    private func checkIsWritable() throws(Failure) {
        guard unsafe access(store.path, W_OK | X_OK) != 0 else { return }
        let reason = Failure.system(errno, store.path)
        throw Failure(
            message: reason.message, hint: reason.hint, code: "readOnly", status: 403, exit: .failed)
    }

    /// Takes the lock that whoever writes has, and gives it back.
    private func checkIsFree() throws(Failure) {
        let descriptor = unsafe open(store.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure.system(errno, store.path) }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK else { return }
        let isAccepted = DatabaseInUse.isAccepted(
            named: store.databaseName, in: store.folder, isInterrupted: { Interruption.wasNoticed })
        guard !isAccepted else { return }
        throw Failure(
            message: "another process has it open (503)", hint: "try again when it is done", code: "busy", status: 503,
            exit: .busy)
    }

    /// Throws where a second copy of the store has no room beside the first.
    func checkHasRoom(generation: Int) throws(Failure) {
        let sizes = try StoreSizes(of: store, generation: generation)
        // As the change itself counts: each file has its own last block, and each content a header.
        let needed = sizes.databaseByteCount + sizes.contentByteCount + sizes.contentCount * 8192 + 65_536
        var status = statvfs()
        guard unsafe statvfs(store.path, &status) == 0 else { throw Failure.system(errno, store.path) }
        let blockByteCount = Int(clamping: status.f_frsize)
        let (free, isMore) = Int(clamping: status.f_bavail).multipliedReportingOverflow(by: blockByteCount)
        guard free < needed && !isMore else { return }
        throw Failure(
            message: "\(needed) bytes are needed for a second copy, and \(free) are free", code: "noSpace", status: 507,
            exit: .noSpace)
    }
}
