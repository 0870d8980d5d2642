internal import Coffer
internal import CofferModel
internal import CofferSealing
internal import Foundation

/// One import: reads a source from beginning to end and saves what it finds, or only looks whether it could be saved.
///
/// Revisions go in the order of their sequences, so that the new database tells of changes in the same order, each by the way that
/// a replication's go.
final class Importer {
    private let source: Source
    /// Nil where nothing is written.
    private let database: Database?
    private let monitor: ImportMonitor
    private let tree: SourceTree
    private var attachments: AttachmentImport
    private var report: ImportReport

    /// Revisions with a body that are not in the new database: their children get their ancestors' ids from further back.
    private var lost: Set<Int64> = []
    /// Revisions that were saved before their turn, since a child with a lower sequence needs them.
    private var early: Set<Int64> = []

    /// Revisions of one transaction.
    private static let batchCount = 1_000
    /// What is kept of a tree while its depth is not known to be enough.
    private static let unlimitedDepth = 1 << 30
    private static let usualDepth = 20

    init(
        _ source: Source, into database: Database?, _ options: CouchbaseLiteImportOptions, _ monitor: ImportMonitor
    ) throws(CofferError) {
        self.source = source
        self.database = database
        self.monitor = monitor
        source.database.ask { monitor.goesOn }
        tree = try SourceTree(source.database)
        attachments = AttachmentImport(files: source.attachments, database: database)
        report = ImportReport(problemLimit: options.problemLimit)
        report.values.schemaVersion = source.database.version
        report.values.isSourceEncrypted = source.isEncrypted
    }

    /// - Throws: `damaged` (500), `busy` (503), `cancelled` (499), `noSpace` (507).
    func run() throws -> CouchbaseLiteImportReport {
        let totals = try source.database.totals()
        monitor.update { $0.totalRevisionCount = totals.revisionCount }
        let depth = try takeSettings()
        // Trees are cut once they are whole: what is a leaf is not known before.
        let isDeep = totals.generation > depth
        try database?.setMaxRevTreeDepth(isDeep ? Self.unlimitedDepth : depth)
        try takeRevisions()
        try takeLocalDocuments()
        try takeExpirations()
        if isDeep { try database?.setMaxRevTreeDepth(depth) }
        report.values.skippedViewCount = try source.database.viewCount()
        report.values.contentCount = attachments.contentCount
        report.values.contentByteCount = attachments.contentByteCount
        report.values.missingContentCount = attachments.missingContentCount
        try monitor.checkCancelled()
        try source.checkUnchanged()
        return report.finished()
    }

    // MARK: Revisions

    private func takeRevisions() throws {
        var isOver = false
        while !isOver {
            try inTransaction {
                for _ in 0..<Self.batchCount {
                    try monitor.checkCancelled()
                    guard let revision = try source.database.nextRevision() else {
                        isOver = true
                        return
                    }
                    try take(revision)
                    monitor.update { $0.completedRevisionCount += 1 }
                }
            }
        }
    }

    private func inTransaction(_ body: () throws -> Void) throws {
        guard let database else { return try body() }
        try database.inTransaction(body)
    }

    /// Takes a revision, and before it those of its ancestors that have their turn only later.
    private func take(_ revision: SourceRevision) throws(CofferError) {
        guard early.remove(revision.sequence) == nil else { return }
        var waiting: [SourceRevision] = []
        var (child, parent) = (revision, revision.parent)
        while let sequence = parent, sequence > revision.sequence, !early.contains(sequence),
            let ancestor = try source.database.revision(sequence), follows(child, ancestor.document, ancestor.id) != nil
        {
            waiting.append(ancestor)
            (child, parent) = (ancestor, ancestor.parent)
        }
        for ancestor in waiting.reversed() {
            early.insert(ancestor.sequence)
            try save(ancestor)
        }
        try save(revision)
    }

    /// The id of a parent, if it can be this revision's: of the same document, and one generation before.
    ///
    /// Along such links generations go down, so that nothing follows itself.
    private func follows(_ child: SourceRevision, _ document: Int64, _ id: [UInt8]) -> RevisionID? {
        guard document == child.document, let childID = RevisionID(utf8: child.id), let id = RevisionID(utf8: id),
            id.generation == childID.generation - 1
        else { return nil }
        return id
    }

    private func save(_ revision: SourceRevision) throws(CofferError) {
        if tree.isLeftOver(revision) {
            report.values.skippedRevisionCount += 1
            lost.insert(revision.sequence)
            return
        }
        let isLeaf = tree.isLeaf(revision.sequence)
        // The body of an ancestor that was compacted away. Its id comes with what follows it.
        if revision.json == nil && !isLeaf { return }
        let documentID = try source.database.documentID(revision.document)
        let place = ImportReport.Place(document: documentID, revision: revision.id)
        do throws(CofferError) {
            try save(revision, documentID, isLeaf: isLeaf, place)
        } catch {
            guard error.isOfItsContent else { throw error }
            report.add(error.detail ?? "\(error.code)", place)
            lost.insert(revision.sequence)
        }
    }

    private func save(
        _ revision: SourceRevision, _ documentID: [UInt8]?, isLeaf: Bool, _ place: ImportReport.Place
    ) throws(CofferError) {
        guard let documentID else { throw CofferError(.invalidArgument, "there is no document that it is of") }
        guard let id = String(validating: documentID, as: UTF8.self) else {
            throw CofferError(.invalidDocumentID, "the document's id is not UTF-8")
        }
        guard try !DocumentID(id).isLocal else {
            throw CofferError(.invalidDocumentID, "a document with the id of a local one")
        }
        guard let revisionID = RevisionID(utf8: revision.id) else {
            throw CofferError(.invalidArgument, "its revision id is none that Coffer can keep")
        }
        guard let json = revision.json ?? (revision.isDeletion ? Array("{}".utf8) : nil) else {
            throw CofferError(.invalidJSON, "its body is not there")
        }
        let history = try history(of: revision, revisionID, place)
        let parsed = try DocumentBody(json: json, isForeign: true)
        let revised = try attachments.revise(
            parsed, try source.database.attachments(of: revision.sequence), of: revisionID
        ) { report.add($1, place, attachment: $0) }
        if let database {
            let result = try database.putExistingRevision(
                revised.body, withID: id, history: history, isDeletion: revision.isDeletion,
                attachments: revised.contents)
            guard !result.wasKnown else { throw CofferError(.invalidArgument, "it is there twice") }
        }
        attachments.noteSaved(revised)
        report.noteSaved(
            revision.document, isLeaf: isLeaf, isDeletion: revision.isDeletion,
            attachmentCount: revised.attachmentCount)
    }

    /// The id of a revision and those of its ancestors, up to the nearest that was saved.
    private func history(
        of revision: SourceRevision, _ id: RevisionID, _ place: ImportReport.Place
    ) throws(CofferError) -> [RevisionID] {
        var ids = [id]
        var parent = revision.parent
        while let sequence = parent, ids.count < RevisionHistory.limit {
            // Where it was pruned, nothing is known of it.
            guard let ancestor = try source.database.ancestor(sequence) else {
                report.add("the revision that it follows is not there", place)
                break
            }
            guard ancestor.document == revision.document, let ancestorID = RevisionID(utf8: ancestor.id),
                let child = ids.last, ancestorID.generation == child.generation - 1
            else {
                report.add("the revision that it follows is none that it can follow", place)
                break
            }
            ids.append(ancestorID)
            if ancestor.hasBody && !lost.contains(sequence) { break }
            parent = ancestor.parent
        }
        return ids
    }

    // MARK: The rest

    /// Reads the settings that count.
    ///
    /// - Returns: the depth of trees.
    private func takeSettings() throws(CofferError) -> Int {
        var depth = Self.usualDepth
        var checkpointCount = 0
        try source.database.forEachSetting { key, value in
            if key == "max_revs", let number = Int(value), (1...1_000_000).contains(number) { depth = number }
            if key.hasPrefix("checkpoint/") { checkpointCount += 1 }
        }
        report.values.skippedCheckpointCount = checkpointCount
        // A server may have what is older than the depth lets stay.
        if checkpointCount > 0 { try database?.notePeer() }
        return depth
    }

    private func takeLocalDocuments() throws {
        try inTransaction {
            try source.database.forEachLocalDocument { (id, json) throws(CofferError) in
                try monitor.checkCancelled()
                let place = ImportReport.Place(document: id)
                do throws(CofferError) {
                    try takeLocalDocument(id, json)
                } catch {
                    guard error.isOfItsContent else { throw error }
                    report.add(error.detail ?? "\(error.code)", place)
                }
            }
        }
    }

    private func takeLocalDocument(_ bytes: [UInt8], _ json: [UInt8]?) throws(CofferError) {
        guard let id = String(validating: bytes, as: UTF8.self) else {
            throw CofferError(.invalidDocumentID, "the document's id is not UTF-8")
        }
        // What Couchbase Lite itself remembers of replications.
        guard id != "_local/CBL_LocalCheckpoint" else {
            report.values.skippedCheckpointCount += 1
            return
        }
        guard let json, case .object(var properties) = try JSONValue(json: json) else {
            throw CofferError(.invalidJSON, "its body is no object")
        }
        for key in ["_id", "_rev"] { properties[key] = nil }
        try database?.saveLocalDocument(properties, withID: id)
        report.values.localDocumentCount += 1
    }

    private func takeExpirations() throws {
        try inTransaction {
            try source.database.forEachExpiration { (id, time) throws(CofferError) in
                guard time > 0, let id = String(validating: id, as: UTF8.self) else { return }
                // Seconds; what would be after the year 5138 is milliseconds.
                let seconds = time > 100_000_000_000 ? Double(time) / 1_000 : Double(time)
                do throws(CofferError) {
                    try database?.document(withID: id).setExpirationDate(Date(timeIntervalSince1970: seconds))
                    report.values.expirationCount += 1
                } catch {
                    guard error.code == .documentNotFound || error.isOfItsContent else { throw error }
                }
            }
        }
    }
}

extension RevisionID {
    /// The id that those bytes say.
    init?(utf8 bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self), let id = RevisionID(text) else { return nil }
        self = id
    }
}

extension CofferError {
    /// Whether it is about what a document says, so that others can be imported all the same.
    fileprivate var isOfItsContent: Bool {
        [
            .invalidDocumentID, .invalidJSON, .invalidAttachment, .invalidArgument, .digestCollision,
        ].contains(code)
    }
}
