internal import Coffer
internal import CofferSealing
internal import Foundation

/// What is done to an open database for another process that has a key to it.
struct MaintenanceWork: Sendable {
    private let database: Database
    private let key: SymmetricKey?
    /// Which of the database's keys that is; nil where it is not encrypted.
    private let keyID: DatabaseKey.ID?
    private let generation: Int

    /// - Throws: `wrongKey`, `keyRequired` and `notEncrypted` (401) unless the key opens the database.
    init(on database: Database, openedBy key: SymmetricKey?) throws(CofferError) {
        generation = database.generation
        keyID = try database.keyID(of: key)
        (self.database, self.key) = (database, key)
    }

    /// Sees that the key still opens the database: others may have removed it, or changed all of them.
    private func checkKey() throws(CofferError) {
        if database.generation == generation {
            guard let keyID else { return }
            if try database.keys.contains(where: { $0.id == keyID }) { return }
        }
        _ = try database.keyID(of: key)
    }

    /// Does what gives one result, which is the answer.
    ///
    /// - Parameters:
    ///   - keys: those that came with the request.
    ///   - progress: told how far it is.
    func result(
        of request: MaintenanceRequest, _ keys: [SymmetricKey], progress: @escaping @Sendable (any Encodable) -> Void
    ) async throws -> any Encodable & Sendable {
        try checkKey()
        switch request {
        case .describe:
            return try description
        case .tryKey:
            return try opens(try Self.first(of: keys))
        case .verify(let level):
            return try await database.verify(level) { progress($0) }
        case .backUp(let backup):
            let url = try Self.place(of: backup)
            return try await database.backup(to: url, encryptionKey: keys.first) { progress($0) }
        case .compact:
            return try await database.compact()
        case .setMaximumDepth(let depth):
            try await database.setMaxRevTreeDepth(depth)
            return true
        case .addKey(let label):
            return try await database.addKey(Self.first(of: keys), label: label)
        case .removeKey(let id):
            try await database.removeKey(id)
            return true
        case .replaceKey(let id, let label):
            return try await database.replaceKey(id ?? keyID, with: Self.first(of: keys), label: label)
        case .changeKey(let dropsOtherKeys, let keyedNames):
            return try await database.changeEncryptionKey(
                from: key, to: Self.first(of: keys), keeping: Array(keys.dropFirst()), droppingOtherKeys: dropsOtherKeys,
                keyedNames: keyedNames, progress: { progress($0) })
        case .listDocuments, .readContent:
            throw CofferError(.invalidArgument, "that has no single result")
        }
    }

    private static func first(of keys: [SymmetricKey]) throws(CofferError) -> SymmetricKey {
        guard let key = keys.first else { throw CofferError(.invalidKey, "there is no new key") }
        return key
    }

    private func opens(_ key: SymmetricKey) throws(CofferError) -> Bool {
        do throws(CofferError) {
            _ = try database.keyID(of: key)
            return true
        } catch  where error.code == .wrongKey {
            return false
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

    private var description: DatabaseDescription {
        get throws(CofferError) {
            DatabaseDescription(
                uuid: try database.uuid, isEncrypted: database.isEncrypted,
                keys: try database.keys.map { $0.seen(by: keyID) }, documentCount: try database.documentCount,
                lastSequence: try database.lastSequenceNumber, oldGenerations: try database.oldGenerations)
        }
    }

    // MARK: Streams

    /// Does what gives many items, and sends the last frame as well. Waits for the other side to read.
    func stream(_ request: MaintenanceRequest, to channel: FrameChannel) throws(CofferError) {
        try checkKey()
        do {
            switch request {
            case .listDocuments: try listDocuments(to: channel)
            case .readContent(let digest, let byteCount):
                let chunks = try database.chunks(ofContent: digest, byteCount: byteCount)
                try chunks?.forEach { try channel.send(.item, $0) }
                try channel.send(.result, chunks != nil)
            default: throw CofferError(.invalidArgument, "that is no stream")
            }
        } catch let error as CofferError {
            throw error
        } catch {
            throw CofferError(.ioFailed, of: "database \(database.name)", cause: error)
        }
    }

    private func listDocuments(to channel: FrameChannel) throws {
        var count = 0
        var rows = database.allDocuments().makeIterator()
        while let revision = try rows.next() {
            let contents = try revision.attachments.map {
                DocumentItem.Content(name: $0.name, digest: $0.digest, byteCount: $0.length)
            }
            let header = DocumentItem.Header(
                id: revision.document.documentID, attachments: contents,
                isInConflict: try revision.document.conflictingRevisions.count > 1)
            try channel.send(.item, DocumentItem(header: header, json: try revision.json).payload)
            count += 1
        }
        try channel.send(.result, count)
    }
}
