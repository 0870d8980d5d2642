@_spi(Tool) public import Coffer
@_spi(Tool) public import CofferSealing
@_spi(Tool) public import Foundation
internal import Synchronization

/// A database that another process of this user has open, and that it does work on: see
/// `Manager.acceptMaintenance(in:)`. Safe from any thread; one call waits for the other.
///
/// Errors are those of the same calls of `Database`, and `closed` (500) where the other process ended, or closed the database,
/// before it answered: what it was about is done or not then, as after a kill of one process. Whoever opens the store next
/// finds out.
@_spi(Tool) public final class DatabaseInUse: Sendable {
    private let client: MaintenanceClient
    private let target: MaintenanceClient.Target
    private let key: SymmetricKey?

    /// Asks the processes that accept maintenance in a directory whether one of them has a database open, and opens it there.
    ///
    /// - Parameters:
    ///   - name: the database's name in its directory.
    ///   - directory: that directory.
    ///   - key: the key that must open the database; nil if it is not encrypted.
    ///   - isForWriting: whether a process that has it open for reading only won't do.
    ///   - isInterrupted: whether nobody waits any more for an answer that may be a long time coming.
    /// - Returns: nil when none of them has.
    /// - Throws: `wrongKey`, `keyRequired` and `notEncrypted` (401); `databaseNotFound` (404); `cancelled` (499); `ioFailed`
    ///   (500); `unsupportedFormat` (501) where one speaks another version.
    public static func find(
        named name: String, in directory: URL, encryptionKey key: SymmetricKey?, isForWriting: Bool,
        isInterrupted: @escaping @Sendable () -> Bool
    ) throws(CofferError) -> DatabaseInUse? {
        try find(
            MaintenanceClient.Target(
                name: name, directory: directory, runtimeDirectories: RuntimeDirectory.candidates(),
                isForWriting: isForWriting, isInterrupted: isInterrupted), key)
    }

    /// Whether some process accepts maintenance of a database that it has open for writing. Needs no key.
    public static func isAccepted(
        named name: String, in directory: URL, isInterrupted: @escaping @Sendable () -> Bool
    ) -> Bool {
        let target = MaintenanceClient.Target(
            name: name, directory: directory, runtimeDirectories: RuntimeDirectory.candidates(), isForWriting: true,
            isInterrupted: isInterrupted)
        return (try? MaintenanceClient.connected(to: target)) != nil
    }

    static func find(_ target: MaintenanceClient.Target, _ key: SymmetricKey?) throws(CofferError) -> DatabaseInUse? {
        guard let client = try MaintenanceClient.connected(to: target) else { return nil }
        try client.unlock(with: key)
        return DatabaseInUse(client, target, key)
    }

    private init(_ client: MaintenanceClient, _ target: MaintenanceClient.Target, _ key: SymmetricKey?) {
        (self.client, self.target, self.key) = (client, target, key)
    }

    // MARK: What it is

    /// Whether it is encrypted.
    public var isEncrypted: Bool { key != nil }

    /// What only the process knows that has it open.
    public func describe() throws(CofferError) -> DatabaseDescription {
        try client.ask(.describe, as: DatabaseDescription.self)
    }

    /// How much is in it. May take as long as counting does.
    public func count() throws(CofferError) -> DatabaseCounts { try client.ask(.count, as: DatabaseCounts.self) }

    // MARK: Keys

    /// Adds a key, and returns it as ``DatabaseDescription/keys`` lists it.
    public func addKey(_ key: SymmetricKey, label: String?) throws(CofferError) -> DatabaseKey {
        try client.ask(.addKey(label: label), [key], as: DatabaseKey.self, changes: true)
    }

    /// Removes the key with that id.
    public func removeKey(_ id: DatabaseKey.ID) throws(CofferError) {
        _ = try client.ask(.removeKey(id), as: Bool.self, changes: true)
    }

    /// - Parameter id: the key that goes; nil for the one that was given to ``find(named:in:encryptionKey:)``.
    public func replaceKey(
        _ id: DatabaseKey.ID?, with key: SymmetricKey, label: String?
    ) throws(CofferError) -> DatabaseKey {
        try client.ask(.replaceKey(id, label: label), [key], as: DatabaseKey.self, changes: true)
    }

    /// As if it had been opened with the key that was given to ``find(named:in:encryptionKey:)``: that one ends.
    public func changeKey(
        _ order: KeyChangeOrder, _ progress: (@Sendable (CopyProgress) -> Void)?
    ) async throws -> KeyChangeResult {
        try await client.perform(
            .changeKey(dropsOtherKeys: order.dropsOtherKeys, keyedNames: order.keyedNames),
            [order.newKey] + order.keptKeys, as: KeyChangeResult.self, progress: progress)
    }

    /// Converts it to another storage engine, where it hasn't that one already.
    public func converted(
        to type: StorageType, _ progress: (@Sendable (CopyProgress) -> Void)?
    ) async throws -> ConversionResult? {
        try await client.perform(.convert(type), [], as: ConversionAnswer.self, progress: progress).result
    }

    // MARK: Housekeeping

    /// Looks at all of it, up to that level.
    public func verified(
        _ level: VerificationLevel, _ progress: (@Sendable (VerificationProgress) -> Void)?
    ) async throws -> Verification {
        try await client.perform(.verify(level), as: Verification.self, progress: progress)
    }

    /// Drops what replaced and deleted revisions keep.
    public func compacted() async throws -> CompactionResult {
        try await client.perform(
            .compact, as: CompactionResult.self, progress: Optional<@Sendable (CopyProgress) -> Void>.none)
    }

    /// Has it keep that many revisions of each line.
    public func setMaxRevTreeDepth(_ depth: Int) throws(CofferError) {
        _ = try client.ask(.setMaximumDepth(depth), as: Bool.self, changes: true)
    }

    /// Copies it under a key of the copy's own, or without one.
    ///
    /// - Throws: also `invalidArgument` (400) where the other process finds another folder at the path of the copy's.
    public func backUp(
        to url: URL, _ key: SymmetricKey?, _ progress: (@Sendable (CopyProgress) -> Void)?
    ) async throws -> BackupResult {
        let folder = url.deletingLastPathComponent().path(percentEncoded: false)
        let request = MaintenanceRequest.Backup(
            folder: folder, folderIdentity: try FileIdentity(ofDirectoryAt: folder), fileName: url.lastPathComponent)
        return try await client.perform(
            .backUp(request), [key].compactMap(\.self), as: BackupResult.self, progress: progress)
    }

    // MARK: Documents

    /// A document as it was when its turn came.
    public struct Document: Sendable {
        /// Its id.
        public let id: String
        /// What `SavedRevision.json` of its current revision is.
        public let json: Data
        /// Whether it has attachments.
        public let hasAttachments: Bool
        /// Of its attachments, and of blobs in it, which have no names.
        public let contents: [(name: String?, digest: String, byteCount: Int)]
        /// Whether other revisions count, too.
        public let isInConflict: Bool
    }

    /// Hands out all documents in the order of their ids. Where `body` throws, this connection is at its end.
    public func forEachDocument(_ body: (Document) throws -> Void) throws {
        _ = try client.stream(.listDocuments, as: Int.self) { payload in
            let item = try DocumentItem(payload: payload)
            try body(
                Document(
                    id: item.header.id, json: item.json, hasAttachments: item.header.hasAttachments,
                    contents: item.header.contents.map { ($0.name, $0.digest, $0.byteCount) },
                    isInConflict: item.header.isInConflict))
        }
    }

    /// Hands out a content in pieces, through a connection of its own, so that it can be called for each document.
    ///
    /// - Returns: false where the content was never downloaded.
    public func forEachChunk(
        ofContent digest: String, byteCount: Int, _ body: (Data) throws -> Void
    ) throws -> Bool {
        let other = try contents()
        do {
            return try other.stream(.readContent(digest: digest, byteCount: byteCount), as: Bool.self, body)
        } catch {
            // After an error of `body` there may be more of it to come.
            contentClient.withLock { $0 = nil }
            throw error
        }
    }

    private let contentClient = Lock<MaintenanceClient?>(nil)

    private func contents() throws(CofferError) -> MaintenanceClient {
        try contentClient.withLock { (client) throws(CofferError) in
            if let client { return client }
            guard let new = try MaintenanceClient.connected(to: target) else {
                throw CofferError(.closed, of: target.subject, "the process that had the store open has closed it")
            }
            try new.unlock(with: key)
            client = new
            return new
        }
    }
}
