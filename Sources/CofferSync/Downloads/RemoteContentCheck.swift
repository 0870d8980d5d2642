internal import CofferModel
internal import CofferSealing
internal import Foundation
internal import Coffer

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
