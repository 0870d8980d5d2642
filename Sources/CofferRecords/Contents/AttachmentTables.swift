package import CofferModel
package import CofferSealing
internal import CofferSQLite
package import CofferVault

/// The reading statements for attachments of one connection.
package struct AttachmentTables: ~Copyable {
    private let subject: String
    private let findNumber: Statement
    private let findRow: Statement
    private let unused: Statement
    private let count: Statement
    private let sumOfUses: Statement
    private let list: Statement
    private let sum: Statement
    private let listDigests: Statement
    private let listAwaited: Statement
    private let awaitedCount: Statement
    private let findAwaited: Statement
    private let findLatestUser: Statement

    init(_ connection: borrowing Connection) {
        subject = connection.subject
        findAwaited = Statement(connection, "SELECT 1 FROM attachments WHERE sha256 IS NULL LIMIT 1")
        findLatestUser = Statement(
            connection,
            """
            SELECT r.id FROM attachment_uses AS u JOIN revisions AS r ON r.sequence = u.revision
            WHERE u.attachment = ?1 ORDER BY r.sequence DESC LIMIT 1
            """)
        findNumber = Statement(connection, "SELECT number FROM attachments WHERE digest = ?1")
        findRow = Statement(
            connection, "SELECT number, length, sha256, header, digest FROM attachments WHERE number = ?1")
        unused = Statement(
            connection,
            """
            SELECT number FROM attachments AS a
            WHERE NOT EXISTS (SELECT 1 FROM attachment_uses AS u WHERE u.attachment = a.number)
            """)
        count = Statement(connection, "SELECT count(*) FROM attachments")
        sumOfUses = Statement(
            connection,
            """
            SELECT total(a.length) FROM attachment_uses AS u JOIN attachments AS a ON a.number = u.attachment
            WHERE u.revision = ?1
            """)
        list = Statement(
            connection,
            """
            SELECT number, length, sha256, header, digest FROM attachments
            WHERE number > ?1 AND sha256 IS NOT NULL ORDER BY number LIMIT ?2
            """)
        listDigests = Statement(connection, "SELECT digest FROM attachments WHERE sha256 IS NOT NULL")
        listAwaited = Statement(
            connection,
            """
            SELECT number, length, sha256, header, digest FROM attachments AS a
            WHERE number > ?1 AND sha256 IS NULL
                AND EXISTS (SELECT 1 FROM attachment_uses AS u WHERE u.attachment = a.number)
            ORDER BY number LIMIT ?2
            """)
        awaitedCount = Statement(
            connection,
            """
            SELECT count(*) FROM attachments AS a
            WHERE sha256 IS NULL AND EXISTS (SELECT 1 FROM attachment_uses AS u WHERE u.attachment = a.number)
            """)
        sum = Statement(connection, "SELECT count(*), total(length) FROM attachments WHERE sha256 IS NOT NULL")
    }

    /// The row of the content that `key` means.
    ///
    /// The index only says where it is: whoever can write the disk can put an older page of it back, in which the number meant
    /// another content. In one statement the digest would be the index's again.
    ///
    /// - Throws: `damaged` (500) where the row is another content's, or not there.
    package func attachment(_ key: AttachmentKey) throws(CofferError) -> AttachmentRow? {
        try findNumber.bind(1, key)
        guard let number = try findNumber.first({ $0.integer(0) }) else { return nil }
        try findRow.bind(1, number)
        let row = try findRow.first { (row) throws(CofferError) in try AttachmentRow(row).checked() }
        guard let row, row.key == key else {
            throw CofferError(.damaged, of: subject, "the row of a content belongs to another content")
        }
        return row
    }

    /// The names of the files of all contents that are here.
    package func names(by naming: AttachmentNaming) throws(CofferError) -> Set<String> {
        defer { listDigests.reset() }
        var names: Set<String> = []
        while try listDigests.step() {
            let digest = listDigests.bytes(0)
            guard digest.count == DigestAlgorithm.sha1.byteCount else {
                throw CofferError(.damaged, of: subject, "a content's row has no digest")
            }
            names.insert(try naming.name(of: digest))
        }
        return names
    }

    /// About how many bytes the contents have that the revision uses, as far as their rows say.
    package func byteCount(usedBy revision: SequenceNumber) throws(CofferError) -> Int {
        try sumOfUses.bind(1, revision)
        let sum = try sumOfUses.first { $0.integer(0) } ?? 0
        return Int(min(max(sum, Schema.counts.lowerBound), Schema.counts.upperBound))
    }

    /// The numbers of contents that no revision uses.
    package func unusedAttachments() throws(CofferError) -> [ContentNumber] {
        return try unused.all { $0.number(0) }
    }

    /// The contents that are here, in the order of their numbers.
    package func contents(after number: ContentNumber, limit: Int) throws(CofferError) -> [AttachmentRow] {
        try list.bind(1, number)
        try list.bind(2, Int64(limit))
        return try list.all { (row) throws(CofferError) in try AttachmentRow(row).checked() }
    }

    /// The contents that revisions have and that are not here, in the order of their numbers.
    package func awaitedContents(after number: ContentNumber, limit: Int) throws(CofferError) -> [AttachmentRow] {
        try listAwaited.bind(1, number)
        try listAwaited.bind(2, Int64(limit))
        return try listAwaited.all { (row) throws(CofferError) in try AttachmentRow(row).checked() }
    }

    /// Whether any content has a row and is not here.
    package func areAnyAwaited() throws(CofferError) -> Bool { try findAwaited.first { _ in true } != nil }

    /// The id of the document that used a content last; nil if no revision does.
    package func latestUser(of number: ContentNumber) throws(CofferError) -> String? {
        try findLatestUser.bind(1, number)
        return try findLatestUser.first { $0.text(0) }
    }

    /// How many contents revisions have that are not here.
    package func awaitedContentCount() throws(CofferError) -> Int { try awaitedCount.first { Int($0.integer(0)) } ?? 0 }

    /// Goes through all contents that are here, in the order of their numbers and in batches, so that `visit` may change
    /// the rows that it is given.
    package func forEachContent(_ visit: (AttachmentRow) throws(CofferError) -> Void) throws(CofferError) {
        var last: ContentNumber = 0
        while true {
            let rows = try contents(after: last, limit: 256)
            guard let end = rows.last?.number else { return }
            guard end > last else { throw CofferError(.damaged, of: subject, "its contents have no order") }
            for row in rows { try visit(row) }
            last = end
        }
    }

    /// How many contents are here.
    package func contentSum() throws(CofferError) -> ContentSum {
        let found =
            try sum.first { ContentSum(count: Int($0.integer(0)), byteCount: Int($0.integer(1))) } ?? ContentSum()
        guard Schema.counts.contains(Int64(found.byteCount)) else {
            throw CofferError(.damaged, of: subject, "its contents are longer than the limit")
        }
        return found
    }

    package func attachmentCount() throws(CofferError) -> Int { try count.first { Int($0.integer(0)) } ?? 0 }
}

/// A revision that uses a content, and what its document's row says.
package struct AttachmentUse: Sendable {
    package let sequence: SequenceNumber
    package let revisionID: RevisionID
    package let documentID: String
    /// The document's row.
    package let document: DocumentRow
}

extension Snapshot {
    /// The revisions that use a content, the latest first.
    ///
    /// - Parameter limit: so many at most; nil for all.
    package func uses(ofAttachment number: ContentNumber, limit: Int? = nil) throws(CofferError) -> [AttachmentUse] {
        let list = Statement(
            connection,
            """
            SELECT r.generation, r.suffix, r.sequence, r.id, d.winner, d.flags, r.document
            FROM attachment_uses AS u JOIN revisions AS r ON r.sequence = u.revision JOIN documents AS d ON d.id = r.id
            WHERE u.attachment = ?1 ORDER BY u.revision DESC LIMIT ?2
            """)
        defer { list.finalize() }
        try list.bind(1, number)
        try list.bind(2, Int64(limit ?? -1))
        return try list.all { (row) throws(CofferError) in
            let sequence: SequenceNumber = row.number(2)
            return AttachmentUse(
                sequence: sequence, revisionID: try row.revisionID(0, sequence: sequence, subject: subject),
                documentID: row.text(3),
                document: DocumentRow(
                    number: row.number(6), winner: row.number(4), flags: DocumentFlags(rawValue: row.integer(5))))
        }
    }
}

/// The writing statements for the rows of contents, and for which revision uses which.
package struct AttachmentChanges: ~Copyable {
    private let insertRow, updateRow, removeRow, forgetContent, insertUse, removeUse: Statement

    init(_ connection: borrowing Connection) {
        insertRow = Statement(
            connection, "INSERT INTO attachments (digest, length, sha256, header, number) VALUES (?1, ?2, ?3, ?4, ?5)")
        updateRow = Statement(
            connection, "UPDATE attachments SET length = ?2, sha256 = ?3, header = ?4 WHERE number = ?1")
        removeRow = Statement(connection, "DELETE FROM attachments WHERE number = ?1")
        forgetContent = Statement(connection, "UPDATE attachments SET sha256 = NULL, header = NULL WHERE number = ?1")
        insertUse = Statement(
            connection, "INSERT OR IGNORE INTO attachment_uses (revision, attachment) VALUES (?1, ?2)")
        removeUse = Statement(connection, "DELETE FROM attachment_uses WHERE revision = ?1 AND attachment = ?2")
    }

    /// Adds a content's row.
    ///
    /// - Parameter proof: nil for a content that is not here.
    package func insert(
        _ key: AttachmentKey, number: ContentNumber, byteCount: Int, _ proof: AttachmentRow.Proof?
    ) throws(CofferError) {
        try insertRow.bind(1, key)
        try insertRow.bind(2, Int64(byteCount))
        if let proof {
            try insertRow.bind(3, proof.sha256)
            try insertRow.bind(4, proof.header)
        } else {
            try insertRow.bindNull(3)
            try insertRow.bindNull(4)
        }
        try insertRow.bind(5, number)
        try insertRow.run()
    }

    /// Has a content's row mean another file.
    package func update(_ number: ContentNumber, byteCount: Int, _ proof: AttachmentRow.Proof) throws(CofferError) {
        try updateRow.bind(1, number)
        try updateRow.bind(2, Int64(byteCount))
        try updateRow.bind(3, proof.sha256)
        try updateRow.bind(4, proof.header)
        try updateRow.run()
    }

    package func remove(_ number: ContentNumber) throws(CofferError) {
        try removeRow.bind(1, number)
        try removeRow.run()
    }

    /// Has a content's row say that the content was never here.
    package func forget(_ number: ContentNumber) throws(CofferError) {
        try forgetContent.bind(1, number)
        try forgetContent.run()
    }

    /// Notes that a revision uses a content, once.
    package func insertUse(of attachment: ContentNumber, by revision: SequenceNumber) throws(CofferError) {
        try insertUse.bind(1, revision)
        try insertUse.bind(2, attachment)
        try insertUse.run()
    }

    package func removeUse(of attachment: ContentNumber, by revision: SequenceNumber) throws(CofferError) {
        try removeUse.bind(1, revision)
        try removeUse.bind(2, attachment)
        try removeUse.run()
    }
}
