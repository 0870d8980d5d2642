internal import CofferModel
internal import Coffer
internal import Foundation

/// A revision of the server's with the contents that it brings.
struct PreparedRevision: Sendable {
    var revision: IncomingRevision
    var contents: [ByteKey: Blob] = [:]
}

/// Fetches the contents that revisions have, as far as they are wanted and not here. For one task.
struct ContentCollector {
    private let database: Database
    private let remote: RemoteDatabase
    private let options: ReplicationOptions
    /// Whether the server puts contents into the JSON of many revisions.
    private var findsContentsInJSON = true

    init(_ database: Database, _ remote: RemoteDatabase, _ options: ReplicationOptions) {
        self.database = database
        self.remote = remote
        self.options = options
    }

    private struct Wanted: Sendable {
        let revision: IncomingRevision
        let contents: [IncomingRevision.Content]
        /// Whether a message with all contents of the revision brings none that nobody wants.
        let comeTogether: Bool

        var byteCount: Int { contents.reduce(0) { $0.addingSaturated($1.length ?? 0) } }
    }

    /// - Returns: the revisions that can be saved, and those whose contents can't be had.
    mutating func collect(
        _ revisions: [IncomingRevision]
    ) async throws -> (prepared: [PreparedRevision], failures: [DocumentFailure]) {
        var prepared: [PreparedRevision] = []
        var (small, rest): ([Wanted], [Wanted]) = ([], [])
        for revision in revisions {
            let missing = try revision.missingContents(in: database)
            let contents = missing.filter { options.wants($0, of: revision.id) }
            let wanted = Wanted(
                revision: revision, contents: contents, comeTogether: contents.count == missing.count)
            if contents.isEmpty {
                prepared.append(PreparedRevision(revision: revision))
            } else if findsContentsInJSON, Self.mayStandInJSON(wanted) {
                small.append(wanted)
            } else {
                rest.append(wanted)
            }
        }
        let (found, others) = try await manyAtOnce(small)
        let (fetched, failures) = try await oneByOne(rest + others)
        return (prepared + found + fetched, failures)
    }

    // MARK: Many small ones

    /// Contents of a revision that have up to that many bytes in all come in the JSON of many revisions: a request for each of
    /// them would cost more.
    private static let inlineByteLimit = 16 << 10

    /// Whether the contents are small, and can be checked alone: CouchDB's digests may be those of a packed form.
    private static func mayStandInJSON(_ wanted: Wanted) -> Bool {
        wanted.comeTogether && wanted.byteCount <= inlineByteLimit
            && wanted.contents.allSatisfy { $0.length != nil && $0.digest?.hasPrefix("sha1-") == true }
    }

    /// - Returns: the revisions whose contents came, each of them as it should be, and the others.
    private mutating func manyAtOnce(_ wanted: [Wanted]) async throws -> (found: [PreparedRevision], others: [Wanted]) {
        // What one request brings, another would too.
        guard wanted.count > 1 else { return ([], wanted) }
        var found: [PreparedRevision] = []
        var others: [Wanted] = []
        var rest = wanted[...]
        while !rest.isEmpty {
            try Task.checkCancellation()
            var byteCount = 0
            let batch = rest.prefix { one in
                byteCount = byteCount.addingSaturated(one.byteCount)
                return byteCount <= max(options.batchByteCount, one.byteCount)
            }
            rest = rest.dropFirst(batch.count)
            guard findsContentsInJSON else {
                others += batch
                continue
            }
            var requests: [RevisionRequest] = []
            for one in batch { requests.append(try request(for: one.revision)) }
            var answers: [ByteKey: JSONObject] = [:]
            do {
                for case .revision(let json) in try await remote.revisionsWithContentsInJSON(requests) {
                    guard let id = json["_id"]?.stringValue, let entries = json["_attachments"]?.objectValue,
                        json["_rev"] != nil
                    else { continue }
                    answers[ByteKey(id)] = entries
                }
            } catch let error as SyncError where !error.isAboutServer {
                findsContentsInJSON = false
            }
            for one in batch {
                if let contents = answers[ByteKey(one.revision.id)].flatMap({ Self.contents(one, in: $0) }) {
                    found.append(PreparedRevision(revision: one.revision, contents: contents))
                } else {
                    others.append(one)
                }
            }
            // A server that doesn't is asked for them in another way.
            if others.count >= batch.count, found.isEmpty { findsContentsInJSON = false }
        }
        return (found, others)
    }

    /// The contents that stand among these attachments; nil if one doesn't, or is another than it should be.
    private static func contents(_ wanted: Wanted, in entries: JSONObject) -> [ByteKey: Blob]? {
        var contents: [ByteKey: Blob] = [:]
        for content in wanted.contents {
            guard let text = entries[content.name]?["data"]?.stringValue, let data = Data(base64Encoded: text),
                data.count == content.length
            else { return nil }
            let blob = Blob(contentType: content.contentType, data: data)
            guard blob.digest == content.digest else { return nil }
            contents[ByteKey(content.name)] = blob
        }
        return contents
    }

    /// What the revision is asked for by, without the contents that an ancestor here has.
    private func request(for revision: IncomingRevision) throws -> RevisionRequest {
        var request = RevisionRequest(id: revision.id, revision: revision.revisionID)
        let document = database.document(withID: revision.id)
        for ancestor in revision.history.ids.dropFirst() {
            if let known = try document.revision(withID: ancestor), try known.propertiesAvailable {
                request.attachmentsSince = [ancestor]
                break
            }
        }
        return request
    }

    // MARK: One by one

    /// A few fetched at the same time.
    private func oneByOne(_ wanted: [Wanted]) async throws -> (
        prepared: [PreparedRevision], failures: [DocumentFailure]
    ) {
        var prepared: [PreparedRevision] = []
        var failures: [DocumentFailure] = []
        try await withThrowingTaskGroup(of: (IncomingRevision, Result<PreparedRevision, any Error>).self) { group in
            var rest = wanted[...]
            var runningCount = 0
            while runningCount > 0 || !rest.isEmpty {
                while runningCount < options.parallelDownloadCount, let one = rest.popFirst() {
                    runningCount += 1
                    group.addTask {
                        do {
                            return (one.revision, .success(try await fetch(one)))
                        } catch {
                            return (one.revision, .failure(error))
                        }
                    }
                }
                guard let (revision, result) = try await group.next() else { break }
                runningCount -= 1
                switch result {
                case .success(let one): prepared.append(one)
                case .failure(let error as SyncError) where !error.isAboutServer:
                    failures.append(DocumentFailure(fetching: revision.id, revision.revisionID, error))
                case .failure(let error): throw error
                }
            }
        }
        return (prepared, failures)
    }

    private func fetch(_ wanted: Wanted) async throws -> PreparedRevision {
        let revision = wanted.revision
        // By an empty name nothing can be asked for.
        let haveNames = wanted.contents.allSatisfy { !$0.name.isEmpty }
        if haveNames, wanted.contents.count == 1 || !wanted.comeTogether {
            var prepared = PreparedRevision(revision: revision)
            for content in wanted.contents {
                prepared.contents[ByteKey(content.name)] = try await remote.content(
                    content, of: revision.id, revision.revisionID, into: database)
            }
            return prepared
        }
        // Several come together; those that an ancestor here has stay where they are.
        var (whole, contents) = try await remote.revisionWithContents(try request(for: revision), into: database)
        for content in try whole.missingContents(in: database)
        where contents[ByteKey(content.name)] == nil && options.wants(content, of: whole.id) {
            contents[ByteKey(content.name)] = try await remote.content(
                content, of: whole.id, whole.revisionID, into: database)
        }
        return PreparedRevision(revision: whole, contents: contents)
    }
}
