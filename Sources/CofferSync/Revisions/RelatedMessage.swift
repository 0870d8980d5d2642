internal import CofferModel
package import Coffer

/// A revision with contents that follow it: `multipart/related`, as CouchDB takes and gives it.
package struct RelatedMessage: Sendable {
    package let body: MultipartBody

    package var contentType: String { "multipart/related; boundary=\"\(body.boundary)\"" }

    /// - Parameters:
    ///   - history: what `_revisions` says; nil leaves it out.
    ///   - form: how each content is notified of. Those that are not here don't follow.
    /// - Returns: nil if no content follows.
    package init?(
        _ revision: OutgoingRevision, history: [RevisionID]?,
        _ form: (OutgoingRevision.Content) -> OutgoingRevision.Form
    ) throws {
        var names: Set<ByteKey> = []
        let json = revision.json(history: history) { content in
            let form = form(content)
            guard case .follows = form else { return form }
            guard revision.isAvailable(content) else { return .stub }
            names.insert(ByteKey(content.name))
            return .follows
        }
        guard !names.isEmpty else { return nil }
        let text = try JSONValue.object(json).canonicalJSON()
        // CouchDB takes the parts for the contents in the order in which the JSON names them.
        let order = try JSONValue(json: text)["_attachments"]?.objectValue?.keys ?? []
        var parts = [MultipartBody.Part(["Content-Type": "application/json"], text)]
        for name in order where names.contains(ByteKey(name)) {
            guard let content = revision.contents.first(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
                continue
            }
            var fields: HTTPFields = [
                "Content-Type": HTTPFields.safe(content.contentType ?? "application/octet-stream"),
                "Content-Length": String(content.length),
            ]
            // Without a name a part is taken for the next in order.
            fields["Content-Disposition"] = MediaType.disposition(fileName: name)
            parts.append(
                MultipartBody.Part(fields, length: content.length) {
                    guard let stream = try revision.open(content) else {
                        throw SyncError(404, of: "attachment \(name)", "its content is not here")
                    }
                    return stream
                })
        }
        body = MultipartBody(parts)
    }
}

/// The contents that follow a revision in the same message.
struct RelatedContents {
    /// In the order in which the JSON names them, which is that of the parts where these say no name.
    private let expected: [IncomingRevision.Content]

    init(_ json: JSONObject) {
        var expected: [IncomingRevision.Content] = []
        for (name, entry) in json["_attachments"]?.objectValue ?? [:] where entry["follows"] == true {
            expected.append(
                IncomingRevision.Content(
                    name: name, contentType: entry["content_type"]?.stringValue, digest: entry["digest"]?.stringValue,
                    length: entry["length"], generation: nil, follows: true,
                    isPacked: entry["encoding"]?.stringValue == "gzip", blob: nil))
        }
        self.expected = expected
    }

    /// Writes the contents into `database`, checked.
    ///
    /// - Parameter limit: more bytes than that are a 413.
    /// - Returns: the contents by the names of their attachments. They stay only if a revision with them is saved.
    /// - Throws: ``SyncError`` 502 where a part is missing, comes twice or is not what the JSON says.
    func receive(
        from reader: MultipartReader, into database: Database, upTo limit: Int?, subject: String
    ) async throws -> [ByteKey: Blob] {
        var waiting = expected
        var contents: [ByteKey: Blob] = [:]
        while let part = try await reader.nextPart() {
            let name = part.fields["Content-Disposition"].flatMap(MediaType.fileName)
            // CouchDB before 1.5 says no names, and says them in no particular order since.
            guard
                let place = name == nil
                    ? waiting.indices.first
                    : waiting.firstIndex(where: { $0.name.utf8.elementsEqual((name ?? "").utf8) })
            else { throw SyncError.garbage("a part that is not an attachment of the document", of: subject) }
            let content = waiting.remove(at: place)
            if let limit, (content.length ?? 0) > limit {
                throw SyncError(413, of: subject, "an attachment is too large")
            }
            let isPacked = content.isPacked || part.fields["Content-Encoding"]?.lowercased() == "gzip"
            let download = ContentDownload(
                subject: "attachment \(content.name) of \(subject)", digest: content.digest,
                length: content.length ?? (isPacked ? nil : part.fields["Content-Length"].flatMap(Int.init)) ?? nil,
                isPacked: isPacked)
            contents[ByteKey(content.name)] = try await download.receive(part.body, into: database, upTo: limit)
        }
        guard waiting.isEmpty else { throw SyncError.garbage("an attachment does not follow", of: subject) }
        return contents
    }
}

extension HTTPFields {
    /// A value without what would end the field.
    package static func safe(_ value: String) -> String {
        String(String.UnicodeScalarView(value.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }))
    }
}
