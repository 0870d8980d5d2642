internal import CofferSealing

/// A report that is being made.
struct ImportReport {
    /// Where a problem is, as the source has it.
    struct Place {
        var document: [UInt8]?
        var revision: [UInt8]?
    }

    private struct Leaves {
        var liveCount: UInt32 = 0
        var deletedCount: UInt32 = 0
        /// Of a document none of whose leaves could be saved, what was saved last counts.
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

    /// Names that are too long to be read are cut, since they may be anything.
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

    /// The whole report.
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
