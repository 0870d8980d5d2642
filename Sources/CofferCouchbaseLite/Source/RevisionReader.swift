internal import CofferModel
internal import CofferSealing
internal import Dispatch
internal import Synchronization

/// Reads a source's revisions on a queue of its own, so that some are decrypted and parsed while those before them are saved.
///
/// It is at most one batch ahead. Reading takes about a third of an import's time.
final class RevisionReader: Sendable {
    private let source: SharedSourceDatabase
    private let queue = DispatchQueue(label: "coffer.import", qos: .userInitiated)
    private let isReady = DispatchSemaphore(value: 0)
    private let batch = Lock<Result<[ParsedRevision], CofferError>>(.success([]))
    private let isStopped = Atomic(false)

    /// The most revisions of a batch, and the most bytes of their bodies but for the last one's.
    private static let countLimit = 1_000
    private static let byteLimit = 4 << 20

    /// Begins to read.
    init(_ source: SharedSourceDatabase) {
        self.source = source
        readAhead()
    }

    /// The revisions that follow, in the order of their sequences; empty after the last. One thread may ask.
    ///
    /// - Throws: `damaged` (500), `cancelled` (499).
    func next() throws(CofferError) -> [ParsedRevision] {
        isReady.wait()
        let revisions = try batch.withLock { $0 }.get()
        readAhead()
        return revisions
    }

    /// Returns once nothing is read any more.
    func stop() {
        isStopped.store(true, ordering: .relaxed)
        queue.sync {}
    }

    private func readAhead() {
        queue.async { [self] in
            let next = Result { () throws(CofferError) in try read() }
            batch.withLock { $0 = next }
            isReady.signal()
        }
    }

    private func read() throws(CofferError) -> [ParsedRevision] {
        var revisions: [ParsedRevision] = []
        var byteCount = 0
        while revisions.count < Self.countLimit, byteCount < Self.byteLimit, !isStopped.load(ordering: .relaxed) {
            // For one revision at a time, since whoever saves has questions, too.
            let next = try source.withLock { (database) throws(CofferError) in
                try database.nextRevision().map { (revision) throws(CofferError) in
                    try ReadRevision(revision, in: database)
                }
            }
            guard let next else { break }
            byteCount += next.revision.json?.count ?? 0
            revisions.append(ParsedRevision(next))
        }
        return revisions
    }
}

/// A revision, with what else the source has of it.
struct ReadRevision {
    let revision: SourceRevision
    /// Nil if the source lacks the document's row.
    let documentID: [UInt8]?
    let attachments: [SourceAttachment]

    init(_ revision: SourceRevision, in database: SourceDatabase) throws(CofferError) {
        self.revision = revision
        documentID = try database.documentID(revision.document)
        attachments = try database.attachments(of: revision.sequence)
    }
}

/// A revision whose body was parsed.
struct ParsedRevision {
    let read: ReadRevision
    /// Why it can't be saved, if its body is not one.
    let body: Result<DocumentBody, CofferError>

    init(_ read: ReadRevision) {
        self.read = read
        body = Result { () throws(CofferError) in
            guard let json = read.revision.json ?? (read.revision.isDeletion ? Array("{}".utf8) : nil) else {
                throw CofferError(.invalidJSON, "its body is missing")
            }
            return try DocumentBody(json: json, isForeign: true)
        }
    }
}
