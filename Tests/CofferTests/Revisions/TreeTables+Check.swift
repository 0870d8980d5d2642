import CofferModel
import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords

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
    /// Every way in which the rows contradict each other.
    func contradictions() throws -> [String] {
        try storage.write { (writer) throws(CofferError) in
            try TableMismatch.findings(in: writer.tables.connection).map { "\($0.subject): \($0.detail)" }
        }
    }
}
