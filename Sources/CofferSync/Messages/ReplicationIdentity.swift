internal import CofferModel
internal import CofferSealing
package import Coffer
package import Foundation

/// What makes two runs the same replication: they go on from each other's checkpoints.
package struct ReplicationIdentity: Sendable {
    package var database: UUID
    /// Without credentials, so that a new password goes on where the old one was.
    package var remote: String
    package var isPull: Bool
    package var filter: String?
    package var filterParameters: JSONObject = [:]
    package var documentIDs: [String]?
    package var channels: [String]?

    package init(database: UUID, remote: String, isPull: Bool) {
        self.database = database
        self.remote = remote
        self.isPull = isPull
    }

    /// The name of the local documents with its checkpoints, without `_local/`: letters and digits.
    ///
    /// - Throws: `invalidJSON` (400) for parameters that JSON can't say.
    package var checkpointID: String {
        get throws(CofferError) {
            var object: JSONObject = [
                "database": .string(database.uuidString), "remote": .string(remote), "pull": .bool(isPull),
                "parameters": .object(filterParameters),
            ]
            object["filter"] = filter.map { .string($0) }
            object["ids"] = documentIDs.map { .array($0.sorted().map { .string($0) }) }
            object["channels"] = channels.map { .array($0.sorted().map { .string($0) }) }
            let digest = try Digest.sha256(of: JSONValue.object(object).canonicalJSON())
            return "coffer-" + hexadecimal(Array(digest.prefix(16)))
        }
    }
}
