import CofferModel
import Foundation

@testable import Coffer
import TestSupport

/// What one revision of the soak holds. Everything follows from few numbers, so that the model stays small.
struct SoakContent: Equatable, Sendable {
    /// Unique in its store, so that no two revisions are the same by accident.
    var number: Int
    /// By the attachments' names: the number of their content.
    var attachments: [String: Int] = [:]
    /// The number of the blob's content.
    var blob: Int?

    var text: String {
        String(repeating: "soak", count: [0, 10, 50, 200, 800, 2_000][number % 6])
    }

    /// The contents of attachments and blobs. There are few, so that actors share them, and a content is removed by one
    /// while another saves it again.
    static let contents: [Data] = (0..<16).map { number in
        let byteCount = [0, 1, 300, 16_384, 16_385, 70_000, 130_000, 400_000][number % 8]
        var random = SeededNumbers(seed: UInt64(number))
        var bytes = Data(capacity: byteCount + 8)
        while bytes.count < byteCount { withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) } }
        return bytes.prefix(byteCount)
    }
}

/// What must be there of one document.
struct SoakDocument: Sendable {
    /// What each leaf holds; nil for a deletion.
    var leaves: [RevisionID: SoakContent?] = [:]
    /// When it is purged automatically. Its owner writes no more to such a document, but may take the date away.
    var expiration: Date?

    init(_ revision: RevisionID, _ content: SoakContent?) { leaves = [revision: content] }

    /// The leaf that wins.
    var winner: RevisionID {
        let ranked = leaves.max {
            let (left, right) = (
                LeafRank($0.key, isDeletion: $0.value == nil), LeafRank($1.key, isDeletion: $1.value == nil)
            )
            return left.bytes.lexicographicallyPrecedes(right.bytes)
        }
        guard let ranked else { preconditionFailure("a document has a leaf") }
        return ranked.key
    }

    /// What the winner holds; nil where the document is deleted.
    var current: SoakContent? { leaves[winner] ?? nil }

    /// Whether it may be gone by `date`. The library counts in milliseconds, which it rounds up.
    func mayBeGone(by date: Date) -> Bool { expiration.map { $0 <= date.addingTimeInterval(0.002) } ?? false }

    /// Whether a store that is opened at `date` must not have it any more.
    func mustBeGone(by date: Date) -> Bool { expiration.map { $0 <= date.addingTimeInterval(-0.002) } ?? false }
}

/// What must be there of everything that one actor wrote. Nobody else writes to it, so it is exact.
struct SoakModel: Sendable {
    let trail = SoakTrail()
    var documents: [String: SoakDocument] = [:]
    var localDocuments: [String: Int] = [:]
    /// The revisions that were acknowledged since the actor last got the database.
    var acknowledged: [RevisionID] = []

    /// Notes that a revision took the place of `parent`, or stands beside the leaves where that is nil.
    mutating func note(_ id: String, _ revision: RevisionID, _ content: SoakContent?, after parent: RevisionID?) {
        trail.note("\(id) is \(revision)")
        acknowledged.append(revision)
        guard documents[id] != nil else { return documents[id] = SoakDocument(revision, content) }
        if let parent { documents[id]?.leaves[parent] = nil }
        documents[id]?.leaves[revision] = .some(content)
    }

    /// Notes that a document is there no more.
    mutating func noteGone(_ id: String, _ why: String) {
        trail.note("\(id) \(why)")
        documents[id] = nil
    }

    /// The documents that its owner may write to: those that won't expire.
    var lasting: [String] { documents.filter { $0.value.expiration == nil }.keys.sorted() }

    /// Those of them that are not deleted.
    var live: [String] { lasting.filter { documents[$0]?.current != nil } }
}

/// The last that an actor did, rolled back or not, for when something goes wrong.
final class SoakTrail: Sendable {
    private let lines = Shared<[String]>([])

    func note(_ line: String) { lines.value = lines.value.suffix(39) + [line] }

    var text: String { lines.value.joined(separator: "; ") }
}

/// The library did something else than it promises.
struct SoakMismatch: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// - Throws: a ``SoakMismatch`` unless `condition` holds.
func soakExpect(_ condition: Bool, _ text: @autoclosure () -> String) throws {
    if !condition { throw SoakMismatch(text()) }
}
