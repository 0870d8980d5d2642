internal import Coffer
internal import CofferModel
internal import CofferSealing
internal import Foundation
internal import Synchronization

/// What is done to an open database for another process that has a key to it.
///
/// It holds the database only while something is done: one that the app lets go of closes.
final class MaintenanceWork: Sendable {
    private let meant: Hello
    private let manager: Manager
    private let key: SymmetricKey?
    private let opening: Lock<Opening>

    /// What the key opens.
    private struct Opening {
        /// Which of the database's keys it is; nil if it is not encrypted.
        var keyID: DatabaseKey.ID?
        /// The generation of the store in which it is that.
        var generation: Int
    }

    /// One derivation at a time, each of which takes some 68 MiB of the app's memory.
    private static let derivation = Lock(())

    /// - Throws: `wrongKey`, `keyRequired` and `notEncrypted` (401) unless the key opens the database.
    init(
        on database: Database, _ meant: Hello, _ manager: Manager, openedBy key: SymmetricKey?
    ) throws(CofferError) {
        (self.meant, self.manager, self.key) = (meant, manager, key)
        opening = Lock(try Self.opening(database, key))
    }

    private static func opening(_ database: Database, _ key: SymmetricKey?) throws(CofferError) -> Opening {
        try derivation.withLock { _ throws(CofferError) in
            let generation = database.generation
            return Opening(keyID: try database.keyID(of: key), generation: generation)
        }
    }

    /// The database that is meant, if it is open here.
    static func database(_ meant: Hello, _ manager: Manager) throws(CofferError) -> Database? {
        guard let database = try manager.databaseInUse(named: meant.name),
            try FileIdentity(ofDirectoryAt: database.url.path(percentEncoded: false)) == meant.store
        else { return nil }
        return database
    }

    /// - Throws: `closed` (500) where it isn't open any more; `wrongKey` (401) where the key opens it no more.
    func database() throws(CofferError) -> Database {
        guard let database = try Self.database(meant, manager) else {
            throw CofferError(
                .closed, of: "database \(meant.name)", "the process that had the store open has closed it")
        }
        try checkKey(database)
        return database
    }

    /// Sees that the key still opens the database: others may have removed it, or changed all of them.
    private func checkKey(_ database: Database) throws(CofferError) {
        let known = opening.withLock { $0 }
        if database.generation == known.generation {
            guard let keyID = known.keyID else { return }
            if try database.keys.contains(where: { $0.id == keyID }) { return }
        }
        let now = try Self.opening(database, key)
        opening.withLock { $0 = now }
    }

    private func user(of database: Database) -> OtherUser {
        OtherUser { [self] () throws(CofferError) in try checkKey(database) }
    }

    private var keyID: DatabaseKey.ID? { opening.withLock { $0.keyID } }

    private static func first(of keys: [SymmetricKey]) throws(CofferError) -> SymmetricKey {
        guard let key = keys.first else { throw CofferError(.invalidKey, "there is no new key") }
        return key
    }

    // MARK: What takes long

    /// Does what others can cancel, and returns the result.
    ///
    /// - Parameters:
    ///   - keys: those that came with the request.
    ///   - progress: told how far it is.
    func result(
        of request: MaintenanceRequest, _ keys: [SymmetricKey], on database: Database,
        progress: @escaping @Sendable (any Encodable) -> Void
    ) async throws -> any Encodable & Sendable {
        // When its turn comes, the key may have ended.
        return try await OtherUser.$current.withValue(user(of: database)) {
            switch request {
            case .verify(let level):
                return try await database.verify(level) { progress($0) }
            case .backUp(let backup):
                let url = try Self.place(of: backup)
                return try await database.backup(to: url, encryptionKey: keys.first) { progress($0) }
            case .compact:
                return try await database.compact()
            case .changeKey(let dropsOtherKeys, let keyedNames):
                guard let key else { throw CofferError(.notEncrypted, of: "database \(database.name)") }
                return try await database.changeEncryptionKey(
                    from: key, to: Self.first(of: keys), keeping: Array(keys.dropFirst()),
                    droppingOtherKeys: dropsOtherKeys, keyedNames: keyedNames, progress: { progress($0) })
            case .convert(let type):
                return ConversionAnswer(result: try await database.convert(to: type) { progress($0) })
            default:
                throw CofferError(.invalidArgument, "that is answered at once")
            }
        }
    }

    /// - Throws: `invalidArgument` (400) where this process finds another folder at that path, as in another container.
    private static func place(of backup: MaintenanceRequest.Backup) throws(CofferError) -> URL {
        guard try FileIdentity(ofDirectoryAt: backup.folder) == backup.folderIdentity else {
            throw CofferError(
                .invalidArgument, of: backup.folder, "the process that has the store open finds another folder there")
        }
        guard !backup.fileName.isEmpty, !backup.fileName.contains("/") else {
            throw CofferError(.invalidArgument, "that can't be the name of a store")
        }
        return URL(filePath: backup.folder, directoryHint: .isDirectory)
            .appending(path: backup.fileName, directoryHint: .isDirectory)
    }

    // MARK: What is answered at once

    /// Answers a request on the calling thread, if it is one for that. Waits for the other side to read.
    ///
    /// - Returns: false where it takes long and can be cancelled.
    func answer(
        _ request: MaintenanceRequest, _ keys: [SymmetricKey], on database: Database, to channel: FrameChannel
    ) throws(CofferError) -> Bool {
        switch request {
        case .describe:
            try channel.send(
                .result,
                DatabaseDescription(
                    uuid: try database.uuid, keys: try database.keys.map { $0.seen(by: keyID) },
                    oldGenerations: try database.oldGenerations))
        case .count:
            try channel.send(
                .result, DatabaseCounts(database))
        case .setMaximumDepth(let depth):
            try database.setMaxRevTreeDepth(depth)
            try channel.send(.result, true)
        case .addKey(let label):
            let key = try Self.first(of: keys)
            let added = try inTurn(database) { () throws(CofferError) in try database.addKey(key, label: label) }
            try channel.send(.result, added)
        case .removeKey(let id):
            try inTurn(database) { () throws(CofferError) in try database.removeKey(id) }
            try channel.send(.result, true)
        case .replaceKey(let id, let label):
            let key = try Self.first(of: keys)
            let replaced = try inTurn(database) { () throws(CofferError) in
                try database.replaceKey(id ?? keyID, with: key, label: label)
            }
            try channel.send(.result, replaced)
        case .listDocuments, .readContent:
            try stream(request, on: database, to: channel)
        case .verify, .backUp, .compact, .changeKey, .convert:
            return false
        }
        return true
    }

    /// Runs `body`, in which the key is looked at once more when it is its turn.
    private func inTurn<Value>(
        _ database: Database, _ body: () throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        do {
            return try OtherUser.$current.withValue(user(of: database)) {
                try body()
            }
        } catch {
            throw error as? CofferError ?? CofferError(.ioFailed, cause: error)
        }
    }

    // MARK: Streams

    /// Sends many items, and the last frame as well.
    private func stream(
        _ request: MaintenanceRequest, on database: Database, to channel: FrameChannel
    ) throws(CofferError) {
        // Whoever reads may pause for as long as they like: this thread is theirs.
        channel.socket.setWriteTimeout(seconds: nil)
        do {
            switch request {
            case .readContent(let digest, let byteCount):
                let chunks = try database.chunks(ofContent: digest, byteCount: byteCount)
                try chunks?.forEach { try channel.send(.item, $0) }
                try channel.send(.result, chunks != nil)
            default: try listDocuments(of: database, to: channel)
            }
        } catch let error as CofferError {
            throw error
        } catch {
            throw CofferError(.ioFailed, of: "database \(database.name)", cause: error)
        }
    }

    private func listDocuments(of database: Database, to channel: FrameChannel) throws {
        var count = 0
        let generation = database.generation
        try database.forEachDocument { document in
            if database.generation != generation { try checkKey(database) }
            let json = unsafe document.json.withUnsafeBytes { unsafe Data($0) }
            var contents: [DocumentItem.Content] = []
            var hasAttachments = false
            if document.mayHaveContents {
                let revision = database.revision(of: document)
                contents = try revision.attachments.map {
                    DocumentItem.Content(name: $0.name, digest: $0.digest, byteCount: $0.length)
                }
                hasAttachments = !contents.isEmpty
                contents += try blobs(in: revision, json)
            }
            let header = DocumentItem.Header(
                id: document.documentID, hasAttachments: hasAttachments, contents: contents,
                isInConflict: document.isInConflict)
            try channel.send(.item, DocumentItem(header: header, json: json).payload)
            count += 1
        }
        try channel.send(.result, count)
    }

    private func blobs(in revision: SavedRevision, _ json: Data) throws -> [DocumentItem.Content] {
        // Reading the values of a large document costs more than looking whether there may be a blob.
        guard json.range(of: Data(#""@type":"blob""#.utf8)) != nil else { return [] }
        return try revision.properties.values.flatMap(\.allBlobs).compactMap { blob in
            blob.digest.map { DocumentItem.Content(name: nil, digest: $0, byteCount: blob.length ?? 0) }
        }
    }
}

extension JSONValue {
    /// All blobs in it, at any depth.
    fileprivate var allBlobs: [Blob] {
        if let blobValue { return [blobValue] }
        return arrayValue?.flatMap(\.allBlobs) ?? objectValue?.values.flatMap(\.allBlobs) ?? []
    }
}
