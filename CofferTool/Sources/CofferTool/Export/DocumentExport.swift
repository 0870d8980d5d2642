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
