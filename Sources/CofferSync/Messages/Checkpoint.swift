package import CofferModel
internal import CofferSealing
internal import Coffer
package import Foundation

/// How far a replication has come, as both databases keep it in a local document.
///
/// Neither alone is believed: a database may have been put back to an earlier state, or be another one of the same name. They
/// agree where both name the same session.
package struct Checkpoint: Sendable, Equatable {
    /// A record, and how far the replication had come then.
    package struct Session: Sendable, Equatable {
        package var id: String
        package var position: FeedPosition

        package init(id: String, position: FeedPosition) {
            self.id = id
            self.position = position
        }
    }

    /// Earlier records are kept up to that many, as CouchDB does.
    static let sessionLimit = 50

    /// The latest first.
    package private(set) var sessions: [Session]

    package init(sessions: [Session] = []) { self.sessions = sessions }

    /// What a local document says; empty if it is not a checkpoint.
    package init(_ json: JSONObject) {
        sessions = []
        if let id = json["session_id"]?.stringValue, let position = json["source_last_seq"], !position.isNull {
            sessions.append(Session(id: id, position: FeedPosition(position)))
        }
        for entry in json["history"]?.arrayValue ?? [] {
            guard let id = entry["session_id"]?.stringValue, let position = entry["recorded_seq"], !position.isNull
            else { continue }
            if sessions.first?.id != id { sessions.append(Session(id: id, position: FeedPosition(position))) }
        }
    }

    package var json: JSONObject {
        guard let latest = sessions.first else { return [:] }
        return [
            "session_id": .string(latest.id), "source_last_seq": latest.position.value,
            "replication_id_version": 4,
            "history": .array(
                sessions.map { ["session_id": .string($0.id), "recorded_seq": $0.position.value] }),
        ]
    }

    /// The same after `session` has come to `position`.
    package func recording(_ session: String, at position: FeedPosition) -> Checkpoint {
        var sessions = sessions
        sessions.removeAll { $0.id == session }
        sessions.insert(Session(id: session, position: position), at: 0)
        return Checkpoint(sessions: Array(sessions.prefix(Self.sessionLimit)))
    }

    /// How far source and target agree that the replication has come; nil if they never met.
    ///
    /// One of them may have been put back to an earlier state, or its last record may be missing: what counts is the latest
    /// record that both have.
    package static func common(source: Checkpoint, target: Checkpoint) -> FeedPosition? {
        source.sessions.first { target.sessions.contains($0) }?.position
    }
}

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
