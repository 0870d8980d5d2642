internal import CofferModel
internal import Coffer

/// Where a server may have a content: as an attachment of a revision.
struct ContentLocation: Sendable, Hashable {
    let documentID: String
    let revision: RevisionID
    let name: String
    /// Whether that revision's attachment of that name is known to be this content.
    let isCertain: Bool

    var subject: String { "attachment \(name) of document \(documentID)" }

    /// More revisions that have a content are not looked at, and no more places than that are asked.
    private static let limit = 20

    /// The places of a content, the latest revision first: the revisions here that have it, and those that they were made
    /// from, since the server need not know what was saved here.
    static func all(ofContent digest: String, in database: Database) throws -> [ContentLocation] {
        var all: [ContentLocation] = []
        func add(_ location: ContentLocation) {
            if all.count < limit, !all.contains(location) { all.append(location) }
        }
        for use in try database.uses(ofContent: digest, limit: limit) {
            // What was purged just then has it no more.
            guard let revision = try database.document(withID: use.documentID).revision(withID: use.revisionID),
                try revision.propertiesAvailable
            else { continue }
            let history = try revision.history.reversed().map(\.revisionID)
            for content in try OutgoingRevision(revision).contents
            where content.digest.utf8.elementsEqual(digest.utf8) {
                for id in history {
                    // A blob that came earlier had this name then, too, unless others stood before it.
                    let isCertain = id.generation >= content.generation
                    guard isCertain || content.isBlob else { break }
                    add(
                        ContentLocation(
                            documentID: use.documentID, revision: id, name: content.name, isCertain: isCertain))
                }
            }
        }
        return all
    }
}

extension RemoteDatabase {
    /// The target of a content's requests.
    static func target(of location: ContentLocation) -> String {
        target(ofAttachment: location.name, of: location.documentID, location.revision)
    }
}
