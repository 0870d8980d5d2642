internal import Coffer
internal import CofferModel
internal import CofferSealing
internal import Foundation

/// Converts the attachments of a source's revisions into attachments of the new database.
struct AttachmentImport {
    /// A revision's body as it will be saved, and the contents that come with it.
    struct Revised {
        let body: DocumentBody
        var contents: [ByteKey: Blob] = [:]
        var attachmentCount = 0
        fileprivate var found: [[UInt8]: AttachmentFiles.Found] = [:]
    }

    /// An attachment as the source describes it.
    fileprivate struct Entry {
        let name: String
        let contentType: String?
        /// As the source states it.
        let digest: String?
        /// The SHA-1 of the stored bytes, if the digest is one.
        let sha1: [UInt8]?
        let length: Int?
        let generation: Int
        let isGzip: Bool
    }

    private let files: AttachmentFiles
    private let database: Database?
    /// The SHA-1 and length of each saved content, by the SHA-1 of the bytes that the source stored.
    private var saved: [[UInt8]: (sha1: [UInt8], byteCount: Int)] = [:]
    private var absent: Set<[UInt8]> = []

    private(set) var contentByteCount = 0

    var contentCount: Int { saved.count }
    var missingContentCount: Int { absent.count }

    init(files: AttachmentFiles, database: Database?) {
        self.files = files
        self.database = database
    }

    /// Reads a revision's contents, and rewrites its body to name them as the new database does.
    ///
    /// - Parameters:
    ///   - parsed: the body as the source has it.
    ///   - rows: the revision's rows in the attachment table of old stores. If there are any, the body's entries are
    ///     ignored.
    ///   - revision: the revision's id.
    ///   - tell: receives each attachment that has a problem.
    /// - Throws: `noSpace` (507), `cancelled` (499), `ioFailed` (500).
    mutating func revise(
        _ parsed: DocumentBody, _ rows: [SourceAttachment], of revision: RevisionID,
        _ tell: (_ name: String, _ problem: String) -> Void
    ) throws(CofferError) -> Revised {
        var entries: [Entry] = []
        for row in rows {
            guard let entry = Entry(row) else {
                let name = String(decoding: row.name.prefix(300), as: UTF8.self)
                tell(name, "its entry is not a valid attachment; left out")
                continue
            }
            entries.append(entry)
        }
        if rows.isEmpty {
            guard let stated = parsed.attachments else { return Revised(body: parsed) }
            for (name, value) in stated {
                guard let entry = Entry(name, value) else {
                    tell(name, "its entry is not a valid attachment; left out")
                    continue
                }
                entries.append(entry)
            }
        }
        var revisedEntries: [(String, JSONValue)] = []
        var contents: [ByteKey: Blob] = [:]
        var found: [[UInt8]: AttachmentFiles.Found] = [:]
        var names: Set<ByteKey> = []
        for entry in entries where names.insert(ByteKey(entry.name)).inserted {
            guard let json = try revise(entry, of: revision, &contents, &found, tell) else { continue }
            revisedEntries.append((entry.name, .object(json)))
        }
        var object = try JSONObject(parsed.body)
        object["_attachments"] =
            revisedEntries.isEmpty ? nil : .object(JSONObject(uniqueKeysWithValues: revisedEntries))
        return Revised(
            body: try DocumentBody(object, isForeign: true), contents: contents,
            attachmentCount: revisedEntries.count, found: found)
    }

    /// Notes that a revision was saved with its contents, so that other revisions need only name them.
    mutating func noteSaved(_ revised: Revised) {
        for (stored, content) in revised.found where saved[stored] == nil {
            saved[stored] = (content.sha1, content.byteCount)
            contentByteCount += content.byteCount
        }
    }

    private mutating func revise(
        _ entry: Entry, of revision: RevisionID, _ contents: inout [ByteKey: Blob],
        _ found: inout [[UInt8]: AttachmentFiles.Found], _ tell: (_ name: String, _ problem: String) -> Void
    ) throws(CofferError) -> JSONObject? {
        var json: JSONObject = ["stub": true]
        json["content_type"] = entry.contentType.map { .string($0) }
        if (1...revision.generation).contains(entry.generation) {
            json["revpos"] = .number(JSONNumber(Int64(entry.generation)))
        }
        if let stored = entry.sha1 {
            var content = saved[stored]
            if content == nil, !absent.contains(stored) {
                switch try files.read(stored, isGzip: entry.isGzip, length: entry.length, into: database) {
                case .read(let new):
                    content = (new.sha1, new.byteCount)
                    found[stored] = new
                    if let blob = new.content { contents[ByteKey(entry.name)] = blob }
                case .missing:
                    absent.insert(stored)
                    tell(entry.name, "its content is missing")
                case .damaged:
                    absent.insert(stored)
                    tell(entry.name, "its content is damaged, or encrypted under another key; left out")
                }
            }
            if let content {
                json["digest"] = .string(SHA1Digest.text(of: content.sha1))
                json["length"] = .number(JSONNumber(Int64(content.byteCount)))
                return json
            }
        }
        guard let digest = entry.digest, let length = entry.length else {
            tell(entry.name, "its content is missing, and so is its digest or its length; left out")
            return nil
        }
        if entry.sha1 == nil { tell(entry.name, "its digest is not a SHA-1, so its content can't be found") }
        // This is the digest of the compressed bytes, and not of the content, which a server may deliver later.
        json["digest"] = .string(entry.isGzip ? "gzip-" + digest : digest)
        json["length"] = .number(JSONNumber(Int64(length)))
        return json
    }
}

extension AttachmentImport.Entry {
    private static let sha1ByteCount = 20

    /// An entry of a body; nil if it is not a valid attachment.
    fileprivate init?(_ name: String, _ value: JSONValue) {
        guard let object = value.objectValue else { return nil }
        let stated = object["digest"]?.stringValue
        guard (stated?.utf8.count ?? 0) <= 200 else { return nil }
        self.name = name
        digest = stated
        contentType = object["content_type"]?.stringValue
        length = (object["length"] as Int?).flatMap { BlobReference.lengths.contains($0) ? $0 : nil }
        generation = object["revpos"] ?? 0
        isGzip = object["encoding"]?.stringValue == "gzip"
        sha1 = stated.flatMap { text in
            guard text.hasPrefix("sha1-"), let data = Data(base64Encoded: String(text.dropFirst(5))),
                data.count == Self.sha1ByteCount
            else { return nil }
            return Array(data)
        }
    }

    /// A row in the attachment table of old stores; nil if it is not a valid attachment.
    fileprivate init?(_ row: SourceAttachment) {
        guard let name = String(validating: row.name, as: UTF8.self), row.key.count == Self.sha1ByteCount else {
            return nil
        }
        self.name = name
        digest = SHA1Digest.text(of: row.key)
        sha1 = row.key
        contentType = row.contentType.flatMap { String(validating: $0, as: UTF8.self) }
        length = row.length.flatMap { Int(exactly: $0) }.flatMap { BlobReference.lengths.contains($0) ? $0 : nil }
        generation = Int(clamping: row.generation)
        isGzip = row.isGzip
    }
}
