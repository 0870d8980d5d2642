internal import CofferModel
internal import CofferSealing
internal import CofferSQLite

/// The statements of one connection for local documents.
struct LocalTables: ~Copyable {
    private let find, findGeneration, insert, update, remove: Statement

    init(_ connection: borrowing Connection) {
        find = Statement(connection, "SELECT generation, digest, body FROM local_documents WHERE id = ?1")
        findGeneration = Statement(connection, "SELECT number, generation FROM local_documents WHERE id = ?1")
        insert = Statement(
            connection, "INSERT INTO local_documents (id, generation, digest, body) VALUES (?1, 1, ?2, ?3)")
        update = Statement(
            connection, "UPDATE local_documents SET generation = ?2, digest = ?3, body = ?4 WHERE number = ?1")
        remove = Statement(connection, "DELETE FROM local_documents WHERE id = ?1")
    }

    /// The local document with this id: how often it was saved, and its body. Nil when there is none.
    func document(_ id: DocumentID) throws(CofferError) -> (generation: Int, body: [UInt8])? {
        try find.bind(1, id.text)
        return try find.first { (row) throws(CofferError) in
            let body = row.bytes(2)
            guard BodyDigest.matches(row.isNull(1) ? nil : row.bytes(1), of: body) else {
                throw CofferError(.damaged, of: "document \(id.text)", "its body is not what was written")
            }
            return (Int(try generation(row.integer(0), of: id)), body)
        }
    }

    private func generation(_ number: Int64, of id: DocumentID) throws(CofferError) -> Int64 {
        guard Schema.counts.contains(number) else {
            throw CofferError(.damaged, of: "document \(id.text)", "its generation is none")
        }
        return number
    }

    /// Saves the local document, over the one that is there.
    ///
    /// - Returns: how often it was saved.
    func save(_ id: DocumentID, _ body: CanonicalBody) throws(CofferError) -> Int {
        try findGeneration.bind(1, id.text)
        let old = try findGeneration.first { (row) throws(CofferError) in
            (number: row.integer(0), generation: try generation(row.integer(1), of: id))
        }
        let statement = old == nil ? insert : update
        if let old {
            try update.bind(1, old.number)
            try update.bind(2, try generation(old.generation + 1, of: id))
        } else {
            try insert.bind(1, id.text)
        }
        let first: Int32 = old == nil ? 2 : 3
        if let digest = BodyDigest.of(body.bytes) {
            try statement.bind(first, digest)
        } else {
            try statement.bindNull(first)
        }
        try statement.bind(first + 1, body.bytes)
        try statement.run()
        return Int(old?.generation ?? 0) + 1
    }

    /// - Returns: whether there was one.
    func remove(_ id: DocumentID) throws(CofferError) -> Bool {
        try remove.bind(1, id.text)
        try remove.run()
        return remove.changedRowCount > 0
    }
}
