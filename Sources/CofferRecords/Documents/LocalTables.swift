package import CofferModel
package import CofferSealing
internal import CofferSQLite

/// The statements of one connection for local documents.
package struct LocalTables: ~Copyable {
    private let findNumber, find, insert, update, remove: Statement

    init(_ connection: borrowing Connection) {
        findNumber = Statement(connection, "SELECT number FROM local_documents WHERE id = ?1")
        find = Statement(connection, "SELECT generation, digest, body, id FROM local_documents WHERE number = ?1")
        insert = Statement(
            connection, "INSERT INTO local_documents (number, generation, digest, body, id) VALUES (?1, 1, ?3, ?4, ?2)")
        update = Statement(
            connection, "UPDATE local_documents SET generation = ?2, digest = ?3, body = ?4 WHERE number = ?1")
        remove = Statement(connection, "DELETE FROM local_documents WHERE number = ?1")
    }

    /// The local document with this id: how often it was saved, and its body. Nil when there isn't one.
    package func document(_ id: DocumentID) throws(CofferError) -> (generation: Int, body: [UInt8])? {
        guard let number = try number(of: id) else { return nil }
        return try withRow(number, of: id) { (row) throws(CofferError) in
            let body = row.bytes(2)
            guard try BodyDigest.matches(row.isNull(1) ? nil : row.bytes(1), of: body) else {
                throw CofferError(.damaged, of: "document \(id.text)", "its body is not what was written")
            }
            return (Int(try generation(row.integer(0), of: id)), body)
        }
    }

    private func number(of id: DocumentID) throws(CofferError) -> Int64? {
        try findNumber.bind(1, id.text)
        return try findNumber.first { $0.integer(0) }
    }

    /// Lends the row of that number to `body`: generation, digest, body.
    ///
    /// The index only says where it is: see ``AttachmentTables/attachment(_:)``.
    ///
    /// - Throws: what `body` throws; `damaged` (500) where the row is another document's, or not there.
    private func withRow<Value>(
        _ number: Int64, of id: DocumentID, _ body: (Statement) throws(CofferError) -> Value
    ) throws(CofferError) -> Value {
        try find.bind(1, number)
        let value = try find.first { (row) throws(CofferError) in row.text(3) == id.text ? try body(row) : nil } ?? nil
        guard let value else {
            throw CofferError(.damaged, of: "document \(id.text)", "its row belongs to another local document")
        }
        return value
    }

    private func generation(_ number: Int64, of id: DocumentID) throws(CofferError) -> Int64 {
        guard Schema.counts.contains(number) else {
            throw CofferError(.damaged, of: "document \(id.text)", "its generation is invalid")
        }
        return number
    }

    /// Saves the local document, over the one that is there.
    ///
    /// - Parameter newNumber: gives the number of a row that is new.
    /// - Returns: how often it was saved.
    package func save(
        _ id: DocumentID, _ body: CanonicalBody, newNumber: () throws(CofferError) -> Int64
    ) throws(CofferError) -> Int {
        let number = try number(of: id)
        var oldGeneration: Int64 = 0
        let statement = number == nil ? insert : update
        if let number {
            oldGeneration = try withRow(number, of: id) { (row) throws(CofferError) in
                try generation(row.integer(0), of: id)
            }
            try update.bind(1, number)
            try update.bind(2, try generation(oldGeneration + 1, of: id))
        } else {
            try insert.bind(1, try newNumber())
            try insert.bind(2, id.text)
        }
        if let digest = try BodyDigest.of(body.bytes) {
            try statement.bind(3, digest)
        } else {
            try statement.bindNull(3)
        }
        try statement.bind(4, body.bytes)
        try statement.run()
        return Int(oldGeneration) + 1
    }

    /// - Returns: whether there was one.
    package func remove(_ id: DocumentID) throws(CofferError) -> Bool {
        guard let number = try number(of: id) else { return false }
        try withRow(number, of: id) { _ in }
        try remove.bind(1, number)
        try remove.run()
        return remove.changedRowCount > 0
    }
}

extension Snapshot {
    /// The ids of local documents after this one, sorted by their bytes.
    package func localDocumentIDs(after id: String, limit: Int) throws(CofferError) -> [String] {
        let list = Statement(connection, "SELECT id FROM local_documents WHERE id > ?1 ORDER BY id LIMIT ?2")
        defer { list.finalize() }
        try list.bind(1, id)
        try list.bind(2, Int64(limit))
        return try list.all { $0.text(0) }
    }
}
