internal import CofferRecords
public import CofferSealing
internal import Synchronization

#if canImport(Observation)
public import Observation
#endif

/// The rows of a query, again and again, as what they are changes: see ``DatabaseView/liveRows(_:)`` and
/// ``Database/liveDocuments(_:)``.
///
/// ```swift
/// for try await result in byCity.liveRows() {
///     show(try result.rows.all)
/// }
/// ```
///
/// The first result comes at once. Another one comes after a commit that may have changed the rows; what is committed while
/// nobody waits for a result is one. After a commit that changed other rows of the view none comes, and finding that out costs
/// no more than the changed documents. Ends when the database is closed. Every iteration is one of its own.
public struct LiveQuery<Row: Sendable>: AsyncSequence, Sendable {
    /// The rows at one time.
    public struct Result: Sendable {
        /// The rows. They are read as they are taken: what is committed by then may be among them.
        public let rows: Rows<Row>

        /// The sequence of the last revision that was saved when they were looked for.
        public let sequence: Int
    }

    /// The rows at one time.
    public typealias Element = Result

    /// The error that reading may throw.
    public typealias Failure = CofferError

    private let source: LiveSource<Row>

    init(_ source: LiveSource<Row>) { self.source = source }

    /// Takes the results one after another.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source) }

    /// Takes the results of a ``LiveQuery``.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let source: LiveSource<Row>
        private let bell: CommitSignal
        private var last: LiveState?
        private var watch: IndexWatch?

        fileprivate init(_ source: LiveSource<Row>) {
            self.source = source
            bell = CommitSignal(source.database.storage.hub)
        }

        /// Waits for the next result; nil when the database was closed. Where other transactions keep it from bringing an index
        /// up to date for too long, it goes on trying.
        ///
        /// - Throws: what the query throws; `cancelled` (499) when the task was cancelled.
        public mutating func next() async throws(CofferError) -> Result? {
            var isTryingAgain = false
            while true {
                if last != nil && !isTryingAgain {
                    guard await bell.wait() else {
                        if Task.isCancelled { throw CofferError(.cancelled) }
                        return nil
                    }
                }
                if Task.isCancelled { throw CofferError(.cancelled) }
                let state: LiveState
                do {
                    let source = source
                    state = try await source.database.storage.inBackground { () throws(CofferError) in try source.look()
                    }
                } catch let error as CofferError {
                    if error.code == .closed && last != nil { return nil }
                    // It has waited long enough for its turn as it is.
                    isTryingAgain = error.code == .busy && last != nil
                    if isTryingAgain { continue }
                    throw error
                } catch {
                    throw CofferError(.cancelled)
                }
                isTryingAgain = false
                // Watched from before the next look on: what changes until then can't be told, and counts as a change.
                if watch?.index !== state.index { watch = state.index.map(IndexWatch.init) }
                let hasChanged = last.map { state.mayDiffer(from: $0) } ?? true
                last = state
                if hasChanged { return Result(rows: source.rows, sequence: state.sequence) }
            }
        }
    }
}

/// What a live query is of.
struct LiveSource<Row: Sendable>: Sendable {
    let database: Database
    let rows: Rows<Row>
    /// Brings what the query reads up to date, and says what it is then. May wait for its turn to write.
    let look: @Sendable () throws(CofferError) -> LiveState
}

/// What the rows of a live query were read from at one time.
struct LiveState: Sendable {
    /// The last sequence that the database had.
    var sequence: Int
    /// The index that is read, and which of its entries; nil if all documents are.
    var index: OpenIndex?
    var ranges: [EntryRange] = []
    /// How often it had been changed.
    var changeCount: Int64 = 0
    /// Which index it is: one that is rebuilt counts its changes again.
    var number: IndexNumber = 0

    init(sequence: Int) { self.sequence = sequence }

    init(of row: IndexRow, _ kind: IndexKind, _ ranges: [EntryRange], _ storage: Storage) {
        sequence = row.sequence.value
        index = storage.indexes[kind, row.name]
        self.ranges = ranges
        changeCount = row.changeCount
        number = row.number
    }

    func mayDiffer(from last: LiveState) -> Bool {
        guard let index, index === last.index, number == last.number, ranges == last.ranges else { return true }
        return index.mayHaveChanged(ranges, of: number, after: last.changeCount, upTo: changeCount)
    }
}

/// Has an index remember what changes touch, for as long as it is held.
final class IndexWatch: Sendable {
    let index: OpenIndex

    init(_ index: OpenIndex) {
        self.index = index
        index.addWatcher()
    }

    deinit { index.removeWatcher() }
}

extension DatabaseView {
    // MARK: Live rows

    /// The view's rows again and again, as they change.
    ///
    /// - Parameter options: as for ``rows(_:)``. ``ViewOptions/update`` means nothing: the view is always brought up to date.
    public func liveRows(_ options: ViewOptions = ViewOptions()) -> LiveQuery<ViewRow> {
        var options = options
        options.update = .before
        return LiveQuery(
            LiveSource(database: database, rows: rows(options)) { [self, options] () throws(CofferError) in
                LiveState(of: try bringUpToDate().row, .view, try options.ranges(), database.storage)
            })
    }
}

extension Database {
    // MARK: Live queries

    /// The documents that a query asks for again and again, as they change.
    ///
    /// - Parameter query: as for ``documents(_:)``. Where no index serves it, every commit counts as a change.
    public func liveDocuments(_ query: DocumentQuery) -> LiveQuery<SavedRevision> {
        LiveQuery(
            LiveSource(database: self, rows: documents(query)) { [self] () throws(CofferError) in
                for _ in 0..<Database.attemptLimit {
                    guard !isReadOnly, case let planned = try planned(query), let index = planned.plan.index else {
                        break
                    }
                    guard let row = try bringUpToDate(index) else { continue }
                    return LiveState(of: row, .properties, planned.ranges, storage)
                }
                return LiveState(sequence: try lastSequenceNumber)
            })
    }
}

/// Tells one task that something was committed since it last asked, however much it was. Rings for as long as it is held.
final class CommitSignal: Sendable {
    private let ringer = Ringer()
    private let hub: ChangeHub
    private let number: Int

    init(_ hub: ChangeHub) {
        self.hub = hub
        number = hub.add(ringer)
    }

    deinit { hub.remove(number) }

    /// Waits until something was committed since the last call.
    ///
    /// - Returns: false when the database was closed, or the task cancelled.
    func wait() async -> Bool { await ringer.wait() }

    private final class Ringer: ChangeObserver {
        private struct State {
            var hasRung = false
            var isFinished = false
            var waiting: (number: Int, continuation: CheckedContinuation<Bool, Never>)?
            var lastNumber = 0
        }

        private let state = Lock(State())

        func observe(_ commit: Commit) {
            let waiting = state.withLock { state in
                state.hasRung = state.waiting == nil
                return state.waiting.take()
            }
            waiting?.continuation.resume(returning: true)
        }

        func finish() {
            let waiting = state.withLock { state in
                state.isFinished = true
                return state.waiting.take()
            }
            waiting?.continuation.resume(returning: false)
        }

        func wait() async -> Bool {
            let number = state.withLock { state in
                state.lastNumber += 1
                return state.lastNumber
            }
            return await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let result: Bool? = state.withLock { state in
                        // A task that is cancelled after this calls cancel(_:), which waits for the lock.
                        if Task.isCancelled || state.isFinished { return false }
                        if state.hasRung {
                            state.hasRung = false
                            return true
                        }
                        state.waiting = (number, continuation)
                        return nil
                    }
                    if let result { continuation.resume(returning: result) }
                }
            } onCancel: {
                let waiting = state.withLock { state in
                    state.waiting?.number == number ? state.waiting.take() : nil
                }
                waiting?.continuation.resume(returning: false)
            }
        }
    }
}

#if canImport(Observation)
/// The rows of a live query as a value that observers follow, such as a SwiftUI view.
///
/// ```swift
/// @State private var tasks = LiveRows(database.liveDocuments(query))
/// var body: some View { Text("\(tasks.rows.count) tasks") }
/// ```
///
/// All rows are held in memory. It follows the database for as long as somebody holds it, and reads where no view waits for it.
@MainActor
@Observable
public final class LiveRows<Row: Sendable> {
    /// The rows, as of the latest commit that changed them. None before they were first read: see ``isLoaded``.
    public private(set) var rows: [Row] = []

    /// Whether the rows were read at least once.
    public private(set) var isLoaded = false

    /// The error that ended it; nil while it continues, and after the database was closed. The rows stay.
    public private(set) var error: CofferError?

    @ObservationIgnored private var following: Task<Void, Never>?

    /// Follows `query` from here on.
    public init(_ query: LiveQuery<Row>) {
        following = Task { [weak self] in
            do {
                for try await result in query {
                    let rows = try await Self.read(result.rows)
                    self?.take(rows)
                }
            } catch let error as CofferError {
                self?.error = error
            } catch {
                self?.error = CofferError(.cancelled)
            }
        }
    }

    deinit { following?.cancel() }

    private func take(_ rows: [Row]) {
        self.rows = rows
        isLoaded = true
    }

    /// Away from the main thread.
    @concurrent
    private nonisolated static func read(_ source: Rows<Row>) async throws -> [Row] {
        var rows: [Row] = []
        for try await row in source { rows.append(row) }
        return rows
    }
}
#endif
