import Foundation
import TestSupport

@testable import Coffer
@testable import CofferRecords
@testable import CofferModel
@testable import CofferSealing
@testable import CofferSQLite
@testable import CofferVault

/// All that the library says of an open database, as JSON: what the vectors of stores hold, and what a reader in another
/// language has to say too.
enum StoreDescription {
    /// Documents with all of their revisions, local documents, and each content by its SHA-256.
    static func of(_ database: Database) throws -> JSONObject {
        var documents = JSONObject()
        var options = AllDocumentsOptions()
        options.includesDeleted = true
        for revision in try database.allDocuments(options).all {
            documents[revision.document.documentID] = .object(try describe(revision.document, winner: revision))
        }
        var local = JSONObject()
        for id in try localDocumentIDs(of: database) {
            local[id] = try database.localDocument(withID: id).map { .string("\($0)") }
        }
        let manifest = database.storage.manifest.manifest
        return [
            "documents": .object(documents), "generation": .number(JSONNumber(manifest.generation)),
            "isEncrypted": .bool(manifest.isEncrypted), "keyLabels": .array(try labels(of: database)),
            "keyedNames": .bool(manifest.attachmentNames == .keyed), "localDocuments": .object(local),
            "storeUUID": .string(Array(manifest.storeUUID.bytes).hex),
        ]
    }

    private static func describe(_ document: Document, winner: SavedRevision) throws -> JSONObject {
        let leaves = try document.leafRevisions
        var revisions = JSONObject()
        for leaf in leaves {
            for revision in try leaf.history {
                revisions[revision.revisionID.description] = .object(try describe(revision))
            }
        }
        let time = try document.expirationDate.map { JSONNumber(Int(($0.timeIntervalSince1970 * 1_000).rounded())) }
        return [
            "expires": time.map { .number($0) } ?? .null, "isDeleted": .bool(winner.isDeletion),
            "leaves": .array(sorted(leaves.map(\.revisionID.description)).map { .string($0) }),
            "revisions": .object(revisions), "winner": .string(winner.revisionID.description),
        ]
    }

    /// In the order of their bytes.
    private static func sorted(_ texts: [String]) -> [String] {
        texts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    private static func describe(_ revision: SavedRevision) throws -> JSONObject {
        var description: JSONObject = [
            "isDeletion": .bool(revision.isDeletion),
            "parent": try revision.parentRevisionID.map { .string($0.description) } ?? .null,
        ]
        guard try revision.propertiesAvailable else {
            description["body"] = .null
            return description
        }
        description["body"] = .string(String(decoding: try revision.json, as: UTF8.self))
        var contents = JSONObject()
        for attachment in try revision.attachments {
            contents[attachment.digest] = try attachment.content.map { .string(try sha256($0)) } ?? .null
        }
        for blob in blobs(in: .object(try revision.properties)) {
            guard let digest = blob.digest else { continue }
            contents[digest] = try blob.content.map { .string(try sha256($0)) } ?? .null
        }
        description["contents"] = .object(contents)
        return description
    }

    private static func blobs(in value: JSONValue) -> [Blob] {
        if let blob = value.blobValue { return [blob] }
        return switch value {
        case .array(let values): values.flatMap { blobs(in: $0) }
        case .object(let object): object.values.flatMap { blobs(in: $0) }
        default: []
        }
    }

    private static func labels(of database: Database) throws -> [JSONValue] {
        try database.keys.map { key in key.label.map { .string($0) } ?? .null }
    }

    private static func localDocumentIDs(of database: Database) throws -> [String] {
        let file = database.storage.databaseFile
        // An immutable one makes no log where there is none.
        let connection = try file.connect(file.logByteCount > 0 ? .readOnly : .immutable, cacheByteCount: 1 << 20)
        defer { try? connection.close() }
        let statement = Statement(connection, "SELECT id FROM local_documents ORDER BY id")
        var ids: [String] = []
        while try statement.step() { ids.append(statement.text(0)) }
        return ids
    }

    static func sha256(_ data: Data) throws -> String { try Digest.sha256(of: Array(data)).hex }

    /// Where two descriptions differ first, as a path and the two values.
    static func difference(_ left: JSONValue, _ right: JSONValue, at path: String = "") -> String? {
        guard case .object(let leftObject) = left, case .object(let rightObject) = right else {
            return left == right ? nil : "\(path): \("\(left)".prefix(300)) and not \("\(right)".prefix(300))"
        }
        for key in leftObject.keys + rightObject.keys {
            guard let leftValue = leftObject[key], let rightValue = rightObject[key] else {
                return "\(path)/\(key): only in \(leftObject[key] == nil ? "the second" : "the first")"
            }
            if let found = difference(leftValue, rightValue, at: "\(path)/\(key)") { return found }
        }
        return nil
    }
}
