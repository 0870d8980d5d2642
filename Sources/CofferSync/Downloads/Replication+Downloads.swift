internal import CofferSealing
internal import Foundation
public import Coffer
internal import CofferModel

extension Replication {
    // MARK: Contents that come later

    /// Fetches the content of an attachment that a pull left out, from this pull's server. The pull need not be under way, nor
    /// have been started.
    ///
    /// Where the content is here, nothing is asked for. Where others fetch it into the same database at this moment, with
    /// whatever pull, it travels once. Its bytes are encrypted as they arrive, and count only when all are here: the digest
    /// is checked then, and the content installed durably, for every revision that has it. It is tried again for as long as
    /// the server is not there, after pauses as ``RetryPolicy`` says, and goes on where it stopped if the server has sent an
    /// ETag and takes ranges; else it starts over, as it does after a change of the key, and in another process.
    ///
    /// Attachments that were got before become available too. The JSON of revisions that were got before may still have a
    /// digest of the server's, where the revision as it is in the database has the SHA-1 by then.
    ///
    /// - Parameter attachment: of a saved revision of ``database``.
    /// - Returns: the download, which has begun.
    /// - Throws: ``SyncError`` 400 on a push, and for an attachment of another database or of a draft; 403 where the database
    ///   was opened for reading only; 502 for a digest of a kind that can't be checked. `closed` and `damaged` (500).
    @discardableResult
    public func download(_ attachment: Attachment) throws -> AttachmentDownload {
        let subject = "attachment \(attachment.name) of document \(attachment.document.documentID)"
        guard let digest = database.digest(of: attachment) else {
            throw SyncError(400, of: subject, "it is not saved in the replication's database")
        }
        return try download(digest, attachment.length, subject)
    }

    /// Fetches the content of a blob that a pull left out: see the form with an attachment.
    @discardableResult
    public func download(_ blob: Blob) throws -> AttachmentDownload {
        let subject = "blob \(blob.digest ?? "without a digest")"
        return try download(try digest(of: blob, subject), blob.length ?? 0, subject)
    }

    /// Removes the content of an attachment from the database here, when the server of this pull has it: it is as if it had
    /// never been downloaded, and ``download(_:)-(Attachment)`` fetches it again.
    ///
    /// The server is asked for the content of every current or conflicting revision that has it, and whether it knows the
    /// others that do: none is left without. Its digest is compared with the SHA-1 or MD5 of the content; where the server's
    /// is of packed bytes, the content is fetched to be compared. Only then its row is changed, durably, and its file removed.
    /// Where there is no content here, nothing happens. Its space on the disk is free when this returns, unless somebody is
    /// just reading it.
    ///
    /// - Parameter attachment: of a saved revision of ``database``.
    /// - Throws: ``SyncError`` 412 where the server does not have the content, or another one; 409 where a revision has it
    ///   that the server does not know; 400 and 403 as ``download(_:)-(Attachment)``, 503 and 504 where the server is not there. `conflict`
    ///   (409) where a revision that has it was saved meanwhile; `busy` (503), `closed` (500). The content stays then.
    public func purge(_ attachment: Attachment) async throws {
        let subject = "attachment \(attachment.name) of document \(attachment.document.documentID)"
        guard let digest = database.digest(of: attachment) else {
            throw SyncError(400, of: subject, "it is not saved in the replication's database")
        }
        try await purge(digest, subject) { try attachment.chunks }
    }

    /// Removes the content of a blob from the database here: see the form with an attachment.
    public func purge(_ blob: Blob) async throws {
        let subject = "blob \(blob.digest ?? "without a digest")"
        try await purge(try digest(of: blob, subject), subject) { try blob.chunks }
    }

    private func digest(of blob: Blob, _ subject: String) throws -> String {
        guard let digest = database.digest(of: blob) else {
            throw SyncError(400, of: subject, "it is not saved in the replication's database")
        }
        guard digest.hasPrefix("sha1-") else {
            throw SyncError(502, of: subject, "its digest is of a kind that no blob has")
        }
        return digest
    }

    /// - Throws: ``SyncError`` 400 on a push, and 403 where the database can't be changed.
    func checkBringsContents(_ subject: String) throws {
        guard direction == .pull else { throw SyncError(400, of: subject, "only a pull brings contents") }
        guard !database.isReadOnly else {
            throw SyncError(403, of: subject, "the database was opened for reading only")
        }
    }

    func download(_ digest: String, _ length: Int, _ subject: String) throws -> AttachmentDownload {
        try checkBringsContents(subject)
        // Says whether the database is there at all.
        _ = try database.uses(ofContent: digest, limit: 1)
        if database.hasContent(withDigest: digest) { return AttachmentDownload(finished: length) }
        guard digest.hasPrefix("md5-") || digest.hasPrefix("sha1-") else {
            throw SyncError(502, of: subject, "its digest is of a kind that can't be checked")
        }
        return SharedDownload.request(digest, length, in: database, from: downloadSource)
    }

    private func purge(
        _ digest: String, _ subject: String, _ chunks: @escaping @Sendable () throws -> AttachmentChunks?
    ) async throws {
        try checkBringsContents(subject)
        let uses = try database.uses(ofContent: digest)
        guard database.hasContent(withDigest: digest) else { return }
        let check = RemoteContentCheck(downloadSource.remote, digest: digest, subject: subject, chunks)
        try await check.run(uses, in: database)
        try await database.removeContent(digest, usedBy: uses)
    }
}

/// Makes sure that a server has a content, before it is removed here.
struct RemoteContentCheck {
    private let remote: RemoteDatabase
    private let digest: String
    private let subject: String
    private let chunks: @Sendable () throws -> AttachmentChunks?

    init(
        _ remote: RemoteDatabase, digest: String, subject: String,
        _ chunks: @escaping @Sendable () throws -> AttachmentChunks?
    ) {
        self.remote = remote
        self.digest = digest
        self.subject = subject
        self.chunks = chunks
    }

    /// - Parameter uses: all revisions here that have it.
    /// - Throws: ``SyncError`` 409 where the server doesn't know one of them, 412 where it doesn't have the content of one
    ///   that nothing follows; `damaged` (500) where the content here can't be read.
    func run(_ uses: [ContentUse], in database: Database) async throws {
        var question = RevisionsQuestion()
        for some in Dictionary(grouping: uses, by: { ByteKey($0.documentID) }).values {
            question.documents.append((some[0].documentID, some.map(\.revisionID)))
        }
        let differences = try await remote.difference(question)
        guard differences.allSatisfy(\.1.missing.isEmpty) else {
            throw SyncError(409, of: subject, "a revision has it that the server does not know")
        }
        // The last that were replaced, where nothing else has it.
        let leaves = uses.filter(\.isLeaf)
        var isFound = false
        for use in leaves.isEmpty ? uses : leaves {
            guard let revision = try database.document(withID: use.documentID).revision(withID: use.revisionID) else {
                throw SyncError(409, of: subject, "a revision that has it was removed just then")
            }
            for content in try OutgoingRevision(revision).contents where content.digest == digest {
                let location = ContentLocation(
                    documentID: use.documentID, revision: use.revisionID, name: content.name, isCertain: true)
                try await check(location)
                isFound = true
            }
        }
        guard isFound else { throw SyncError(409, of: subject, "no revision uses it any more") }
    }

    private func check(_ location: ContentLocation) async throws {
        let target = RemoteDatabase.target(of: location)
        do {
            let tag = try await remote.ask(
                "HEAD", target, subject: location.subject, fields: ["Accept-Encoding": "identity"]
            ) { response in
                response.fields["ETag"]?.filter { $0 != "\"" }
            }
            if tag == digest { return }
            if let tag, tag == (try await md5()) { return }
            let found = try await remote.ask(
                "GET", target, subject: location.subject, fields: ["Accept-Encoding": "identity"]
            ) { response in
                let isPacked = response.fields["Content-Encoding"]?.lowercased() == "gzip"
                let body = isPacked ? response.body.stream.gunzipped() : response.body.stream
                var digest = try StreamingDigest(.sha1)
                while let piece = try await body.next() { digest.update(piece) }
                return SHA1Digest.text(of: digest.finalize())
            }
            guard found == digest else { throw SyncError(412, of: location.subject, "the server has another content") }
        } catch let error as SyncError where [404, 410].contains(error.status) {
            throw SyncError(412, of: location.subject, "the server does not have the content")
        }
    }

    /// The content's MD5 in base64, as CouchDB's ETags have it; nil if this system's OpenSSL has none, so that nothing
    /// is the same.
    private func md5() async throws -> String? {
        guard let chunks = try chunks() else { throw SyncError(409, of: subject, "its content was removed just then") }
        guard var digest = try? StreamingDigest(.md5) else { return nil }
        for try await chunk in chunks { digest.update(Array(chunk)) }
        return Data(digest.finalize()).base64EncodedString()
    }
}
