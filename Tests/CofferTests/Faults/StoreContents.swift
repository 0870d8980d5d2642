import CSQLCipher
import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite
@testable import CofferVault

/// All that a store holds, so that two can be compared: every row of every table, every content byte for byte, and what the
/// public classes say of the documents.
///
/// Without what differs between two stores that hold the same: who they are, their key, and how a file is encrypted.
struct StoreContents: Equatable {
    /// By table, each row as text.
    var rows: [String: [String]] = [:]
    /// By digest.
    var contents: [String: Data] = [:]
    var documents: [String: DocumentContents] = [:]
    var storageType: StorageType
    /// Kind and label of each key.
    var keys: [String] = []
    /// How many labels there are, with a key or without.
    var labelCount = 0

    struct DocumentContents: Equatable {
        var revision: String
        var json: Data
        var attachments: [String: Data?]
    }

    /// Columns that say how and not what.
    private static let ignoredColumns: Set = ["attachments.header"]
    private static let ignoredRows: Set = [
        "info.store", "info.generation", "info.sequence", "info.identity", "info.first_keys",
    ]

    /// Reads everything in `database`, which is open. Fails when anything can't be read.
    init(of database: Database) throws {
        storageType = database.storageType
        try readRows(of: database)
        keys = try database.keys.map { key in
            "\(key.kind) \(key.label ?? "without a label")\(key.isOriginal ? "" : ", added later")"
        }
        for id in try database.documentIDs() {
            guard let revision = try database.document(withID: id).currentRevision else { continue }
            var attachments: [String: Data?] = [:]
            for attachment in try revision.attachments { attachments[attachment.name] = .some(try attachment.content) }
            documents[id] = DocumentContents(
                revision: "\(revision.revisionID)", json: try revision.json, attachments: attachments)
        }
    }

    private mutating func readRows(of database: Database) throws {
        let connection = try database.storage.databaseFile.connect(.readOnly, cacheByteCount: 1 << 20)
        defer { try? connection.close() }
        for table in try connection.texts("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name") {
            let columns = try connection.texts("PRAGMA table_info(\(table))", column: 1)
                .filter { !Self.ignoredColumns.contains("\(table).\($0)") }
            let row = columns.map { "quote(\($0))" }.joined(separator: " || ', ' || ")
            rows[table] = try connection.texts("SELECT \(row) FROM \(table)").filter { row in
                !Self.ignoredRows.contains { row.hasPrefix("'\($0.split(separator: ".")[1])'") && table == "info" }
            }.sorted()
            // They name their keys by random ids.
            let isLabel = { (row: String) in table == "info" && row.hasPrefix("'label ") }
            labelCount += rows[table]?.count(where: isLabel) ?? 0
            rows[table]?.removeAll(where: isLabel)
        }
        for digest in try connection.texts("SELECT hex(digest) FROM attachments WHERE sha256 IS NOT NULL") {
            let reader = try database.storage.openAttachment(
                .sha1(#require([UInt8](hex: digest))), subject: digest)
            contents[digest.lowercased()] = try reader.map { Data(try $0.wholeContent()) }
        }
    }

    /// Where the two differ, in a few words.
    func difference(from other: StoreContents) -> String {
        for table in Set(rows.keys).union(other.rows.keys).sorted() where rows[table] != other.rows[table] {
            return "\(rows[table]?.count ?? 0) rows of \(table) and not \(other.rows[table]?.count ?? 0), or others"
        }
        if contents != other.contents { return "\(contents.count) contents and not \(other.contents.count), or others" }
        if storageType != other.storageType { return "the engine \(storageType.rawValue)" }
        if keys != other.keys { return "keys \(keys) and not \(other.keys)" }
        if labelCount != other.labelCount { return "\(labelCount) labels and not \(other.labelCount)" }
        return "documents \(documents.keys.sorted()) and not \(other.documents.keys.sorted()), or others"
    }
}

extension Connection {
    /// One column of what a query returns, as text.
    fileprivate func texts(_ sql: String, column: Int = 0) throws -> [String] {
        var found = Found(column: column)
        let code = withUnsafeMutablePointer(to: &found) { found in
            sqlcipher_exec(
                handle.pointer, sql,
                { context, count, values, _ in
                    guard let found = context?.assumingMemoryBound(to: Found.self), found.pointee.column < count else {
                        return 1
                    }
                    found.pointee.texts.append(values?[found.pointee.column].map { String(cString: $0) } ?? "")
                    return 0
                }, found, nil)
        }
        try check(code)
        return found.texts
    }
}

private struct Found {
    var column: Int
    var texts: [String] = []
}
