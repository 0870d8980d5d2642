package import CofferSealing
internal import CofferSQLite

// Lists and counts that are asked for too seldom to keep their statements.

extension Snapshot {
    /// The numbers of documents with more than one leaf.
    package func branchedDocuments() throws(CofferError) -> [DocumentNumber] {
        let list = Statement(connection, "SELECT DISTINCT document FROM leaves")
        defer { list.finalize() }
        return try list.all { $0.number(0) }
    }

    /// The documents that have one leaf and more than one revision, and the generations of their leaves.
    package func latestGenerations() throws(CofferError) -> [(number: DocumentNumber, generation: Int)] {
        let list = Statement(
            connection,
            """
            SELECT document, max(generation) FROM revisions INDEXED BY later_revisions
            WHERE document <> sequence AND document NOT IN (SELECT document FROM leaves) GROUP BY document
            """)
        defer { list.finalize() }
        return try list.all { ($0.number(0), Int($0.integer(1))) }
    }

    /// How many documents, not counting deleted ones, a listing by id has before it comes to this id.
    package func documentCount(before id: String, isDescending: Bool) throws(CofferError) -> Int {
        let count =
            isDescending
            ? Statement(connection, "SELECT count(*) FROM documents WHERE id > ?1 AND flags & 1 = 0")
            : Statement(connection, "SELECT count(*) FROM documents WHERE id < ?1 AND flags & 1 = 0")
        defer { count.finalize() }
        try count.bind(1, id)
        return try count.first { Int($0.integer(0)) } ?? 0
    }

    /// How many documents are deleted.
    package func deletedDocumentCount() throws(CofferError) -> Int {
        let count = Statement(connection, "SELECT count(*) FROM documents WHERE flags & 1 <> 0")
        defer { count.finalize() }
        return try count.first { Int($0.integer(0)) } ?? 0
    }

    /// The ids of local documents after this one, sorted by their bytes.
    package func localDocumentIDs(after id: String, limit: Int) throws(CofferError) -> [String] {
        let list = Statement(connection, "SELECT id FROM local_documents WHERE id > ?1 ORDER BY id LIMIT ?2")
        defer { list.finalize() }
        try list.bind(1, id)
        try list.bind(2, Int64(limit))
        return try list.all { $0.text(0) }
    }
}
