import Foundation
import GRDB

// The work of scripts/bench --others with GRDB on plain SQLite: GRDBDocuments DIRECTORY DOCUMENTS ATTACHMENT-COUNT.
// Nothing is encrypted, and no history kept.

let arguments = CommandLine.arguments
guard arguments.count == 4, let attachmentCount = Int(arguments[3]) else {
    fatalError("usage: GRDBDocuments DIRECTORY DOCUMENTS ATTACHMENT-COUNT")
}

struct Document {
    let id: String
    let body: Data
}

let documents = try Data(contentsOf: URL(filePath: arguments[2])).split(separator: UInt8(ascii: "\n")).map { line in
    guard let tab = line.firstIndex(of: UInt8(ascii: "\t")) else { fatalError("no tab in a line of \(arguments[2])") }
    return Document(id: String(decoding: line[..<tab], as: UTF8.self), body: Data(line[(tab + 1)...]))
}

/// Prints how long it took.
func run(_ name: String, _ work: () throws -> Void) rethrows {
    let time = try ContinuousClock().measure(work)
    print(name, time / .seconds(1))
}

var configuration = Configuration()
configuration.prepareDatabase { database in
    try database.execute(sql: "PRAGMA synchronous = FULL; PRAGMA cache_size = -65536")
}
let pool = try DatabasePool(path: arguments[1] + "/documents.sqlite", configuration: configuration)
try pool.write { database in
    try database.execute(
        sql: """
            CREATE TABLE documents (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
            CREATE TABLE attachments (id INTEGER PRIMARY KEY, content BLOB NOT NULL);
            """)
}

try run("insert") {
    for start in stride(from: 0, to: documents.count, by: 1_000) {
        try pool.write { database in
            let insert = try database.cachedStatement(sql: "INSERT INTO documents (id, body) VALUES (?, ?)")
            for document in documents[start..<start + 1_000] {
                try insert.execute(arguments: [document.id, document.body])
            }
        }
    }
}

try run("read") {
    var byteCount = 0
    for index in documents.indices {
        let id = documents[index * 7_919 % documents.count].id
        byteCount += try pool.read { database in
            let select = try database.cachedStatement(sql: "SELECT body FROM documents WHERE id = ?")
            return try Data.fetchOne(select, arguments: [id])?.count ?? 0
        }
    }
    precondition(byteCount == documents.reduce(0) { $0 + $1.body.count }, "other documents")
}

try run("list") {
    var count = 0
    try pool.read { database in
        let rows = try Row.fetchCursor(database, sql: "SELECT id, body FROM documents ORDER BY id")
        while let row = try rows.next() {
            let document = Document(id: row[0], body: row[1])
            count += document.body.isEmpty ? 0 : 1
        }
    }
    precondition(count == documents.count, "\(count) documents were listed")
}

try run("update") {
    for start in stride(from: 0, to: documents.count / 10, by: 1_000) {
        try pool.write { database in
            let select = try database.cachedStatement(sql: "SELECT body FROM documents WHERE id = ?")
            let update = try database.cachedStatement(sql: "UPDATE documents SET body = ? WHERE id = ?")
            for document in documents[start..<start + 1_000] {
                guard let body = try Data.fetchOne(select, arguments: [document.id]) else { fatalError("no document") }
                try update.execute(arguments: [body.dropLast() + Data(#","version":2}"#.utf8), document.id])
            }
        }
    }
}

let contents = (0..<attachmentCount).map { number in
    var random = SystemRandomNumberGenerator()
    let words = (0..<125_000).map { _ in random.next() }
    return words.withUnsafeBytes { Data($0) }
}

try run("write-attachments") {
    try pool.write { database in
        let insert = try database.cachedStatement(sql: "INSERT INTO attachments (id, content) VALUES (?, ?)")
        for (number, content) in contents.enumerated() { try insert.execute(arguments: [number, content]) }
    }
}

try run("read-attachments") {
    for number in contents.indices {
        let content = try pool.read { database in
            let select = try database.cachedStatement(sql: "SELECT content FROM attachments WHERE id = ?")
            return try Data.fetchOne(select, arguments: [number])
        }
        precondition(content?.count == 1_000_000, "attachment \(number) isn't there")
    }
}
