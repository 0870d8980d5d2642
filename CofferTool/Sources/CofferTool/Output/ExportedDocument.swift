internal import Foundation

/// A document as it leaves a store: one line of JSON whose first member is `_id`.
struct ExportedDocument {
    let line: String

    /// `json` is the document's canonical body: an object on one line, without an `_id`.
    init(id: String, json: Data) {
        let members = String(decoding: json.dropFirst().dropLast(), as: UTF8.self)
        line = "{\"_id\":" + JSONLine.quoted(id) + (members.isEmpty ? "" : ",") + members + "}"
    }
}
