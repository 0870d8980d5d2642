internal import Coffer
@_spi(Tool) internal import CofferMaintenance
internal import Foundation

/// A store that is worked on as a whole: open here, or in another process that does the work.
protocol MaintainedStore: Sendable {
    var isEncrypted: Bool { get }

    func description() throws -> StoreDetails
    func counts() throws -> StoreCounts

    func addKey(_ key: SymmetricKey, label: String?) throws(CofferError) -> DatabaseKey
    func removeKey(_ id: DatabaseKey.ID) throws(CofferError)
    func replaceKey(_ id: DatabaseKey.ID?, with key: SymmetricKey, label: String?) throws(CofferError) -> DatabaseKey
    func changeKey(_ change: KeyChangeOrder, _ progress: (@Sendable (CopyProgress) -> Void)?) async throws
        -> KeyChangeResult

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

/// How much is in a store.
struct StoreCounts: Sendable {
    let documentCount: Int
    let lastSequence: Int
    /// Contents of attachments and blobs that were left out by a pull.
    let missingContentCount: Int
}

/// What only who has opened a store knows of it.
struct StoreDetails: Sendable {
    let uuid: UUID?
    let keys: [DatabaseKey]
    let oldGenerations: [OldGeneration]
}

/// Which keys a store is to have.
struct KeyChangeOrder: Sendable {
    let newKey: SymmetricKey
    var keptKeys: [SymmetricKey] = []
    var dropsOtherKeys = false
    var keyedNames: Bool?
}

extension MaintainedStore {
    /// Throws where there are no keys, before one is asked for.
    func checkIsEncrypted(_ store: String) throws(Failure) {
        guard !isEncrypted else { return }
        throw Failure.notEncrypted.about(store)
    }

    /// Throws unless there is a key with that id: a failure, and no mistake in the command line.
    func checkHasKey(_ id: String) throws {
        guard try description().keys.contains(where: { $0.id == id }) else {
            throw Failure(
                message: "key \(id): there is none with this id", hint: "coffer key list shows the ids",
                code: "invalidArgument", status: 400, exit: .failed)
        }
    }
}

extension Database: MaintainedStore {
    func description() throws -> StoreDetails {
        StoreDetails(uuid: try? uuid, keys: try keys, oldGenerations: try oldGenerations)
    }

    func counts() throws -> StoreCounts {
        StoreCounts(
            documentCount: try documentCount, lastSequence: try lastSequenceNumber,
            missingContentCount: try missingContentCount)
    }

    func changeKey(
        _ change: KeyChangeOrder, _ progress: (@Sendable (CopyProgress) -> Void)?
    ) async throws -> KeyChangeResult {
        try await changeEncryptionKey(
            to: change.newKey, keeping: change.keptKeys, droppingOtherKeys: change.dropsOtherKeys,
            keyedNames: change.keyedNames, progress: progress)
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
    func description() throws -> StoreDetails {
        let found = try describe()
        return StoreDetails(uuid: found.uuid, keys: found.keys, oldGenerations: found.oldGenerations)
    }

    func counts() throws -> StoreCounts {
        let found = try count()
        return StoreCounts(
            documentCount: found.documentCount, lastSequence: found.lastSequence,
            missingContentCount: found.missingContentCount)
    }

    func changeKey(
        _ change: KeyChangeOrder, _ progress: (@Sendable (CopyProgress) -> Void)?
    ) async throws -> KeyChangeResult {
        try await changeEncryptionKey(
            to: change.newKey, keeping: change.keptKeys, droppingOtherKeys: change.dropsOtherKeys,
            keyedNames: change.keyedNames, progress: progress)
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

    func end() {}
}
