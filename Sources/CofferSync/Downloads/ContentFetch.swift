internal import CofferModel
internal import CofferSealing
internal import Coffer

/// Fetches a content for those who have asked for it, however often the way to the server breaks. For one task.
struct ContentFetch {
    private let download: SharedDownload
    private var database: Database { download.database }

    init(_ download: SharedDownload) { self.download = download }

    private typealias Place = SharedDownload.Place
    private typealias Refusal = RemoteDatabase.Refusal

    /// - Throws: what ``AttachmentDownload/run()`` says.
    func run() async throws {
        var failureCount = 0
        var furthest = 0
        while true {
            try Task.checkCancellation()
            guard !database.hasContent(withDigest: download.digest) else { return }
            let error: SyncError
            var (isPatient, retryAfter) = (true, Duration?.none)
            do {
                return try await install(try await arrive())
            } catch let failure as CofferError where failure.code == .cancelled {
                // The key was changed, and what had come went with the old one.
                try download.begin(with: nil)
                continue
            } catch let refusal as Refusal {
                (error, retryAfter) = (refusal.error, refusal.retryAfter)
                isPatient = [408, 425, 429, 502, 503, 504].contains(error.status)
                guard error.mayPass else { throw error }
            } catch let failure as SyncError where failure.isAboutServer && failure.mayPass {
                error = failure
            }
            if let part = download.usablePart() {
                let byteCount = await part.content.byteCount
                if byteCount > furthest { failureCount = 0 }
                furthest = max(furthest, byteCount)
            }
            failureCount += 1
            guard let remote = download.sources.first?.remote else { throw error }
            guard isPatient || failureCount < remote.options.retry.attemptCount else { throw error }
            download.note(.offline, error)
            try await remote.pause(after: failureCount, retryAfter)
        }
    }

    /// Asks one place after the other, the one first that a part has come from.
    private func arrive() async throws -> Blob {
        let locations = try ContentLocation.all(ofContent: download.digest, in: database)
        guard !locations.isEmpty else {
            throw CofferError(.attachmentNotFound, "no revision has the content any more")
        }
        var asked: Set<Place> = []
        var closed: DownloadSource?
        var refusal: (any Error)?
        var next = download.usablePart()?.place
        while true {
            // A caller that asks for it meanwhile may know another server.
            let places = download.sources.flatMap { source in locations.map { Place(source: source, location: $0) } }
            guard let place = next ?? places.first(where: { $0.source !== closed && !asked.contains($0) }) else {
                break
            }
            next = nil
            asked.insert(place)
            do {
                return try await place.source.semaphore.pass { try await transfer(place) }
            } catch let error as Refusal where [401, 403, 404, 410].contains(error.error.status) {
                refusal = refusal ?? error
                if error.error.status == 401 { closed = place.source }
            } catch let error as SyncError where error.status == 502 && !place.location.isCertain {
                refusal = refusal ?? SyncError(404, of: place.location.subject, "the server does not have it")
            }
        }
        throw refusal ?? SyncError(404, "nobody has the content")
    }

    private func transfer(_ place: Place) async throws -> Blob {
        download.note(.active)
        if let part = download.usablePart(), part.place == place {
            do {
                // The way may have broken behind the last byte.
                if await part.content.byteCount == download.length { return try await finish(part) }
                let response = try await goOn(part)
                return try await receive(
                    response.status == 206 ? (part, response) : begin(place, response))
            } catch let error as SyncError where error.status == 502 {
                // What comes now is not the rest of what came, or both together are not the content.
            } catch let error as Refusal where [412, 416].contains(error.error.status) {
                // The server has no such rest.
            }
        }
        return try await receive(begin(place))
    }

    /// Asks for the rest of what came.
    ///
    /// - Throws: ``SyncError`` 502 for an answer with anything else.
    private func goOn(_ part: SharedDownload.Part) async throws -> HTTPResponse {
        let byteCount = await part.content.byteCount
        let fields: HTTPFields = [
            "Accept-Encoding": "identity", "Range": "bytes=\(byteCount)-", "If-Range": part.tag ?? "",
        ]
        let response = try await part.place.source.remote.answer(
            "GET", RemoteDatabase.target(of: part.place.location), subject: part.place.location.subject, fields: fields)
        guard response.status == 206 else { return response }
        guard response.fields["ETag"] == part.tag, !Self.isPacked(response),
            response.fields["Content-Range"]?.trimmed
                == "bytes \(byteCount)-\(download.length - 1)/\(download.length)"
        else { throw SyncError.garbage("the server goes on with something else", of: part.place.location.subject) }
        return response
    }

    /// Begins from the beginning.
    ///
    /// - Parameter answer: the server's, where it was asked already.
    private func begin(
        _ place: Place, _ answer: HTTPResponse? = nil
    ) async throws -> (SharedDownload.Part, HTTPResponse) {
        let location = place.location
        // CouchDB's digests of what it keeps packed are those of the packed bytes.
        let encoding = download.digest.hasPrefix("md5-") ? "gzip" : "identity"
        let response =
            if let answer { answer } else {
                try await place.source.remote.answer(
                    "GET", RemoteDatabase.target(of: location), subject: location.subject,
                    fields: ["Accept-Encoding": encoding])
            }
        guard response.status == 200 else {
            throw SyncError.garbage("an answer that is not content", of: location.subject)
        }
        let isPacked = Self.isPacked(response)
        let tag = response.fields["ETag"].flatMap { $0.hasPrefix("\"") ? $0 : nil }
        let content = try ArrivingContent(
            ContentDownload(
                subject: location.subject, digest: download.digest, length: download.length, isPacked: isPacked)
        ) { try database.beginLongContent() }
        let part = SharedDownload.Part(
            content: content, place: place,
            tag: !isPacked && response.fields.contains("bytes", in: "Accept-Ranges") ? tag : nil)
        try download.begin(with: part)
        return (part, response)
    }

    private func receive(_ arriving: (SharedDownload.Part, HTTPResponse)) async throws -> Blob {
        let (part, response) = arriving
        while let piece = try await response.body.stream.next() {
            try Task.checkCancellation()
            download.note(byteCount: try await part.content.take(piece))
        }
        return try await finish(part)
    }

    private func finish(_ part: SharedDownload.Part) async throws -> Blob {
        let blob = try await part.content.finish()
        download.takePart()
        return blob
    }

    private static func isPacked(_ response: HTTPResponse) -> Bool {
        response.fields["Content-Encoding"]?.lowercased() == "gzip"
    }

    /// In a task of its own: what is whole is not lost because somebody pauses now.
    private func install(_ content: Blob) async throws {
        let (database, digest) = (database, download.digest)
        var failureCount = 0
        while true {
            do {
                return try await Task { try await database.install(content, as: digest) }.value
            } catch let error as CofferError where error.code == .busy {
                // Somebody writes for very long.
                failureCount += 1
                guard let remote = download.sources.first?.remote,
                    failureCount < remote.options.retry.attemptCount
                else { throw error }
                try await remote.pause(after: failureCount, nil)
            }
        }
    }
}

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
