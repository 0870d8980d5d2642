internal import Coffer

extension Database {
    /// The winning revision of a document; a failure if it doesn't exist or is deleted.
    func existingRevision(ofDocument id: String) throws -> SavedRevision {
        guard let revision = try document(withID: id).currentRevision else {
            throw Failure.documentNotFound(id)
        }
        return revision
    }
}

extension Failure {
    static func documentNotFound(_ id: String) -> Failure {
        Failure(
            message: "document \(id): document not found (404)", code: "documentNotFound", status: 404, exit: .failed)
    }
}
