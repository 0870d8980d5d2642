internal import CofferModel
internal import CofferSealing
internal import Synchronization
internal import Coffer

/// What a push has sent and not looked at yet, in the order of the feed. For one task.
///
/// Requests that are on their way have together about as many bytes as two batches may have, or a little less than that of contents.
/// So the smaller documents are, and the further away the server is, the more there are at a time, and memory holds no more.
struct SentRevisions {
    enum Element {
        case together([OutgoingDocument], Answer<[BulkFailure]>)
        case alone(RevisionUpload, Answer<Void>)
        /// A revision that can't be sent.
        case failure(DocumentFailure)
        /// All of these documents were sent, up to this position; nil if they are not part of the feed.
        case reached(position: Int?, ids: [String])
    }

    private let remote: RemoteDatabase
    private let options: ReplicationOptions
    private let bulkWindow: RequestWindow
    private let uploadWindow: RequestWindow
    private var elements: [Element] = []
    /// How many requests are on their way, and what is sent by them.
    private var bulk = Load()
    private var uploads = Load()

    private struct Load {
        var count = 0
        var byteCount = 0

        mutating func add(_ byteCount: Int) {
            count += 1
            self.byteCount += byteCount
        }

        mutating func remove(_ byteCount: Int) {
            count -= 1
            self.byteCount -= byteCount
        }
    }

    init(_ remote: RemoteDatabase, _ options: ReplicationOptions) {
        self.remote = remote
        self.options = options
        bulkWindow = RequestWindow(patience: options.idleTimeout)
        uploadWindow = RequestWindow(limit: 16, patience: options.idleTimeout)
    }

    // MARK: Sending

    /// Whether they can be sent before any answer was looked at.
    func hasRoom(for documents: [OutgoingDocument]) -> Bool {
        if bulk.count < RequestWindow.least { return true }
        return bulk.count < bulkWindow.count
            && bulk.byteCount + Self.byteCount(of: documents) <= 2 * options.batchByteCount
    }

    /// Whether it can be sent before any answer was looked at.
    ///
    /// A large one may take long: it is sent when it is known what became of those before it.
    func hasRoom(for upload: RevisionUpload) -> Bool {
        if elements.isEmpty { return true }
        return uploads.count < uploadWindow.count
            && uploads.byteCount.addingSaturated(upload.byteCount) <= Self.uploadByteLimit
    }

    /// Contents that are read at a time, and those that have just been read.
    private static let uploadByteLimit = 2 << 20

    mutating func send(_ documents: [OutgoingDocument]) {
        let byteCount = Self.byteCount(of: documents)
        bulk.add(byteCount)
        let answer = Answer(byteCount: byteCount) { [remote, bulkWindow] in
            try await bulkWindow.measure { try await remote.save(documents.map(\.json)) }
        }
        elements.append(.together(documents, answer))
    }

    mutating func send(_ upload: RevisionUpload) {
        let byteCount = upload.byteCount
        uploads.add(byteCount)
        let answer = Answer(byteCount: byteCount) { [uploadWindow] in
            try await uploadWindow.measure { try await upload.run() }
        }
        elements.append(.alone(upload, answer))
    }

    private static func byteCount(of documents: [OutgoingDocument]) -> Int {
        documents.reduce(0) { $0 + $1.json.count }
    }

    /// Notes that a revision can't be sent.
    mutating func add(_ failure: DocumentFailure) { elements.append(.failure(failure)) }

    /// Notes that everything up to a position was sent.
    mutating func add(reached position: Int?, ids: [String]) {
        elements.append(.reached(position: position, ids: ids))
    }

    // MARK: Looking at answers

    var isEmpty: Bool { elements.isEmpty }

    var first: Element? { elements.first }

    /// Whether nobody has to be waited for to know what became of the first.
    var isFirstOver: Bool {
        switch elements.first {
        case .together(_, let answer): answer.hasCome
        case .alone(_, let answer): answer.hasCome
        case .failure, .reached: true
        case nil: false
        }
    }

    mutating func removeFirst() {
        guard !elements.isEmpty else { return }
        switch elements.removeFirst() {
        case .together(_, let answer): bulk.remove(answer.byteCount)
        case .alone(_, let answer): uploads.remove(answer.byteCount)
        case .failure, .reached: break
        }
    }

    /// Cancels what is on its way, and waits until it has let go of everything.
    mutating func end() async {
        for element in elements {
            switch element {
            case .together(_, let answer): answer.cancel()
            case .alone(_, let answer): answer.cancel()
            case .failure, .reached: break
            }
        }
        for element in elements {
            switch element {
            case .together(_, let answer): await answer.wait()
            case .alone(_, let answer): await answer.wait()
            case .failure, .reached: break
            }
        }
        elements = []
        (bulk, uploads) = (Load(), Load())
    }
}

/// What a server says to a request that is on its way.
final class Answer<Value: Sendable>: Sendable {
    /// What the request sends.
    let byteCount: Int
    private let task: Task<Value, any Error>
    private let flag: Flag

    private final class Flag: Sendable {
        let isSet = Atomic(false)
    }

    init(byteCount: Int, _ ask: @escaping @Sendable () async throws -> Value) {
        self.byteCount = byteCount
        let flag = Flag()
        self.flag = flag
        task = Task {
            defer { flag.isSet.store(true, ordering: .releasing) }
            return try await ask()
        }
    }

    var hasCome: Bool { flag.isSet.load(ordering: .acquiring) }

    /// Cancelling the waiting task cancels the request.
    var value: Value { get async throws { try await task.ownValue } }

    func cancel() { task.cancel() }

    func wait() async { _ = await task.result }
}

/// Sends one revision with contents that follow it.
struct RevisionUpload: Sendable {
    let remote: RemoteDatabase
    let revision: OutgoingRevision
    /// Of the revision, the newest first.
    let history: [RevisionID]
    /// The document's revisions that the server has.
    let known: [RevisionID]

    /// Sends those contents alone that are new since an ancestor that the server has.
    func run() async throws {
        let since = DatabaseService.commonGeneration(known, history)
        do {
            do {
                try await remote.save(revision, history: history) { $0.generation > since ? .follows : .stub }
            } catch let error as SyncError where [400, 412].contains(error.status) && since > 0 {
                // The server's ancestor is not what it was thought to be.
                try await remote.save(revision, history: history) { _ in .follows }
            }
        } catch let error as SyncError where error.status == 413 {
            try await runWithoutLargeBlobs(since, refusal: error)
        }
    }

    /// Blobs that are too large for the server stay away, the largest first, until it takes the rest. The document says what
    /// they are, all the same.
    private func runWithoutLargeBlobs(_ since: Int, refusal: SyncError) async throws {
        var refusal = refusal
        let lengths = revision.contents.filter(\.isBlob).map { min($0.length, Self.blobByteLimit) }
        for limit in Set(lengths).sorted(by: >) {
            do {
                try await remote.save(revision, history: history) { content in
                    if content.isBlob, content.length >= limit { return .omitted }
                    return content.generation > since ? .follows : .stub
                }
                return
            } catch let error as SyncError where error.status == 413 {
                refusal = error
            }
        }
        throw refusal
    }

    /// Sync Gateway refuses more: 20 MB.
    private static let blobByteLimit = 20 << 20

    /// Whether the server refuses the revision since it doesn't have a content that is not here either, and may come later.
    func isForWantOfContents(_ error: SyncError) -> Bool {
        [400, 412].contains(error.status) && !revision.contents.allSatisfy(revision.isAvailable)
    }

    /// What its contents have, and the revision without them.
    var byteCount: Int { revision.contents.reduce(revision.bodyByteCount) { $0.addingSaturated($1.length) } }
}
