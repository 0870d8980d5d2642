import CofferModel
import Foundation
import Testing

@testable import Coffer
@testable import CofferSQLite

/// The revision ids that the texts say.
func ids(_ texts: String...) throws -> [RevisionID] { try ids(texts) }

func ids(_ texts: [String]) throws -> [RevisionID] { try texts.map { try #require(RevisionID($0)) } }

extension Document {
    /// The leaves, the winner first, as text; deletions with a minus sign before them.
    var leafTexts: [String] {
        get throws { try leafRevisions.map { ($0.isDeletion ? "-" : "") + $0.revisionID.description } }
    }

    /// The winner's history, the newest first, as text.
    var historyTexts: [String] { get throws { try revisionHistory.reversed().map(\.revisionID.description) } }
}

extension Database {
    /// Every way in which the rows contradict each other. Looks at all of them, without any of the statements that are tested.
    func contradictions() throws -> [String] {
        try storage.write { (writer) throws(CofferError) in
            var found: [String] = []
            for (what, sql) in Self.contradictions {
                let statement = Statement(writer.connection, sql)
                while try statement.step() { found.append("\(what): \(statement.integer(0))") }
                statement.finalize()
            }
            return found
        }
    }

    /// Each selects rows that must not be there.
    private static let contradictions: [(String, StaticString)] = [
        (
            "a document without its winner",
            """
            SELECT number FROM documents AS d WHERE NOT EXISTS (
                SELECT 1 FROM revisions AS r WHERE r.sequence = d.winner AND r.document = d.number AND r.id = d.id)
            """
        ),
        (
            "a revision without a document",
            "SELECT sequence FROM revisions WHERE document NOT IN (SELECT number FROM documents)"
        ),
        (
            "a winner that is deleted otherwise than its document says",
            """
            SELECT number FROM documents AS d JOIN revisions AS r ON r.sequence = d.winner
            WHERE r.flags & 1 <> d.flags & 1
            """
        ),
        (
            "a winner with a child",
            "SELECT winner FROM documents WHERE winner IN (SELECT parent FROM revisions)"
        ),
        (
            "one leaf where the document says more, or the other way round",
            """
            SELECT number FROM documents AS d WHERE (d.flags & 2 <> 0) <> (1 < (
                SELECT count(*) FROM revisions AS r WHERE r.document = d.number
                    AND NOT EXISTS (SELECT 1 FROM revisions AS c WHERE c.parent = r.sequence)))
            """
        ),
        (
            "a conflict where the document says none, or the other way round",
            """
            SELECT number FROM documents AS d WHERE (d.flags & 4 <> 0) <> (1 < (
                SELECT count(*) FROM revisions AS r WHERE r.document = d.number AND r.flags & 1 = 0
                    AND NOT EXISTS (SELECT 1 FROM revisions AS c WHERE c.parent = r.sequence)))
            """
        ),
        (
            "a leaf of a branched document that is not in the table",
            """
            SELECT sequence FROM revisions AS r JOIN documents AS d ON d.number = r.document
            WHERE d.flags & 2 <> 0 AND NOT EXISTS (SELECT 1 FROM revisions AS c WHERE c.parent = r.sequence)
                AND NOT EXISTS (
                    SELECT 1 FROM leaves AS l WHERE l.document = r.document AND l.sequence = r.sequence
                        AND substr(l.rank, 1, 1) = CASE WHEN r.flags & 1 THEN x'00' ELSE x'01' END)
            """
        ),
        (
            "what is in the table and no leaf",
            """
            SELECT l.sequence FROM leaves AS l WHERE NOT EXISTS (
                SELECT 1 FROM revisions AS r JOIN documents AS d ON d.number = r.document
                WHERE r.sequence = l.sequence AND r.document = l.document AND d.flags & 2 <> 0
                    AND NOT EXISTS (SELECT 1 FROM revisions AS c WHERE c.parent = r.sequence))
            """
        ),
        (
            "a parent of another document or generation",
            """
            SELECT c.sequence FROM revisions AS c JOIN revisions AS p ON p.sequence = c.parent
            WHERE p.document <> c.document OR p.generation <> c.generation - 1 OR p.sequence >= c.sequence
            """
        ),
        (
            "a use by a revision that is gone",
            "SELECT revision FROM attachment_uses WHERE revision NOT IN (SELECT sequence FROM revisions)"
        ),
    ]
}
