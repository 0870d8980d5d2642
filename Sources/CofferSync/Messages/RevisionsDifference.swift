package import CofferModel

/// What `_revs_diff` is asked: revisions by the ids of their documents.
package struct RevisionsQuestion: Sendable {
    package var documents: [(id: String, revisions: [RevisionID])] = []

    /// Revisions that another database may have, and none here, by the ids of their documents.
    package private(set) var foreign: [ByteKey: [String]] = [:]

    package init() {}

    /// How many revisions it asks about, at least one of each document.
    var revisionCount: Int {
        documents.reduce(0) { $0 + max(1, $1.revisions.count) } + foreign.values.reduce(0) { $0 + $1.count }
    }

    /// - Throws: ``SyncError`` 400.
    package init(_ json: JSONValue) throws(SyncError) {
        guard let object = json.objectValue else { throw SyncError(400, "_revs_diff asks for no object") }
        try self.init(members: object.map { ($0, $1) })
    }

    /// A document may be named more than once: CouchDB's replicator asks for each change that it reads in a continuous feed.
    ///
    /// - Throws: ``SyncError`` 400.
    init(members: [(name: String, value: JSONValue)]) throws(SyncError) {
        var places: [ByteKey: Int] = [:]
        for (id, value) in members {
            guard let texts = value.arrayValue else { throw SyncError(400, "_revs_diff asks for no list of revisions") }
            var revisions: [RevisionID] = []
            for text in texts {
                if let revision = text.stringValue.flatMap(RevisionID.init) {
                    revisions.append(revision)
                } else if let text = text.stringValue, RevisionID.isForeign(text) {
                    foreign[ByteKey(id), default: []].append(text)
                } else {
                    throw SyncError(400, of: "document \(id)", "_revs_diff asks for what is not a revision id")
                }
            }
            if let place = places[ByteKey(id)] {
                documents[place].revisions += revisions.filter { !documents[place].revisions.contains($0) }
            } else {
                places[ByteKey(id)] = documents.count
                documents.append((id, revisions))
            }
        }
    }

    package var json: JSONValue {
        var object: JSONObject = [:]
        for (id, revisions) in documents {
            object[id] = .array((object[id]?.arrayValue ?? []) + revisions.map { .string($0.description) })
        }
        return .object(object)
    }
}

extension RevisionID {
    /// The id with its letters in lower case, as those of a digest always are.
    fileprivate var inLowerCase: RevisionID {
        guard case .text = suffix else { return self }
        return RevisionID(description.lowercased()) ?? self
    }

    /// Whether `text` has the form of a revision's id, a number, a hyphen and something behind it, and is too long or too late
    /// for any that can be here.
    static func isForeign(_ text: String) -> Bool {
        let digits = text.utf8.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        let rest = text.utf8.dropFirst(digits.count)
        return !digits.isEmpty && rest.first == UInt8(ascii: "-") && rest.count > 1 && RevisionID(text) == nil
    }
}

/// What `_revs_diff` says of one document.
package struct RevisionsDifference: Sendable, Equatable {
    package var missing: [RevisionID]
    /// Others that are missing, since none of ours has such an id: see ``RevisionsQuestion/foreign``.
    package var foreign: [String] = []
    /// Revisions that are there and that a missing one may follow.
    package var possibleAncestors: [RevisionID]

    package init(missing: [RevisionID], possibleAncestors: [RevisionID] = []) {
        self.missing = missing
        self.possibleAncestors = possibleAncestors
    }

    /// - Throws: ``SyncError`` 502.
    package init(_ json: JSONValue) throws(SyncError) {
        // What is not a revision id can't be one of ours.
        func ids(_ key: String) -> [RevisionID] {
            (json[key]?.arrayValue ?? []).compactMap { $0.stringValue.flatMap(RevisionID.init) }
        }
        guard json["missing"]?.arrayValue != nil else { throw .garbage("an answer of _revs_diff without missing") }
        self.init(missing: ids("missing"), possibleAncestors: ids("possible_ancestors"))
    }

    package var json: JSONValue {
        var object: JSONObject = ["missing": .array((missing.map(\.description) + foreign).map { .string($0) })]
        if !possibleAncestors.isEmpty {
            object["possible_ancestors"] = .array(possibleAncestors.map { .string($0.description) })
        }
        return .object(object)
    }

    /// All that an answer says of what it was asked, by documents' ids. The other side does not choose what it is sent: what
    /// it was not asked is left out.
    ///
    /// - Throws: ``SyncError`` 502.
    package static func answer(
        _ json: JSONValue, to question: RevisionsQuestion
    ) throws(SyncError) -> [(id: String, RevisionsDifference)] {
        guard let object = json.objectValue else { throw .garbage("an answer of _revs_diff that is not an object") }
        let asked = Dictionary(
            question.documents.map { (ByteKey($0.id), $0.revisions) }, uniquingKeysWith: { $0 + $1 })
        var all: [(String, RevisionsDifference)] = []
        for (id, value) in object {
            var difference = try RevisionsDifference(value)
            // CouchDB has 32 hex digits in lower case, however they came.
            let missing = Set(difference.missing)
            difference.missing = (asked[ByteKey(id)] ?? []).filter {
                missing.contains($0) || missing.contains($0.inLowerCase)
            }
            if !difference.missing.isEmpty { all.append((id, difference)) }
        }
        return all
    }
}
