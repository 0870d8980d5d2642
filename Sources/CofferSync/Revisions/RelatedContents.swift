internal import Coffer
internal import CofferModel

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
