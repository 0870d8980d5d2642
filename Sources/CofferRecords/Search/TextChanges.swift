package import CofferModel
package import CofferSealing
internal import CofferSQLite

/// The writer's statements for text indexes. The tables must be there: see ``IndexSchema``.
package struct TextChanges: ~Copyable {
    private let subject: String
    private let findLast, findNumbers, insertDocument, removeDocument: Statement
    private let findLengths, putLengths: Statement
    private let findLastBlock, insertBlock, updateBlock, removeBlock, listBlocks: Statement
    private let removeDocuments, removeLengths, removePostings: Statement

    init(_ connection: borrowing Connection) {
        subject = connection.subject
        findLast = Statement(connection, "SELECT max(chunk), lengths FROM text_lengths WHERE owner = ?1")
        findNumbers = Statement(connection, "SELECT owner, number FROM text_documents WHERE document = ?1")
        insertDocument = Statement(
            connection, "INSERT INTO text_documents (owner, number, document, id) VALUES (?1, ?2, ?3, ?4)")
        removeDocument = Statement(connection, "DELETE FROM text_documents WHERE owner = ?1 AND number = ?2")
        findLengths = Statement(connection, "SELECT lengths FROM text_lengths WHERE owner = ?1 AND chunk = ?2")
        putLengths = Statement(
            connection, "INSERT OR REPLACE INTO text_lengths (owner, chunk, lengths) VALUES (?1, ?2, ?3)")
        findLastBlock = Statement(
            connection,
            """
            SELECT block, last, postings FROM text_postings WHERE owner = ?1 AND term = ?2
            ORDER BY block DESC LIMIT 1
            """)
        insertBlock = Statement(
            connection,
            "INSERT INTO text_postings (owner, term, block, last, postings) VALUES (?1, ?2, ?3, ?4, ?5)")
        updateBlock = Statement(
            connection,
            "UPDATE text_postings SET last = ?4, postings = ?5 WHERE owner = ?1 AND term = ?2 AND block = ?3")
        removeBlock = Statement(
            connection, "DELETE FROM text_postings WHERE owner = ?1 AND term = ?2 AND block = ?3")
        listBlocks = Statement(
            connection,
            """
            SELECT term, block, last, postings FROM text_postings WHERE owner = ?1 AND (term, block) > (?2, ?3)
            ORDER BY term, block LIMIT ?4
            """)
        removeDocuments = Statement(connection, "DELETE FROM text_documents WHERE owner = ?1")
        removeLengths = Statement(connection, "DELETE FROM text_lengths WHERE owner = ?1")
        removePostings = Statement(connection, "DELETE FROM text_postings WHERE owner = ?1")
    }

    // MARK: Documents

    /// The numbers that a document has, with the index that each is of.
    package func numbers(of document: DocumentNumber) throws(CofferError) -> [(index: IndexNumber, number: UInt32)] {
        defer { findNumbers.reset() }
        try findNumbers.bind(1, document)
        var numbers: [(IndexNumber, UInt32)] = []
        while try findNumbers.step() {
            guard let number = UInt32(exactly: findNumbers.integer(1)) else { throw PostingReader.damage }
            numbers.append((findNumbers.number(0), number))
        }
        return numbers
    }

    package func insert(_ number: UInt32, of document: DocumentNumber, _ id: DocumentID, in index: IndexNumber)
        throws(CofferError)
    {
        try insertDocument.bind(1, index)
        try insertDocument.bind(2, Int64(number))
        try insertDocument.bind(3, document)
        try insertDocument.bind(4, id.text)
        try insertDocument.run()
    }

    /// Takes a document's number from it. Its length is to be set to zero.
    package func removeDocument(_ number: UInt32, from index: IndexNumber) throws(CofferError) {
        try removeDocument.bind(1, index)
        try removeDocument.bind(2, Int64(number))
        try removeDocument.run()
        guard removeDocument.changedRowCount == 1 else { throw PostingReader.damage }
    }

    /// Takes a document's number from it, and sets its length to zero.
    package func remove(_ number: UInt32, from index: IndexNumber) throws(CofferError) {
        try removeDocument(number, from: index)
        let (chunk, place) = LengthChunk.place(of: number)
        guard var lengths = try lengths(chunk, of: index) else { throw PostingReader.damage }
        lengths[place] = 0
        try put(lengths, chunk, of: index)
    }

    // MARK: Lengths

    /// The row with the highest numbers of an index; nil if it has none.
    package func lastLengths(of index: IndexNumber) throws(CofferError) -> (chunk: Int64, lengths: LengthChunk)? {
        defer { findLast.reset() }
        try findLast.bind(1, index)
        guard try findLast.step(), !findLast.isNull(0) else { return nil }
        return (findLast.integer(0), try LengthChunk(bytes: findLast.bytes(1)))
    }

    package func lengths(_ chunk: Int64, of index: IndexNumber) throws(CofferError) -> LengthChunk? {
        defer { findLengths.reset() }
        try findLengths.bind(1, index)
        try findLengths.bind(2, chunk)
        return try findLengths.step() ? LengthChunk(bytes: findLengths.bytes(0)) : nil
    }

    package func put(_ lengths: LengthChunk, _ chunk: Int64, of index: IndexNumber) throws(CofferError) {
        try putLengths.bind(1, index)
        try putLengths.bind(2, chunk)
        try putLengths.bind(3, lengths.bytes)
        try putLengths.run()
    }

    // MARK: Postings

    /// The last row of a term; nil if there isn't one.
    package func lastBlock(of term: [UInt8], in index: IndexNumber) throws(CofferError) -> (
        number: Int64, PostingBlock
    )? {
        defer { findLastBlock.reset() }
        try findLastBlock.bind(1, index)
        try findLastBlock.bind(2, term)
        guard try findLastBlock.step() else { return nil }
        let (number, last, bytes) = (findLastBlock.integer(0), findLastBlock.integer(1), findLastBlock.bytes(2))
        guard number > 0, number < .max else { throw PostingReader.damage }
        try PostingReader(bytes, last: last).check()
        return (number, PostingBlock(bytes: bytes, last: UInt32(last)))
    }

    /// - Parameter isThere: whether the term has a row of that number.
    package func put(
        _ block: PostingBlock, _ number: Int64, of term: [UInt8], in index: IndexNumber, isThere: Bool
    ) throws(CofferError) {
        let statement = isThere ? updateBlock : insertBlock
        try statement.bind(1, index)
        try statement.bind(2, term)
        try statement.bind(3, number)
        try statement.bind(4, Int64(block.last))
        try statement.bind(5, block.bytes)
        try statement.run()
    }

    package func removeBlock(_ number: Int64, of term: [UInt8], in index: IndexNumber) throws(CofferError) {
        try removeBlock.bind(1, index)
        try removeBlock.bind(2, term)
        try removeBlock.bind(3, number)
        try removeBlock.run()
    }

    /// The next rows of an index behind one, in the order of terms.
    package func blocks(
        of index: IndexNumber, after term: [UInt8], _ block: Int64, limit: Int
    ) throws(CofferError) -> [(term: [UInt8], block: Int64, last: Int64, postings: [UInt8])] {
        try listBlocks.bind(1, index)
        try listBlocks.bind(2, term)
        try listBlocks.bind(3, block)
        try listBlocks.bind(4, Int64(limit))
        return try listBlocks.all { ($0.bytes(0), $0.integer(1), $0.integer(2), $0.bytes(3)) }
    }

    // MARK: An index

    package func empty(_ index: IndexNumber) throws(CofferError) {
        for statement in [removeDocuments, removeLengths, removePostings] {
            try statement.bind(1, index)
            try statement.run()
        }
    }
}
