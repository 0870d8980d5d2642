internal import Coffer
internal import Foundation

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
        /// Documents with more than one revision that counts for somebody.
        var conflictCount = 0
    }

    let database: Database
    /// Where contents go; nil when they are left out.
    let folder: ContentFolder?

    private(set) var summary = Summary()

    init(_ database: Database, contentsTo folder: ContentFolder?) {
        self.database = database
        self.folder = folder
    }

    /// The database must be open for reading only: then nobody writes, and all of this is of one moment.
    mutating func run(to file: inout ExportFile) throws {
        let total = try database.documentCount
        var progress = ProgressLine()
        defer { progress.clear() }
        var rows = database.allDocuments().makeIterator()
        while let revision = try rows.next() {
            try Interruption.check()
            let json = try revision.json
            let attachments = try revision.attachments
            try exportContents(of: revision, attachments, json)
            let document = ExportedDocument(
                id: revision.document.documentID,
                json: attachments.isEmpty ? json : try ExportedDocument.withFirstRevisionsAttachments(json))
            try file.write(line: document.line)
            summary.documentCount += 1
            progress.update(summary.documentCount, of: total, "\(summary.documentCount) documents")
        }
        try countConflicts()
        try folder?.synchronize()
    }

    private mutating func exportContents(
        of revision: SavedRevision, _ attachments: [Attachment], _ json: Data
    ) throws {
        let id = Console.printable(revision.document.documentID)
        for attachment in attachments {
            let name = "attachment \(Console.printable(attachment.name)) of document \(id)"
            try export(attachment.digest, name) { () throws(CofferError) in try attachment.chunks }
        }
        // Reading the values of a large document costs more than looking whether there may be a blob.
        guard json.range(of: Data(#""@type":"blob""#.utf8)) != nil else { return }
        for blob in try revision.properties.values.flatMap(\.allBlobs) {
            guard let digest = blob.digest else { continue }
            try export(digest, "blob \(digest) of document \(id)") { try blob.chunks }
        }
    }

    private mutating func export(
        _ digest: String, _ subject: String, _ chunks: () throws -> AttachmentChunks?
    ) throws {
        guard let folder else {
            summary.omittedCount += 1
            return
        }
        guard let name = ContentFolder.name(ofContent: digest), let chunks = try chunks() else {
            summary.missingCount += 1
            return
        }
        do {
            guard let byteCount = try folder.write(chunks, named: name) else { return }
            summary.contentCount += 1
            summary.contentByteCount += byteCount
        } catch let error as CofferError {
            throw Failure(error).about(subject)
        }
    }

    private mutating func countConflicts() throws {
        var options = FeedOptions()
        options.includesAllLeaves = true
        try database.changes(since: 0, options: options).forEach { change in
            try Interruption.check()
            guard !change.isDeletion, change.leafRevisionIDs.count > 1 else { return }
            if try change.document.conflictingRevisions.count > 1 { summary.conflictCount += 1 }
        }
    }
}

extension JSONValue {
    /// All blobs in it, at any depth.
    fileprivate var allBlobs: [Blob] {
        if let blobValue { return [blobValue] }
        return arrayValue?.flatMap(\.allBlobs) ?? objectValue?.values.flatMap(\.allBlobs) ?? []
    }
}
