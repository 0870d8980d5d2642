internal import CofferModel
internal import CofferSealing
internal import Coffer

/// A content that a document has and that is not here, since a pull left it out.
public struct MissingContent: Sendable {
    /// The document that has it, or one of them.
    public let documentID: String
    /// The name of the attachment; `blob_1` and so on for the blobs in a document's properties.
    public let name: String
    /// The length of the content in bytes.
    public let byteCount: Int
    let digest: String

    var subject: String { "attachment \(name) of document \(documentID)" }
}

/// What became of contents that were left out before.
public struct MissingContentResult: Sendable {
    /// A content that did not come.
    public struct Failure: Sendable {
        /// Which one.
        public let content: MissingContent
        /// Why: a ``SyncError`` or a `CofferError`.
        public let error: any Error
    }

    /// How many contents came.
    public internal(set) var downloadedCount = 0
    /// The bytes of these contents.
    public internal(set) var downloadedByteCount = 0
    /// Those that did not come: the first 1,000.
    public internal(set) var failures: [Failure] = []
    /// How many did not come.
    public internal(set) var failedCount = 0

    static let failureLimit = 1000
}

extension Replication {
    /// The contents that a document's current and conflicting revisions have and that are not here. Asks no server.
    ///
    /// - Parameters:
    ///   - id: the document's id.
    ///   - name: of an attachment, or `blob_1` and so on. Default: nil, all.
    /// - Throws: `documentNotFound` and `attachmentNotFound` (404) where there is no such document, or nothing of that name;
    ///   `damaged` and `closed` (500).
    public func missingContents(ofDocumentWithID id: String, named name: String? = nil) throws -> [MissingContent] {
        let leaves = try database.document(withID: id).leafRevisions.filter { !$0.isDeletion }
        guard !leaves.isEmpty else { throw CofferError(.documentNotFound, of: "document \(id)") }
        var missing: [MissingContent] = []
        var isFound = name == nil
        for revision in leaves {
            let outgoing = try OutgoingRevision(revision)
            for content in outgoing.contents where name.map({ content.name.utf8.elementsEqual($0.utf8) }) ?? true {
                isFound = true
                guard !outgoing.isAvailable(content), !missing.contains(where: { $0.digest == content.digest }) else {
                    continue
                }
                missing.append(
                    MissingContent(
                        documentID: id, name: content.name, byteCount: content.length, digest: content.digest))
            }
        }
        guard isFound else {
            throw CofferError(
                .attachmentNotFound, of: "attachment \(name ?? "") of document \(id)", "it does not exist")
        }
        return missing
    }

    /// Fetches contents that pulls left out, and waits until they are here: all that revisions in the database have, as far as
    /// this pull's options want them (``ReplicationOptions/attachmentByteLimit``), or those of some documents.
    ///
    /// One that the server doesn't have, or that can't be had for another reason, keeps no other from coming. A server that
    /// goes away is waited for as often as ``RetryPolicy/attemptCount`` says.
    ///
    /// - Parameters:
    ///   - ids: the documents whose contents are fetched. Default: nil, all.
    ///   - progress: told of the number that is done.
    /// - Throws: ``SyncError`` 400 on a push, 404 where the server has no such database, 401, 503 and 504 where it can't be
    ///   asked; as ``missingContents(ofDocumentWithID:named:)``; `CancellationError`. What has come stays.
    public func downloadMissingContents(
        ofDocumentsWithIDs ids: [String]? = nil, progress: @Sendable (Int) -> Void = { _ in }
    ) async throws -> MissingContentResult {
        var result = MissingContentResult()
        if let ids {
            for id in ids {
                // What isn't here is nobody's to fetch for.
                guard try database.document(withID: id).currentRevision != nil else { continue }
                try await download(try missingContents(ofDocumentWithID: id), &result, progress)
            }
            return result
        }
        var last: Int64 = 0
        while true {
            let awaited = try database.awaitedContents(after: last, limit: Self.listedCount)
            guard let end = awaited.last?.number else { return result }
            last = end
            var wanted: [MissingContent] = []
            for content in awaited {
                // The digest alone says where the server has it; a name is for whoever reads of it.
                guard let place = try ContentLocation.all(ofContent: content.digest, in: database).first else {
                    continue
                }
                wanted.append(
                    MissingContent(
                        documentID: place.documentID, name: place.name, byteCount: content.byteCount,
                        digest: content.digest))
            }
            try await download(wanted, &result, progress)
        }
    }

    /// Fetches these contents, and waits until they are here.
    ///
    /// - Throws: as ``downloadMissingContents(ofDocumentsWithIDs:progress:)``.
    public func download(
        _ contents: [MissingContent], progress: @Sendable (Int) -> Void = { _ in }
    ) async throws -> MissingContentResult {
        var result = MissingContentResult()
        try await download(contents, &result, progress)
        return result
    }

    private static let listedCount = 256

    private func download(
        _ contents: [MissingContent], _ result: inout MissingContentResult, _ progress: @Sendable (Int) -> Void
    ) async throws {
        let wanted = contents.filter { content in downloadByteLimit.map { content.byteCount <= $0 } ?? true }
        guard !wanted.isEmpty else { return }
        try checkBringsContents(wanted[0].subject)
        if result.downloadedCount + result.failedCount == 0 {
            guard try await downloadSource.remote.exists() else {
                throw SyncError(404, "there is no such database on the server")
            }
        }
        // More wait in the semaphore than pass it, so that it is never idle.
        let atOnceCount = 2 * downloadSource.remote.options.parallelDownloadCount
        try await withThrowingTaskGroup(of: (MissingContent, (any Error)?).self) { group in
            var rest = wanted[...]
            var runningCount = 0
            while runningCount > 0 || !rest.isEmpty {
                while runningCount < atOnceCount, let next = rest.popFirst() {
                    runningCount += 1
                    group.addTask {
                        do {
                            try await self.finish(next)
                            return (next, nil)
                        } catch {
                            return (next, error)
                        }
                    }
                }
                guard let (content, error) = try await group.next() else { break }
                runningCount -= 1
                if let error {
                    try Task.checkCancellation()
                    if Self.endsAll(error) { throw error }
                    result.failedCount += 1
                    if result.failures.count < MissingContentResult.failureLimit {
                        result.failures.append(MissingContentResult.Failure(content: content, error: error))
                    }
                } else {
                    result.downloadedCount += 1
                    result.downloadedByteCount += content.byteCount
                }
                progress(result.downloadedCount + result.failedCount)
            }
        }
    }

    /// Whether an error is about more than one content.
    private static func endsAll(_ error: any Error) -> Bool {
        switch error {
        case let error as SyncError: error.isAboutServer || [401, 495, 503, 504].contains(error.status)
        case let error as CofferError: [.noSpace, .closed, .reopenRequired, .readOnly, .busy].contains(error.code)
        default: true
        }
    }

    /// Waits until a content is here, and no longer than a server that went away is waited for.
    private func finish(_ content: MissingContent) async throws {
        let download = try download(content.digest, content.byteCount, content.subject)
        let attemptCount = downloadSource.remote.options.retry.attemptCount
        let statuses = download.statuses
        let lost: (any Error)? = await withTaskCancellationHandler {
            var failureCount = 0
            for await status in statuses {
                if case .active = status.activity, status.completedByteCount > 0 { failureCount = 0 }
                guard case .offline = status.activity, let error = status.error else { continue }
                failureCount += 1
                if failureCount >= attemptCount {
                    download.cancel()
                    return error
                }
            }
            return nil
        } onCancel: {
            download.cancel()
        }
        if let lost { throw lost }
        try await download.run()
    }
}
