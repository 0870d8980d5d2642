internal import Coffer
internal import Foundation

/// Changes the encryption key of stores, each as one transaction of its own.
struct Rotation: Sendable {
    let oldKey: SymmetricKey
    let newKey: SymmetricKey
    let keptKeys: [SymmetricKey]
    let manner: Manner
    /// Told of a store before it is changed. Where it throws, the store is not.
    let willChange: @Sendable (StoreBeginning) throws -> Void

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
        do {
            let store = try StorePath(path)
            let place = Place(
                manager: try Manager(directory: store.folder), store: store, waitingSeconds: manner.waitingSeconds)
            let info = try place.manager.storeInfo(named: place.name)
            receipt.info = info
            guard info.isEncrypted else { throw Failure.notEncrypted }
            if manner.isRehearsal { try Rehearsal(store: store).checkCanBeChanged() }
            (receipt.outcome, receipt.databaseUUID) = try await rotate(place)
            // Somebody may have changed it since.
            if case .wasRotated = receipt.outcome, let info = try? place.manager.storeInfo(named: place.name) {
                receipt.info = info
            }
        } catch {
            receipt.outcome = .failed(Self.failure(error, path))
        }
        receipt.duration = clock.now - start
        return receipt
    }

    private static func failure(_ error: any Error, _ path: String) -> Failure {
        let failure =
            switch error {
            case let failure as Failure: failure
            case let error as CofferError where error.code == .cancelled:
                Failure(
                    message: "cancelled, and the store is as it was", code: "cancelled", status: 499, exit: .cancelled)
            case let error as CofferError: Failure(error, of: path)
            default: Failure(describing: error, subject: path)
            }
        return failure.about(Console.printable(path))
    }

    private struct Place {
        let manager: Manager
        let store: StorePath
        let waitingSeconds: Double
        var name: String { store.databaseName }

        func open(_ key: SymmetricKey, readOnly: Bool) async throws -> Database {
            var options = DatabaseOptions()
            options.encryptionKey = key
            options.readOnly = readOnly
            options.compactsInBackground = false
            options.lockTimeout = .seconds(waitingSeconds)
            return try await manager.openDatabase(named: name, options: options)
        }
    }

    private func rotate(_ place: Place) async throws -> (RotationReceipt.Outcome, UUID?) {
        let database: Database
        do {
            database = try await place.open(oldKey, readOnly: manner.isRehearsal)
        } catch let error as CofferError where error.code == .wrongKey {
            // For writing: a run that was killed may have left it to be finished, and all that is under the old key.
            guard let rotated = try await opened(place, by: newKey, readOnly: manner.isRehearsal) else { throw error }
            return try await closing(rotated) {
                .wasRotated(try await differences(of: rotated, place), left: try rotated.oldGenerations)
            }
        }
        return try await closing(database) { try await rotate(database, place) }
    }

    /// What `body` makes of an open database, which is closed then. What was done is done, and what failed has failed, whatever
    /// becomes of the closing.
    private func closing(
        _ database: Database, _ body: () async throws -> RotationReceipt.Outcome
    ) async throws -> (RotationReceipt.Outcome, UUID?) {
        do {
            let (outcome, uuid) = (try await body(), try? database.uuid)
            try? await database.close()
            return (outcome, uuid)
        } catch {
            try? await database.close()
            throw error
        }
    }

    /// In what a store that the new key opens, and the old one does not, is other than a rotation would have left it.
    private func differences(of database: Database, _ place: Place) async throws -> [RotationReceipt.Difference] {
        var differences: [RotationReceipt.Difference] = []
        let keys = try database.keys
        if keys.contains(where: { $0.isCurrent && !$0.isOriginal }) { differences.append(.notEncryptedAnew) }
        var keptCount = 0
        for key in keptKeys where key != newKey {
            if try await opened(place, by: key) != nil {
                keptCount += 1
            } else if !manner.keepsKeysWhereTheyOpen {
                differences.append(.keptKeyIsMissing)
            }
        }
        if keys.count > 1 + keptCount { differences.append(.otherKeysOpen) }
        return differences
    }

    private func rotate(_ database: Database, _ place: Place) async throws -> RotationReceipt.Outcome {
        var kept: [SymmetricKey] = []
        for key in keptKeys {
            if manner.keepsKeysWhereTheyOpen, try await opened(place, by: key) == nil { continue }
            kept.append(key)
        }
        // A new key that opens the store already, beside the old one, is none of those that would be dropped.
        if try database.keys.count > 1 + kept.count, try await opened(place, by: newKey) != nil { kept.append(newKey) }
        guard manner.isRehearsal else {
            let info = try place.manager.storeInfo(named: place.name)
            try willChange(
                StoreBeginning(
                    path: place.store.path, uuid: info.storeUUID.uuidString.lowercased(),
                    databaseUUID: (try? database.uuid)?.uuidString.lowercased(), generation: info.generation))
            return .rotated(
                try await database.changeEncryptionKey(
                    to: newKey, keeping: kept, droppingOtherKeys: manner.dropsOtherKeys))
        }
        for key in kept where try await opened(place, by: key) == nil {
            throw Failure(
                message: "a key that is to be kept does not open it", code: "wrongKey", status: 401, exit: .wrongKey)
        }
        let otherCount = try database.keys.count - 1 - kept.count
        guard otherCount <= 0 || manner.dropsOtherKeys else {
            throw Failure(
                message: otherCount == 1
                    ? "another key opens it, which was neither kept nor dropped"
                    : "\(otherCount) other keys open it, which were neither kept nor dropped",
                hint: Failure.hint(for: .otherKeysExist), code: "otherKeysExist", status: 409, exit: .failed)
        }
        if manner.isVerifying { try await verify(database) }
        let generation = try place.manager.storeInfo(named: place.name).generation
        try Rehearsal(store: place.store).checkHasRoom(generation: generation)
        return .due
    }

    private func verify(_ database: Database) async throws {
        let findings = try await database.verify().findings
        guard let first = findings.first else { return }
        let rest = findings.count > 1 ? ", and \(findings.count - 1) more findings" : ""
        throw Failure(
            message: "it is damaged: \(first)\(rest)", hint: "coffer check lists what is damaged", code: "damaged",
            status: 500, exit: .damaged)
    }

    /// The database, opened so or as it is open, if `key` opens it.
    private func opened(_ place: Place, by key: SymmetricKey, readOnly: Bool = true) async throws -> Database? {
        do {
            return try await place.open(key, readOnly: readOnly)
        } catch let error as CofferError where error.code == .wrongKey {
            return nil
        }
    }
}
