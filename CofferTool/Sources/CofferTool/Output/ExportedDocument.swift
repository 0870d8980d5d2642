internal import Foundation

/// A document as it leaves a store: one line of JSON whose first member is `_id`.
struct ExportedDocument {
    let line: String

    /// `json` is the document's canonical body: an object on one line, without an `_id`.
    init(id: String, json: Data) {
        let members = String(decoding: json.dropFirst().dropLast(), as: UTF8.self)
        line = "{\"_id\":" + JSONLine.quoted(id) + (members.isEmpty ? "" : ",") + members + "}"
    }

    /// `json` with attachments as a document's first revision has them, which is what an import makes of it: a `revpos`
    /// of 1.
    static func withFirstRevisionsAttachments(_ json: Data) throws(JSONCursor.Obstacle) -> Data {
        let bytes = json.span
        var generations: [Range<Int>] = []
        for attachments in try values(of: "_attachments", in: .init(range: 0..<bytes.count, line: 1), bytes) {
            for stub in try values(of: nil, in: attachments, bytes) {
                generations += try values(of: "revpos", in: stub, bytes).map(\.range)
            }
        }
        var result = Data(capacity: json.count)
        var end = 0
        for range in generations {
            result += json[end..<range.lowerBound] + Data("1".utf8)
            end = range.upperBound
        }
        return result + json[end...]
    }

    /// The values that an object has under a key, or under any.
    private static func values(
        of key: String?, in object: JSONCursor.Extent, _ bytes: Span<UInt8>
    ) throws(JSONCursor.Obstacle) -> [JSONCursor.Extent] {
        var found: [JSONCursor.Extent] = []
        var cursor = JSONCursor(at: object)
        try cursor.skipObject(bytes) { name, value in
            if key.map({ JSONString(name).isEqual(to: $0, bytes) }) ?? true { found.append(value) }
        }
        return found
    }
}
