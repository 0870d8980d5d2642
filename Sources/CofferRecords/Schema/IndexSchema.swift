internal import CofferSealing
internal import CofferSQLite

/// The tables of views and declared indexes. They are made when the first of these is, since most databases have none.
///
/// Everything in `index_entries` can be made again from the documents: it is dropped when it is damaged or of another
/// version. `indexes` has a row for each index: what it is, and up to which sequence it was made.
///
/// An entry's key and its document's id are each split, so that no entry of `entries_by_key` is long enough to overflow:
/// whole, they are `key` and `key_rest`, `id` and `id_rest`, one behind the other. The rests, and the value, are covered by
/// the entry's digest where the row may overflow: see ``Schema``.
///
/// A text index has its entries in the tables whose names begin with `text_`, all of them made again in the same way. It gives a
/// document a number whenever it takes it in; a number whose document has changed since is dead, and has no row in
/// `text_documents` and a length of zero. No row is long enough to overflow.
package enum IndexSchema {
    /// Of the entries: another one than the database has, and they are rebuilt.
    package static let version: Int64 = 2

    /// Names and definitions are this long at most, in bytes: their rows, and the entries of the index over them, fit a page.
    package static let nameByteLimit = 400
    package static let definitionByteLimit = 2000

    /// A text index is over fewer properties than this.
    package static let textFieldLimit: UInt64 = 64

    package static let creation: StaticString = """
        CREATE TABLE IF NOT EXISTS indexes (
            number INTEGER PRIMARY KEY,
            kind INTEGER NOT NULL,
            name TEXT NOT NULL,
            definition TEXT NOT NULL,
            sequence INTEGER NOT NULL,
            entries INTEGER NOT NULL,
            changes INTEGER NOT NULL,
            flags INTEGER NOT NULL,
            UNIQUE (kind, name)
        );
        CREATE TABLE IF NOT EXISTS index_entries (
            number INTEGER PRIMARY KEY,
            owner INTEGER NOT NULL,
            document INTEGER NOT NULL,
            sequence INTEGER NOT NULL,
            digest BLOB,
            key BLOB,
            id BLOB NOT NULL,
            key_rest BLOB,
            id_rest BLOB,
            value BLOB
        );
        CREATE INDEX IF NOT EXISTS entries_by_key ON index_entries (owner, key, id);
        CREATE INDEX IF NOT EXISTS entries_of_document ON index_entries (document, owner);
        CREATE TABLE IF NOT EXISTS index_debts (
            owner INTEGER NOT NULL,
            document INTEGER NOT NULL,
            id TEXT NOT NULL,
            PRIMARY KEY (owner, document)
        ) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS text_documents (
            owner INTEGER NOT NULL,
            number INTEGER NOT NULL,
            document INTEGER NOT NULL,
            id TEXT NOT NULL,
            PRIMARY KEY (owner, number)
        ) WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS text_of_document ON text_documents (document, owner);
        CREATE TABLE IF NOT EXISTS text_lengths (
            owner INTEGER NOT NULL,
            chunk INTEGER NOT NULL,
            lengths BLOB NOT NULL,
            PRIMARY KEY (owner, chunk)
        ) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS text_postings (
            owner INTEGER NOT NULL,
            term BLOB NOT NULL,
            block INTEGER NOT NULL,
            last INTEGER NOT NULL,
            postings BLOB NOT NULL,
            PRIMARY KEY (owner, term, block)
        ) WITHOUT ROWID;
        INSERT OR REPLACE INTO info (key, value) VALUES ('index_version', 2);
        """

    /// Removes all entries, of whatever version.
    package static let dropping: StaticString = """
        DROP TABLE IF EXISTS index_entries;
        DROP TABLE IF EXISTS text_documents;
        DROP TABLE IF EXISTS text_lengths;
        DROP TABLE IF EXISTS text_postings;
        """

    /// Has all indexes rebuilt, once their entries are gone.
    package static let emptying: StaticString = """
        UPDATE indexes SET sequence = 0, entries = 0, changes = changes + 1, flags = 0;
        DELETE FROM index_debts;
        """

    /// Takes the entries out of the schema without a look at their pages, which may be damaged.
    ///
    /// Their pages stay where they are, unused, until the next copy of the database.
    package static let abandonment: StaticString = """
        DELETE FROM sqlite_master
        WHERE tbl_name IN ('index_entries', 'text_documents', 'text_lengths', 'text_postings');
        UPDATE indexes SET sequence = 0, entries = 0, changes = changes + 1, flags = 0;
        DELETE FROM index_debts;
        DELETE FROM info WHERE key = 'index_version';
        INSERT OR REPLACE INTO info (key, value) VALUES ('index_abandoned', 1);
        """

    /// The same where not even what indexes there are can be read.
    package static let abandonmentOfAll: StaticString = """
        DELETE FROM sqlite_master
        WHERE tbl_name IN ('indexes', 'index_entries', 'index_debts', 'text_documents', 'text_lengths', 'text_postings');
        DELETE FROM info WHERE key = 'index_version';
        INSERT OR REPLACE INTO info (key, value) VALUES ('index_abandoned', 1);
        """

    /// Every table there is.
    package static let tables = [
        Schema.Table(
            count: "SELECT count(*) FROM indexes",
            indexes: [
                Schema.Index(
                    entryCount: "SELECT sum(1) FROM indexes INDEXED BY sqlite_autoindex_indexes_1",
                    rows: """
                        SELECT sum(1), sum(number IS (
                            SELECT i.number FROM indexes AS i INDEXED BY sqlite_autoindex_indexes_1
                            WHERE i.kind = r.kind AND i.name = r.name))
                        FROM indexes AS r NOT INDEXED
                        """)
            ]),
        Schema.Table(
            count: "SELECT count(*) FROM index_entries",
            indexes: [
                Schema.Index(
                    entryCount: "SELECT sum(1) FROM index_entries INDEXED BY entries_by_key",
                    rows: """
                        SELECT sum(1), sum(EXISTS (
                            SELECT 1 FROM index_entries AS i INDEXED BY entries_by_key
                            WHERE i.owner = r.owner AND i.key IS r.key AND i.id = r.id AND i.number = r.number))
                        FROM index_entries AS r NOT INDEXED
                        """),
                Schema.Index(
                    entryCount: "SELECT sum(1) FROM index_entries INDEXED BY entries_of_document",
                    rows: """
                        SELECT sum(1), sum(EXISTS (
                            SELECT 1 FROM index_entries AS i INDEXED BY entries_of_document
                            WHERE i.document = r.document AND i.owner = r.owner AND i.number = r.number))
                        FROM index_entries AS r NOT INDEXED
                        """),
            ]),
        Schema.Table(
            count: "SELECT count(*) FROM index_debts", keys: "SELECT owner, document FROM index_debts"),
        Schema.Table(
            count: "SELECT count(*) FROM text_documents",
            keys: "SELECT owner, number FROM text_documents INDEXED BY sqlite_autoindex_text_documents_1",
            indexes: [
                Schema.Index(
                    entryCount: "SELECT sum(1) FROM text_documents INDEXED BY text_of_document",
                    rows: """
                        SELECT sum(1), sum(EXISTS (
                            SELECT 1 FROM text_documents AS i INDEXED BY text_of_document
                            WHERE i.document = r.document AND i.owner = r.owner AND i.number = r.number))
                        FROM text_documents AS r INDEXED BY sqlite_autoindex_text_documents_1
                        """)
            ]),
        Schema.Table(
            count: "SELECT count(*) FROM text_lengths", keys: "SELECT owner, chunk FROM text_lengths"),
        Schema.Table(
            count: "SELECT count(*) FROM text_postings", keys: "SELECT owner, term, block FROM text_postings"),
    ]

    /// Forgets, in a copy, that pages of the original are without a use.
    package static let forgettingAbandonment: StaticString = "DELETE FROM info WHERE key = 'index_abandoned'"

    /// Up to here a key, or an id, stands in the index; what is more goes into the rest. Two of them, and what else an entry
    /// of the index has, stay below 989 bytes.
    package static let indexedByteCount = 440
}

/// What an index is.
package enum IndexKind: Int64, Sendable {
    /// A view: its entries are what a function of the app's makes of documents.
    case view = 0
    /// A declared index: its entries are the values of properties.
    case properties = 1
    /// A text index: its entries are the terms of texts, in tables of their own.
    case text = 2
}

/// A row of `indexes`.
package struct IndexRow: Sendable, Equatable {
    package var number: IndexNumber
    package var name: String
    /// A view's version, or a declared index's paths as JSON.
    package var definition: String
    /// The sequence up to which documents are in it.
    package var sequence: SequenceNumber
    /// How many entries it has.
    package var entryCount: Int
    /// How often it was changed.
    package var changeCount: Int64
    /// Whether any entry ever had a rest.
    package var hasRests: Bool
}

/// Bytes in the two columns that they are kept in.
package struct SplitBytes: Equatable, Sendable {
    package var start: [UInt8]
    package var rest: [UInt8]?

    package init(_ bytes: [UInt8]) {
        if bytes.count <= IndexSchema.indexedByteCount {
            (start, rest) = (bytes, nil)
        } else {
            start = Array(bytes[..<IndexSchema.indexedByteCount])
            rest = Array(bytes[IndexSchema.indexedByteCount...])
        }
    }

    package init(start: [UInt8], rest: [UInt8]?) {
        self.start = start
        self.rest = rest
    }

    package var bytes: [UInt8] { rest.map { start + $0 } ?? start }
}

/// A row of `index_entries`.
package struct IndexEntry: Sendable {
    package var number: IndexNumber
    /// Of the revision that it was made from.
    package var sequence: SequenceNumber
    package var key: [UInt8]
    package var id: [UInt8]
    /// JSON in canonical form; nil for null.
    package var value: [UInt8]?
}

/// A place among an index's entries: before the entry with this key, id and number, should there be one.
package struct EntryPosition: Equatable, Sendable {
    package var key: [UInt8]
    package var id: [UInt8] = []

    package init(key: [UInt8], id: [UInt8] = []) {
        self.key = key
        self.id = id
    }

    /// Bytes that come after every id: no UTF-8 has them.
    package static let afterIDs: [UInt8] = [0xFF]

    /// Bytes that come after every id before this one, and before this one.
    package static func right(before id: [UInt8]) -> [UInt8] {
        guard let last = id.last else { return [] }
        return last == 0 ? id.dropLast() : id.dropLast() + [last - 1] + afterIDs
    }
}
