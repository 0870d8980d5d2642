internal import Coffer
internal import CofferModel
internal import CofferSealing
internal import Foundation

/// One import: reads a source from beginning to end, and saves what it finds or only checks that it could be saved.
///
/// It saves revisions in the order of their sequences, so that the new database lists changes in the same order, and it
/// saves each one as a replication does.
final class Importer {
    private let source: Source
    /// Nil for a check, which makes no database.
    private let database: Database?
    private let monitor: ImportMonitor
    private let tree: SourceTree
    private var attachments: AttachmentImport
    private var report: ImportReport

    /// Revisions with a body that were not saved. The histories of their children go back further, to an ancestor that
    /// was.
    private var lost: Set<Int64> = []
    /// Revisions that were saved before their turn, since a child with a lower sequence needs them.
    private var early: Set<Int64> = []

    /// The depth while revisions are saved, if trees have to be pruned afterwards.
    private static let unlimitedDepth = 1 << 30
    /// Couchbase Lite's default.
    private static let usualDepth = 20

    init(
        _ source: Source, into database: Database?, _ options: CouchbaseLiteImportOptions, _ monitor: ImportMonitor
    ) throws(CofferError) {
        self.source = source
        self.database = database
        self.monitor = monitor
        tree = try source.database.withLock { (database) throws(CofferError) in
            database.ask { monitor.goesOn }
            return try SourceTree(database)
        }
        attachments = AttachmentImport(files: source.attachments, database: database)
        report = ImportReport(problemLimit: options.problemLimit)
        report.values.schemaVersion = source.database.withLock { $0.version }
        report.values.isSourceEncrypted = source.isEncrypted
    }

    /// - Throws: `damaged` (500), `busy` (503), `cancelled` (499), `noSpace` (507).
    func run() throws -> CouchbaseLiteImportReport {
        monitor.update { [tree] in $0.totalRevisionCount = tree.revisionCount }
        let depth = try source.database.withLock { (source) throws(CofferError) in try takeSettings(source) }
        // Trees are pruned once they are whole, since their leaves are not known before.
        let isDeep = tree.generation > depth
        try database?.setMaxRevTreeDepth(isDeep ? Self.unlimitedDepth : depth)
        try takeRevisions()
        try source.database.withLock { source in
            try takeLocalDocuments(source)
            try takeExpirations(source)
            report.values.skippedViewCount = try source.viewCount()
        }
        if isDeep { try database?.setMaxRevTreeDepth(depth) }
        report.values.contentCount = attachments.contentCount
        report.values.contentByteCount = attachments.contentByteCount
        report.values.missingContentCount = attachments.missingContentCount
        try monitor.checkCancelled()
        try source.checkUnchanged()
        return report.finished()
    }

    // MARK: Revisions

    private func takeRevisions() throws {
        let reader = RevisionReader(source.database)
        defer { reader.stop() }
        while case let revisions = try reader.next(), !revisions.isEmpty {
            try inTransaction {
                for revision in revisions {
                    try monitor.checkCancelled()
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

    /// Saves a revision, and before it those of its ancestors whose turn would come later.
    private func take(_ parsed: ParsedRevision) throws(CofferError) {
        let revision = parsed.read.revision
        guard early.remove(revision.sequence) == nil else { return }
        var waiting: [ReadRevision] = []
        var (child, parent) = (revision, revision.parent)
        while let sequence = parent, sequence > revision.sequence, !early.contains(sequence),
            let ancestor = try read(sequence), follows(child, ancestor.revision.document, ancestor.revision.id) != nil
        {
            waiting.append(ancestor)
            (child, parent) = (ancestor.revision, ancestor.revision.parent)
        }
        for ancestor in waiting.reversed() {
            early.insert(ancestor.revision.sequence)
            try save(ParsedRevision(ancestor))
        }
        try save(parsed)
    }

    private func read(_ sequence: Int64) throws(CofferError) -> ReadRevision? {
        try source.database.withLock { (database) throws(CofferError) in
            try database.revision(sequence).map { (revision) throws(CofferError) in
                try ReadRevision(revision, in: database)
            }
        }
    }

    /// The id of the parent, if it is in the same document and one generation older; nil otherwise.
    ///
    /// Generations go down along such links, so they form no cycle.
    private func follows(_ child: SourceRevision, _ document: Int64, _ id: [UInt8]) -> RevisionID? {
        guard document == child.document, let childID = RevisionID(utf8: child.id), let id = RevisionID(utf8: id),
            id.generation == childID.generation - 1
        else { return nil }
        return id
    }

    private func save(_ parsed: ParsedRevision) throws(CofferError) {
        let revision = parsed.read.revision
        if tree.isLeftOver(revision) {
            report.values.skippedRevisionCount += 1
            lost.insert(revision.sequence)
            return
        }
        let isLeaf = tree.isLeaf(revision.sequence)
        // Compaction has removed the body of this ancestor. Its id comes with the history of its descendants.
        if revision.json == nil && !isLeaf { return }
        let place = ImportReport.Place(document: parsed.read.documentID, revision: revision.id)
        do throws(CofferError) {
            try save(parsed, isLeaf: isLeaf, place)
        } catch {
            guard error.isOfItsContent else { throw error }
            report.add(error.detail ?? "\(error.code)", place)
            lost.insert(revision.sequence)
        }
    }

    private func save(_ parsed: ParsedRevision, isLeaf: Bool, _ place: ImportReport.Place) throws(CofferError) {
        let revision = parsed.read.revision
        guard let documentID = parsed.read.documentID else {
            throw CofferError(.invalidArgument, "its document is missing")
        }
        guard let id = String(validating: documentID, as: UTF8.self) else {
            throw CofferError(.invalidDocumentID, "the document's id is not UTF-8")
        }
        guard try !DocumentID(id).isLocal else {
            throw CofferError(.invalidDocumentID, "the document's id is that of a local document")
        }
        guard let revisionID = RevisionID(utf8: revision.id) else {
            throw CofferError(.invalidArgument, "its revision id is not one that Coffer can keep")
        }
        let body = try parsed.body.get()
        let history = try history(of: revision, revisionID, place)
        let revised = try attachments.revise(body, parsed.read.attachments, of: revisionID) {
            report.add($1, place, attachment: $0)
        }
        if let database {
            let result = try database.putExistingRevision(
                revised.body, withID: id, history: history, isDeletion: revision.isDeletion,
                attachments: revised.contents)
            guard !result.wasKnown else { throw CofferError(.invalidArgument, "the source has this revision twice") }
        }
        attachments.noteSaved(revised)
        report.noteSaved(
            revision.document, isLeaf: isLeaf, isDeletion: revision.isDeletion,
            attachmentCount: revised.attachmentCount)
    }

    /// The ids of a revision and its ancestors, up to the nearest one that was saved.
    private func history(
        of revision: SourceRevision, _ id: RevisionID, _ place: ImportReport.Place
    ) throws(CofferError) -> [RevisionID] {
        var ids = [id]
        var parent = revision.parent
        while let sequence = parent, ids.count < RevisionHistory.limit {
            // Nothing is known of a parent that is missing.
            let ancestor = try source.database.withLock { (database) throws(CofferError) in
                try database.ancestor(sequence)
            }
            guard let ancestor else {
                report.add("its parent is missing", place)
                break
            }
            guard ancestor.document == revision.document, let ancestorID = RevisionID(utf8: ancestor.id),
                let child = ids.last, ancestorID.generation == child.generation - 1
            else {
                report.add("its parent is not the previous generation of the same document", place)
                break
            }
            ids.append(ancestorID)
            if ancestor.hasBody && !lost.contains(sequence) { break }
            parent = ancestor.parent
        }
        return ids
    }

    // MARK: The rest

    /// Reads the settings that matter for an import.
    ///
    /// - Returns: the depth of revision trees.
    private func takeSettings(_ source: SourceDatabase) throws(CofferError) -> Int {
        var depth = Self.usualDepth
        var checkpointCount = 0
        try source.forEachSetting { key, value in
            if key == "max_revs", let number = Int(value), (1...1_000_000).contains(number) { depth = number }
            if key.hasPrefix("checkpoint/") { checkpointCount += 1 }
        }
        report.values.skippedCheckpointCount = checkpointCount
        // A server may have revisions that the depth alone would not keep.
        if checkpointCount > 0 { try database?.notePeer() }
        return depth
    }

    private func takeLocalDocuments(_ source: SourceDatabase) throws {
        try inTransaction {
            try source.forEachLocalDocument { (id, json) throws(CofferError) in
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
        // Couchbase Lite's own record of replications.
        guard id != "_local/CBL_LocalCheckpoint" else {
            report.values.skippedCheckpointCount += 1
            return
        }
        guard let json, case .object(var properties) = try JSONValue(json: json) else {
            throw CofferError(.invalidJSON, "its body is not an object")
        }
        for key in ["_id", "_rev"] { properties[key] = nil }
        try database?.saveLocalDocument(properties, withID: id)
        report.values.localDocumentCount += 1
    }

    private func takeExpirations(_ source: SourceDatabase) throws {
        try inTransaction {
            try source.forEachExpiration { (id, time) throws(CofferError) in
                guard time > 0, let id = String(validating: id, as: UTF8.self) else { return }
                // In seconds. A number that would be after the year 5138 is in milliseconds.
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
    /// The id in these bytes; nil if they are not a revision id.
    init?(utf8 bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self), let id = RevisionID(text) else { return nil }
        self = id
    }
}

extension CofferError {
    /// Whether the error is about what one document holds, so that the others can still be imported.
    fileprivate var isOfItsContent: Bool {
        [
            .invalidDocumentID, .invalidJSON, .invalidAttachment, .invalidArgument, .digestCollision,
        ].contains(code)
    }
}

/// The links between a source's revisions: they tell which revisions are leaves, and which were left over.
struct SourceTree {
    private var parents: Set<Int64> = []
    /// Documents in which the source marks no revision as current. There, the revisions without a child are leaves.
    private var unledDocuments: Set<Int64> = []
    private(set) var revisionCount = 0
    /// The highest generation of a revision.
    private(set) var generation = 0

    /// Reads all links, and with them every revision's page once.
    init(_ database: SourceDatabase) throws(CofferError) {
        var replaced: [(sequence: Int64, document: Int64)] = []
        var parents: Set<Int64> = []
        var (count, generation) = (0, 0)
        try database.forEachLink { link in
            count += 1
            generation = max(generation, link.generation)
            // A revision that names itself as its parent has none.
            if let parent = link.parent, parent != link.sequence { parents.insert(parent) }
            if !link.isCurrent { replaced.append((link.sequence, link.document)) }
        }
        (self.parents, revisionCount, self.generation) = (parents, count, generation)
        var documents = Set(replaced.lazy.filter { !parents.contains($0.sequence) }.map(\.document))
        guard !documents.isEmpty else { return }
        try database.forEachLink { if $0.isCurrent { documents.remove($0.document) } }
        unledDocuments = documents
    }

    /// Whether the revision has no child.
    func isLeaf(_ sequence: Int64) -> Bool { !parents.contains(sequence) }

    /// Whether this is an old revision that has lost its children. As a leaf, it would make a conflict that never
    /// existed.
    func isLeftOver(_ revision: SourceRevision) -> Bool {
        !revision.isCurrent && isLeaf(revision.sequence) && !unledDocuments.contains(revision.document)
    }
}
