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

extension HTTPFields {
    /// A value without what would end the field.
    package static func safe(_ value: String) -> String {
        String(String.UnicodeScalarView(value.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }))
    }
}
