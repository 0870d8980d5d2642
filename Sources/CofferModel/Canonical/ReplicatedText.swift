/// A revision as databases pass it on to one another, as CouchDB has it: one object with the members of the body, and beside
/// them `_id`, `_rev`, `_deleted` and `_revisions`.
///
/// It is made of the body's bytes, which costs a small part of taking them apart and putting them together again.
package struct ReplicatedText {
    /// The JSON in UTF-8.
    package private(set) var bytes: [UInt8] = []

    /// - Parameters:
    ///   - body: an object in JSON, without any of these members.
    ///   - id: the document's id.
    ///   - history: the ids of the revision and its ancestors, the newest first; nil leaves `_revisions` out.
    package init(
        _ body: Span<UInt8>, documentID id: String, _ revision: RevisionID, isDeletion: Bool, history: [RevisionID]?
    ) {
        bytes.reserveCapacity(body.count + 160 + id.utf8.count + 36 * (history?.count ?? 0))
        bytes.append(ascii: "{\"_id\":")
        append(id)
        bytes.append(ascii: ",\"_rev\":")
        append(revision)
        if isDeletion { bytes.append(ascii: ",\"_deleted\":true") }
        if let history { append(history) }
        // Its own members follow, or the end.
        if body.count > 2 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(copying: body.extracting(droppingFirst: 1))
    }

    private mutating func append(_ text: String) { text.withBytes { bytes.append(quoting: $0) } }

    private mutating func append(_ revision: RevisionID) {
        // One that another database made may have anything behind the hyphen.
        guard case .digest = revision.suffix else { return append(revision.description) }
        bytes.append(UInt8(ascii: "\""))
        revision.appendText(to: &bytes)
        bytes.append(UInt8(ascii: "\""))
    }

    /// Appends `_revisions`, which ends where a generation is left out.
    private mutating func append(_ history: [RevisionID]) {
        let start = history.first?.generation ?? 0
        bytes.append(ascii: ",\"_revisions\":{\"ids\":[")
        for (distance, id) in history.enumerated() {
            guard id.generation == start - distance else { break }
            if distance > 0 { bytes.append(UInt8(ascii: ",")) }
            append(id.suffix.text)
        }
        bytes.append(ascii: "],\"start\":")
        bytes.append(number: JSONNumber(start))
        bytes.append(UInt8(ascii: "}"))
    }
}
