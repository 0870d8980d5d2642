package import CofferSealing
internal import CofferSQLite

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
