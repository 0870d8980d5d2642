package import CofferSealing
internal import CofferSQLite

/// The statements of one connection that read text indexes. The tables must be there: see ``IndexSchema``.
package struct TextTables: ~Copyable {
    private let subject: String
    private let listLengths, findPostings, readPostings, readPrefix, findDocument: Statement
    private let listDocuments, listAllLengths, listAllPostings, countStrays: Statement

    init(_ connection: borrowing Connection) {
        subject = connection.subject
        listLengths = Statement(
            connection, "SELECT chunk, lengths FROM text_lengths WHERE owner = ?1 ORDER BY chunk")
        findPostings = Statement(connection, "SELECT 1 FROM text_postings WHERE owner = ?1 LIMIT 1")
        readPostings = Statement(
            connection, "SELECT postings, last FROM text_postings WHERE owner = ?1 AND term = ?2 ORDER BY block")
        readPrefix = Statement(
            connection,
            """
            SELECT postings, last FROM text_postings WHERE owner = ?1 AND term >= ?2 AND term < ?3
            ORDER BY term, block
            """)
        findDocument = Statement(
            connection, "SELECT id FROM text_documents WHERE owner = ?1 AND number = ?2")
        listDocuments = Statement(connection, "SELECT owner, number, document FROM text_documents")
        listAllLengths = Statement(connection, "SELECT owner, chunk, lengths FROM text_lengths ORDER BY owner, chunk")
        listAllPostings = Statement(connection, "SELECT postings, last FROM text_postings")
        countStrays = Statement(
            connection,
            """
            SELECT count(*) FROM text_documents AS i INDEXED BY text_of_document
            LEFT JOIN text_documents AS t NOT INDEXED ON t.owner = i.owner AND t.number = i.number
            WHERE i.document >= 0 AND t.document IS NOT i.document
            """)
    }

    /// How many terms each document has, by its number in the index, up to the last that was given; 0 where it is dead.
    package func lengths(of index: IndexNumber) throws(CofferError) -> [UInt16] {
        defer { listLengths.reset() }
        try listLengths.bind(1, index)
        var lengths: [UInt16] = []
        while try listLengths.step() {
            let chunk = try LengthChunk(bytes: listLengths.bytes(1))
            // Every chunk from the first on is there, and all but the last are full.
            let (number, rest) = lengths.count.quotientAndRemainder(dividingBy: LengthChunk.count)
            guard rest == 0, listLengths.integer(0) == number, number <= LengthChunk.lastChunk else { throw damage }
            for place in 0..<chunk.usedCount { lengths.append(UInt16(chunk[place])) }
        }
        return lengths
    }

    /// Whether an index has any term.
    package func hasPostings(of index: IndexNumber) throws(CofferError) -> Bool {
        try findPostings.bind(1, index)
        return try findPostings.first { _ in true } ?? false
    }

    /// Calls `visit` with the rows of a term, in order.
    package func postings(
        of index: IndexNumber, _ term: [UInt8], _ visit: (PostingReader) throws(CofferError) -> Void
    ) throws(CofferError) {
        defer { readPostings.reset() }
        try readPostings.bind(1, index)
        try readPostings.bind(2, term)
        while try readPostings.step() {
            try visit(PostingReader(readPostings.bytes(0), last: readPostings.integer(1)))
        }
    }

    /// Calls `visit` with the rows of all terms that begin with `prefix`, term by term.
    package func postings(
        of index: IndexNumber, prefix: [UInt8], _ visit: (PostingReader) throws(CofferError) -> Void
    ) throws(CofferError) {
        defer { readPrefix.reset() }
        try readPrefix.bind(1, index)
        try readPrefix.bind(2, prefix)
        // UTF-8 has no byte as high.
        try readPrefix.bind(3, prefix + [0xFF])
        while try readPrefix.step() {
            try visit(PostingReader(readPrefix.bytes(0), last: readPrefix.integer(1)))
        }
    }

    /// The id of the document that has a number in the index, which must be alive.
    package func documentID(_ number: UInt32, of index: IndexNumber) throws(CofferError) -> [UInt8] {
        try findDocument.bind(1, index)
        try findDocument.bind(2, Int64(number))
        guard let id = try findDocument.first({ $0.bytes(0) }) else { throw damage }
        return id
    }

    /// Reads all rows, and checks them: fails where any can't be read, or they contradict each other.
    package func readEverything() throws(CofferError) {
        var lengths: [IndexNumber: [Int64: LengthChunk]] = [:]
        defer {
            for statement in [listDocuments, listAllLengths, listAllPostings] { statement.reset() }
        }
        var aliveCounts: [IndexNumber: Int] = [:]
        while try listAllLengths.step() {
            let owner: IndexNumber = listAllLengths.number(0)
            let chunk = try LengthChunk(bytes: listAllLengths.bytes(2))
            lengths[owner, default: [:]][listAllLengths.integer(1)] = chunk
            aliveCounts[owner, default: 0] += (0..<LengthChunk.count).count { chunk[$0] > 0 }
        }
        while try listDocuments.step() {
            guard let number = UInt32(exactly: listDocuments.integer(1)),
                case let (chunk, place) = LengthChunk.place(of: number),
                let length = lengths[listDocuments.number(0)]?[chunk]?[place], length > 0
            else { throw damage }
            aliveCounts[listDocuments.number(0), default: 0] -= 1
        }
        guard aliveCounts.values.allSatisfy({ $0 == 0 }) else { throw damage }
        while try listAllPostings.step() {
            try PostingReader(listAllPostings.bytes(0), last: listAllPostings.integer(1)).check()
        }
        guard try countStrays.first({ $0.integer(0) }) == 0 else { throw damage }
    }

    private var damage: CofferError {
        CofferError(.damaged, of: subject, "a row of a text index is not what was written")
    }
}
