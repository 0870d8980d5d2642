internal import CofferSealing

/// Collects what a report says.
struct ImportReport {
    /// The ids of the document and the revision that have a problem, as the source has them.
    struct Place {
        var document: [UInt8]?
        var revision: [UInt8]?
    }

    private struct Leaves {
        var liveCount: UInt32 = 0
        var deletedCount: UInt32 = 0
        /// Whether the last saved revision is a deletion. It decides if none of the document's leaves could be saved.
        var isLastDeleted = false
    }

    var values = CouchbaseLiteImportReport()
    private let problemLimit: Int
    private var documents: [Int64: Leaves] = [:]

    init(problemLimit: Int) { self.problemLimit = problemLimit }

    mutating func add(_ reason: String, _ place: Place, attachment: String? = nil) {
        values.problemCount += 1
        guard values.problems.count < problemLimit else { return }
        values.problems.append(
            CouchbaseLiteImportProblem(
                documentID: place.document.map(Self.text), revisionID: place.revision.map(Self.text),
                attachmentName: attachment, reason: reason))
    }

    /// The text of an id, cut if it is long, since it may be anything.
    private static func text(_ bytes: [UInt8]) -> String {
        let limit = 300
        let text = String(decoding: bytes.prefix(limit), as: UTF8.self)
        return bytes.count > limit ? text + "…" : text
    }

    mutating func noteSaved(_ document: Int64, isLeaf: Bool, isDeletion: Bool, attachmentCount: Int) {
        values.revisionCount += 1
        values.attachmentCount += attachmentCount
        var leaves = documents[document] ?? Leaves()
        leaves.isLastDeleted = isDeletion
        if isLeaf {
            if isDeletion { leaves.deletedCount += 1 } else { leaves.liveCount += 1 }
        }
        documents[document] = leaves
    }

    /// The finished report.
    func finished() -> CouchbaseLiteImportReport {
        var values = values
        for leaves in documents.values {
            let hasLeaf = leaves.liveCount + leaves.deletedCount > 0
            if hasLeaf ? leaves.liveCount > 0 : !leaves.isLastDeleted {
                values.documentCount += 1
            } else {
                values.deletedDocumentCount += 1
            }
            if leaves.liveCount > 1 { values.conflictCount += 1 }
        }
        return values
    }
}
