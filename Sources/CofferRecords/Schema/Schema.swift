package import CofferSealing
internal import CofferSQLite
package import CofferVault

/// The tables of a database file, version 1.
///
/// SQLCipher's page check does not cover the last overflow page of a row: bytes changed there are read as zeros, without
/// an error. So a row that can overflow carries the start of its body's SHA-256 before the body, and no entry of an
/// index or of a table without rowid is ever long enough to overflow (989 bytes): `id` has at most 900, and no index
/// holds it together with a revision id.
package enum Schema {
    package static let version: Int64 = 1

    /// What sequences, lengths and counts can be: nothing counts further. Only who writes the disk of a store without encryption
    /// can have others in it, and sums of these are far from what an integer holds.
    package static let counts: ClosedRange<Int64> = 0...1 << 53

    /// The bytes of a page, encrypted or not.
    package static let pageByteCount = 4096

    /// A body longer than this carries its digest. Rows with shorter ones fit their page, which SQLCipher checks whole.
    package static let longestBodyWithoutDigest = 2048

    /// How many revisions of one line are kept, unless the database says otherwise.
    package static let defaultRevisionTreeDepth = 20

    /// `documents` finds a document's winning revision by id. `revisions` holds the tree: a row a revision, in the order
    /// of their arrival, each complete enough to find its place again without `documents`. A document's number is the
    /// sequence of its first revision, so that a document with one revision needs no entry in the index. `leaves` has the
    /// leaves of documents with more than one, so that neither a save nor a read goes through a whole tree. `attachments`
    /// has a row for each content, and `attachment_uses` one for each revision that names it. `local_documents` holds what
    /// has no revisions, and `expirations` when documents are to be purged.
    package static let creation: StaticString = """
        BEGIN;
        CREATE TABLE info (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
        CREATE TABLE documents (
            id TEXT PRIMARY KEY,
            number INTEGER NOT NULL,
            winner INTEGER NOT NULL,
            flags INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE revisions (
            sequence INTEGER PRIMARY KEY,
            document INTEGER NOT NULL,
            parent INTEGER,
            flags INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            suffix NOT NULL,
            digest BLOB,
            id TEXT NOT NULL,
            body BLOB
        );
        CREATE UNIQUE INDEX later_revisions ON revisions (document, generation, suffix) WHERE document <> sequence;
        CREATE TABLE leaves (
            document INTEGER NOT NULL,
            rank BLOB NOT NULL,
            sequence INTEGER NOT NULL,
            PRIMARY KEY (document, rank)
        ) WITHOUT ROWID;
        CREATE TABLE attachments (
            number INTEGER PRIMARY KEY,
            digest NOT NULL UNIQUE,
            length INTEGER NOT NULL,
            sha256 BLOB,
            header BLOB
        );
        CREATE TABLE attachment_uses (
            revision INTEGER NOT NULL,
            attachment INTEGER NOT NULL,
            PRIMARY KEY (revision, attachment)
        ) WITHOUT ROWID;
        CREATE INDEX uses_of_attachment ON attachment_uses (attachment);
        CREATE TABLE local_documents (
            number INTEGER PRIMARY KEY,
            generation INTEGER NOT NULL,
            digest BLOB,
            id TEXT NOT NULL UNIQUE,
            body BLOB NOT NULL
        );
        CREATE TABLE expirations (
            id TEXT PRIMARY KEY,
            time INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX expirations_by_time ON expirations (time);
        PRAGMA user_version = 1;
        COMMIT;
        """

    /// What a copy that was made table by table lacks.
    package static let versionStatement: StaticString = "PRAGMA user_version = 1"

    /// A table, as whoever copies the database needs to check it.
    package struct Table: Sendable {
        /// How many rows it has.
        package let count: StaticString
        /// Of each row the digest, the body where it may overflow its page, the document's id, and whether the first of the
        /// `indexes` leads to the row: NULL where it need not. Nil without bodies.
        package var bodies: StaticString?
        /// The keys of its rows in the order in which its tree has them; nil where the rows have numbers, whose order SQLite checks.
        /// (Of a table without rowids it takes `NOT INDEXED` for leave to go through another index, and its own name for the tree.)
        package var keys: StaticString?
        package var indexes: [Index] = []
    }

    /// An index of SQLite's, as whoever copies the database needs to check it.
    package struct Index: Sendable {
        /// How many entries it has.
        package let entryCount: StaticString
        /// How many rows the table has, and how many of them the index leads to; nil where `bodies` says it.
        package var rows: StaticString?
    }

    /// Every table there is, but for those of ``IndexSchema``.
    package static let tables = [
        // Without the labels of keys, which end with their slots, and what holds for one file.
        Table(
            count: """
                SELECT count(*) FROM info WHERE (key < 'label ' OR key > 'label!') AND key NOT IN ('index_abandoned', 'first_keys')
                """,
            keys: "SELECT key FROM info"),
        Table(count: "SELECT count(*) FROM documents", keys: "SELECT id FROM documents"),
        Table(
            count: "SELECT count(*) FROM revisions",
            bodies: """
                SELECT digest, CASE WHEN digest IS NOT NULL OR length(body) > 2048 THEN body END, id,
                    CASE WHEN document <> sequence THEN sequence IS (
                        SELECT i.sequence FROM revisions AS i INDEXED BY later_revisions
                        WHERE i.document <> i.sequence AND i.document = r.document AND i.generation = r.generation
                            AND i.suffix = r.suffix)
                    END
                FROM revisions AS r NOT INDEXED
                """,
            indexes: [
                Index(
                    entryCount: "SELECT sum(1) FROM revisions INDEXED BY later_revisions WHERE document <> sequence")
            ]),
        Table(count: "SELECT count(*) FROM leaves", keys: "SELECT document, rank FROM leaves"),
        Table(
            count: "SELECT count(*) FROM attachments",
            indexes: [
                Index(
                    entryCount: "SELECT sum(1) FROM attachments INDEXED BY sqlite_autoindex_attachments_1",
                    rows: """
                        SELECT sum(1), sum(number IS (
                            SELECT i.number FROM attachments AS i INDEXED BY sqlite_autoindex_attachments_1
                            WHERE i.digest = r.digest))
                        FROM attachments AS r NOT INDEXED
                        """)
            ]),
        Table(
            count: "SELECT count(*) FROM attachment_uses",
            keys: "SELECT revision, attachment FROM attachment_uses INDEXED BY sqlite_autoindex_attachment_uses_1",
            indexes: [
                Index(
                    entryCount: "SELECT sum(1) FROM attachment_uses INDEXED BY uses_of_attachment",
                    rows: """
                        SELECT sum(1), sum(EXISTS (
                            SELECT 1 FROM attachment_uses AS i INDEXED BY uses_of_attachment
                            WHERE i.attachment = r.attachment AND i.revision = r.revision))
                        FROM attachment_uses AS r INDEXED BY sqlite_autoindex_attachment_uses_1
                        """)
            ]),
        Table(
            count: "SELECT count(*) FROM local_documents",
            bodies: """
                SELECT digest, CASE WHEN digest IS NOT NULL OR length(body) > 2048 THEN body END, id, number IS (
                    SELECT i.number FROM local_documents AS i INDEXED BY sqlite_autoindex_local_documents_1
                    WHERE i.id = r.id)
                FROM local_documents AS r NOT INDEXED
                """,
            indexes: [
                Index(
                    entryCount:
                        "SELECT sum(1) FROM local_documents INDEXED BY sqlite_autoindex_local_documents_1")
            ]),
        Table(
            count: "SELECT count(*) FROM expirations",
            keys: "SELECT id FROM expirations INDEXED BY sqlite_autoindex_expirations_1",
            indexes: [
                Index(
                    entryCount: "SELECT sum(1) FROM expirations INDEXED BY expirations_by_time",
                    rows: """
                        SELECT sum(1), sum(EXISTS (
                            SELECT 1 FROM expirations AS i INDEXED BY expirations_by_time
                            WHERE i.time = r.time AND i.id = r.id))
                        FROM expirations AS r INDEXED BY sqlite_autoindex_expirations_1
                        """)
            ]),
    ]

    /// Builds an empty database in `file`, which exists and is empty, and binds it to its store.
    ///
    /// On return the file is complete and closed, with no log beside it. It is the caller who makes it durable.
    package static func build(in file: DatabaseFile, _ manifest: Manifest) throws(CofferError) {
        try file.begin()
        let connection = try file.connect(.create, cacheByteCount: 1 << 20)
        try build(in: connection, manifest)
        try connection.switchToWriteAheadLog()
        try connection.close()
    }

    /// Builds an empty database in an empty file, and binds it to the store of `manifest`, which was just made.
    static func build(in connection: borrowing Connection, _ manifest: Manifest) throws(CofferError) {
        try connection.execute(creation)
        try Binding(manifest).insert(into: connection)
        try FirstKeys.note(manifest, in: connection)
        try DatabaseIdentity.renew(in: connection)
    }
}

/// Bits of `documents.flags`.
package struct DocumentFlags: OptionSet {
    package let rawValue: Int64

    @inlinable package init(rawValue: Int64) { self.rawValue = rawValue }

    /// The standard library's goes through a generic sequence for a type of another module, in every save.
    @inlinable package init(arrayLiteral flags: DocumentFlags...) { rawValue = flags.reduce(0) { $0 | $1.rawValue } }

    /// The winning revision is a deletion.
    package static let isDeleted = DocumentFlags(rawValue: 1)
    /// The tree has more than one leaf, and they are in `leaves`. Without it the winner is the only one.
    package static let isBranched = DocumentFlags(rawValue: 2)
    /// More than one leaf is not a deletion.
    package static let isInConflict = DocumentFlags(rawValue: 4)
}

/// Bits of `revisions.flags`.
package struct RevisionFlags: OptionSet {
    package let rawValue: Int64

    @inlinable package init(rawValue: Int64) { self.rawValue = rawValue }

    /// As that of ``DocumentFlags``.
    @inlinable package init(arrayLiteral flags: RevisionFlags...) { rawValue = flags.reduce(0) { $0 | $1.rawValue } }

    package static let isDeletion = RevisionFlags(rawValue: 1)
    /// The body has `_attachments`.
    package static let hasAttachments = RevisionFlags(rawValue: 2)
    /// The revision's id need not follow from parent and content: another database gave it, or a content that the revision
    /// awaited under another database's digest has come and is called by its SHA-1 now.
    package static let isForeign = RevisionFlags(rawValue: 4)
}
