@testable import CofferSQLite

/// One change of a row in the database file of a store that is not encrypted: a value that nobody wrote, or no row at all.
/// The pages are as SQLite makes them.
struct HostileRow {
    private struct Table {
        var name: String
        /// What rows are found by.
        var key: String
        var columns: [String]
    }

    private static let tables = [
        Table(name: "info", key: "key", columns: ["value"]),
        Table(name: "documents", key: "id", columns: ["id", "number", "winner", "flags"]),
        Table(
            name: "revisions", key: "sequence",
            columns: ["sequence", "document", "parent", "flags", "generation", "suffix", "digest", "id", "body"]),
        Table(name: "leaves", key: "rank", columns: ["document", "rank", "sequence"]),
        Table(name: "attachments", key: "number", columns: ["number", "digest", "length", "sha256", "header"]),
        Table(name: "attachment_uses", key: "attachment", columns: ["revision", "attachment"]),
        Table(name: "local_documents", key: "number", columns: ["number", "generation", "digest", "id", "body"]),
        Table(name: "expirations", key: "id", columns: ["id", "time"]),
        Table(
            name: "indexes", key: "number",
            columns: ["number", "kind", "name", "definition", "sequence", "entries", "changes", "flags"]),
        Table(
            name: "index_entries", key: "number",
            columns: [
                "number", "owner", "document", "sequence", "digest", "key", "id", "key_rest", "id_rest", "value",
            ]),
        Table(name: "index_debts", key: "document", columns: ["owner", "document", "id"]),
    ]

    /// Bodies, and what a body can say of contents.
    private static let bodies = [
        "", "{", "[]", "null", "{}", #"{"n":1e999}"#, #"{"_attachments":1}"#, #"{"_attachments":{"a":{}}}"#,
        #"{"_attachments":{"a":{"digest":"sha1-AAAA","length":-1,"revpos":9223372036854775807,"stub":true}}}"#,
        #"{"_attachments":{"a":{"digest":"md5-x","length":9223372036854775807,"revpos":-1,"stub":true}}}"#,
        #"{"b":{"@type":"blob","digest":"sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=","length":1e300}}"#,
    ]

    private let sql: String

    init(_ choices: inout Choices) {
        let table = Self.tables[Int(choices.byte()) % Self.tables.count]
        let column = table.columns[Int(choices.byte()) % table.columns.count]
        func pick(_ column: String, _ number: UInt8) -> String {
            "SELECT \(column) FROM \(table.name) ORDER BY \(table.key) "
                + "LIMIT 1 OFFSET \(number) % max(1, (SELECT count(*) FROM \(table.name)))"
        }
        let place = "WHERE \(table.key) = (\(pick(table.key, choices.byte())))"
        let what = choices.byte()
        if what % 32 == 31 {
            sql = "DELETE FROM \(table.name) \(place)"
        } else {
            let value = Self.value(what, column, { pick(column, $0) }, &choices)
            sql = "UPDATE OR IGNORE \(table.name) SET \(column) = \(value) \(place)"
        }
    }

    private static func value(
        _ kind: UInt8, _ column: String, _ pick: (UInt8) -> String, _ choices: inout Choices
    ) -> String {
        func bytes() -> String {
            "x'\(choices.take(Int(choices.byte())).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())'"
        }
        switch kind % 16 {
        case 0: return "NULL"
        case 1: return "''"
        case 2: return "0"
        case 3: return "-1"
        case 4: return "9223372036854775807"
        case 5: return "(-9223372036854775807 - 1)"
        case 6: return "9223372036854775806"
        case 7: return "1e300"
        case 8: return "\(Int8(bitPattern: choices.byte()))"
        case 9: return "\(column) + \(Int8(bitPattern: choices.byte()))"
        case 10: return "(\(pick(choices.byte())))"
        case 11: return bytes()
        case 12: return "CAST(\(bytes()) AS TEXT)"
        case 13: return "zeroblob(\(choices.number()))"
        case 14: return "CAST('\(bodies[Int(choices.byte()) % bodies.count])' AS BLOB)"
        default: return "\(Int32(truncatingIfNeeded: choices.number() << 16 | choices.number()))"
        }
    }

    /// - Throws: where the change leads to what SQLite does not allow.
    func apply(to connection: borrowing Connection) throws { try connection.execute(assembled: sql) }
}
