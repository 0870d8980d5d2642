internal import Coffer
internal import Foundation
@_spi(Tool) internal import CofferMaintenance

/// Writes all documents of a database, one on each line, and the contents of their attachments and blobs.
struct DocumentExport {
    /// What was written, and what was not.
    struct Summary {
        var documentCount = 0
        var contentCount = 0
        var contentByteCount = 0
        /// Attachments and blobs whose contents nobody asked for.
        var omittedCount = 0
        /// Contents that were never downloaded.
        var missingCount = 0
        /// Documents with more than one winning revision for somebody.
        var conflictCount = 0
    }

    let source: any ExportSource
    /// Where contents go; nil when they are left out.
    let folder: ContentFolder?

    private(set) var summary = Summary()

    init(_ source: any ExportSource, contentsTo folder: ContentFolder?) {
        self.source = source
        self.folder = folder
    }

    mutating func run(to file: inout ExportFile) throws {
        let total = try source.documentCount
        var progress = ProgressLine()
        defer { progress.clear() }
        try source.forEachDocument { document in
            try Interruption.check()
            for content in document.contents { try export(content, of: document.id) }
            let exported = ExportedDocument(
                id: document.id,
                json: document.hasAttachments
                    ? try ExportedDocument.withFirstRevisionsAttachments(document.json) : document.json)
            try file.write(line: exported.line)
            summary.documentCount += 1
            progress.update(summary.documentCount, of: total, "\(summary.documentCount) documents")
        }
        summary.conflictCount = try source.conflictCount()
        try folder?.synchronize()
    }

    private mutating func export(_ content: ExportedContent, of id: String) throws {
        guard let folder else {
            summary.omittedCount += 1
            return
        }
        guard let name = ContentFolder.name(ofContent: content.digest) else {
            summary.missingCount += 1
            return
        }
        do {
            var isHere = true
            let byteCount = try folder.write(named: name) { write in
                isHere = try source.read(content, write)
                return isHere
            }
            guard isHere else {
                summary.missingCount += 1
                return
            }
            guard let byteCount else { return }
            summary.contentCount += 1
            summary.contentByteCount += byteCount
        } catch let error as CofferError {
            throw Failure(error).about(content.subject(of: id))
        }
    }
}

/// Where the documents of an export come from.
protocol ExportSource {
    var documentCount: Int { get throws }

    /// Hands out the current documents in the order of their ids.
    func forEachDocument(_ body: (ExportedRevision) throws -> Void) throws

    /// Hands out a content of a document in pieces.
    ///
    /// - Returns: false where it was never downloaded: then nothing was handed out.
    func read(_ content: ExportedContent, _ body: (Data) throws -> Void) throws -> Bool

    /// How many documents have more than one winning revision for somebody; after they were handed out.
    func conflictCount() throws -> Int
}

/// The current revision of a document.
struct ExportedRevision {
    let id: String
    let json: Data
    var hasAttachments: Bool
    /// What belongs to it beside: contents of attachments and of blobs in it.
    var contents: [ExportedContent]
}

/// The content of an attachment or blob.
struct ExportedContent {
    /// The attachment's name; nil for a blob.
    let name: String?
    let digest: String
    let byteCount: Int

    func subject(of id: String) -> String {
        let content = name.map { "attachment \(Console.printable($0))" } ?? "blob \(digest)"
        return "\(content) of document \(Console.printable(id))"
    }
}

/// A store that is open here for reading only: nobody writes then, and all is of one moment.
final class OpenStoreExport: ExportSource {
    private let database: Database
    /// The contents of the document whose turn it is.
    private var chunks: [String: () throws -> AttachmentChunks?] = [:]

    init(_ database: Database) { self.database = database }

    var documentCount: Int { get throws { try database.documentCount } }

    func forEachDocument(_ body: (ExportedRevision) throws -> Void) throws {
        try database.forEachDocument { document in
            let json = unsafe document.json.withUnsafeBytes { unsafe Data($0) }
            var exported = ExportedRevision(id: document.documentID, json: json, hasAttachments: false, contents: [])
            chunks = [:]
            if document.mayHaveContents {
                let revision = database.revision(of: document)
                let attachments = try revision.attachments
                exported.hasAttachments = !attachments.isEmpty
                exported.contents =
                    attachments.map(content(of:)) + (try blobs(in: revision, json).compactMap(content(of:)))
            }
            try body(exported)
        }
    }

    private func blobs(in revision: SavedRevision, _ json: Data) throws -> [Blob] {
        // Reading the values of a large document costs more than looking whether there may be a blob.
        guard json.range(of: Data(#""@type":"blob""#.utf8)) != nil else { return [] }
        return try revision.properties.values.flatMap(\.allBlobs)
    }

    private func content(of attachment: Attachment) -> ExportedContent {
        chunks[attachment.digest] = { try attachment.chunks }
        return ExportedContent(name: attachment.name, digest: attachment.digest, byteCount: attachment.length)
    }

    private func content(of blob: Blob) -> ExportedContent? {
        guard let digest = blob.digest else { return nil }
        chunks[digest] = { try blob.chunks }
        return ExportedContent(name: nil, digest: digest, byteCount: blob.length ?? 0)
    }

    func read(_ content: ExportedContent, _ body: (Data) throws -> Void) throws -> Bool {
        guard let chunks = try chunks[content.digest]?() else { return false }
        try chunks.forEach(body)
        return true
    }

    func conflictCount() throws -> Int {
        var options = AllDocumentsOptions()
        options.onlyConflicts = true
        options.loadsProperties = false
        var count = 0
        try database.forEachDocument(options) { _ in
            try Interruption.check()
            count += 1
        }
        return count
    }
}

/// A store that another process has open, and may write to meanwhile: each document is as it was when its turn came.
final class StoreInUseExport: ExportSource {
    private let database: DatabaseInUse
    private var conflicts = 0

    init(_ database: DatabaseInUse) { self.database = database }

    var documentCount: Int { get throws { try database.count().documentCount } }

    func forEachDocument(_ body: (ExportedRevision) throws -> Void) throws {
        try database.forEachDocument { document in
            if document.isInConflict { conflicts += 1 }
            let contents = document.contents.map {
                ExportedContent(name: $0.name, digest: $0.digest, byteCount: $0.byteCount)
            }
            try body(
                ExportedRevision(
                    id: document.id, json: document.json, hasAttachments: document.hasAttachments, contents: contents))
        }
    }

    func read(_ content: ExportedContent, _ body: (Data) throws -> Void) throws -> Bool {
        do {
            return try database.forEachChunk(ofContent: content.digest, byteCount: content.byteCount, body)
        } catch let error as CofferError where error.code == .attachmentNotFound {
            // The document was changed since, and the store compacted.
            return false
        }
    }

    func conflictCount() -> Int { conflicts }
}

extension JSONValue {
    /// All blobs in it, at any depth.
    fileprivate var allBlobs: [Blob] {
        if let blobValue { return [blobValue] }
        return arrayValue?.flatMap(\.allBlobs) ?? objectValue?.values.flatMap(\.allBlobs) ?? []
    }
}
