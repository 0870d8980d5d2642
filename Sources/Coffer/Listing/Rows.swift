internal import CofferRecords
public import CofferSealing

/// Rows that a database is asked for, read in batches as they are taken.
///
/// ```swift
/// for try await revision in database.allDocuments() { … }      // in a task
/// try database.allDocuments().forEach { revision in … }        // elsewhere
/// let all = try database.allDocuments().all                    // if they are few
/// let ids = try database.allDocuments().map(\.documentID)      // and filter, first, count
/// ```
///
/// Reading may throw, so a plain `for row in rows` doesn't compile: write `for row in try rows.all`, or one of these.
///
/// Each batch of up to 256 rows is what was committed when it is read, and has been checked before its first row is
/// handed out; while the rows are looked at nothing is kept open or locked, so that they may be changed meanwhile. Whoever
/// needs all rows of one moment asks inside a transaction. Every iteration reads again.
public struct Rows<Element: Sendable>: AsyncSequence, Sendable {
    /// The error that reading may throw.
    public typealias Failure = CofferError

    /// What is done before the first batch, and may wait for the writer.
    struct Preparation: Sendable {
        var storage: Storage
        var body: @Sendable () throws(CofferError) -> Void
    }

    private let preparation: Preparation?

    /// Makes what reads one batch after another; the last one is empty.
    private let makeBatches: @Sendable () throws(CofferError) -> () throws(CofferError) -> [Element]

    init(_ makeBatches: @escaping @Sendable () throws(CofferError) -> () throws(CofferError) -> [Element]) {
        preparation = nil
        self.makeBatches = makeBatches
    }

    /// - Parameter prepare: may wait for its turn to write. In a task it does so on a thread of the storage's.
    init(
        waitingIn storage: Storage, prepare: @escaping @Sendable () throws(CofferError) -> Void,
        batches: @escaping @Sendable () throws(CofferError) -> () throws(CofferError) -> [Element]
    ) {
        preparation = Preparation(storage: storage, body: prepare)
        makeBatches = batches
    }

    /// All rows at once.
    ///
    /// - Throws: `invalidArgument` and `invalidDocumentID` (400), `damaged` and `closed` (500).
    public var all: [Element] {
        get throws(CofferError) {
            var all: [Element] = []
            var rows = makeIterator()
            while let batch = try rows.takeBatch() { if all.isEmpty { all = batch } else { all += batch } }
            return all
        }
    }

    /// The results of `transform` for each row, in their order. Unlike the `map` of sequences for tasks, at once.
    ///
    /// - Throws: what `transform` throws, which ends it; and as ``all``.
    public func map<Value>(_ transform: (Element) throws -> Value) throws -> [Value] {
        var values: [Value] = []
        try forEach { values.append(try transform($0)) }
        return values
    }

    /// The rows for which `isIncluded` is true, in their order. Unlike the `filter` of sequences for tasks, at once.
    ///
    /// - Throws: what `isIncluded` throws, which ends it; and as ``all``.
    public func filter(_ isIncluded: (Element) throws -> Bool) throws -> [Element] {
        var rows: [Element] = []
        try forEach { if try isIncluded($0) { rows.append($0) } }
        return rows
    }

    /// The first row, or nil if there are no rows. Reads one batch.
    ///
    /// - Throws: as ``all``.
    public var first: Element? {
        get throws(CofferError) {
            var rows = makeIterator()
            return try rows.next()
        }
    }

    /// How many rows there are. Reads all of them, a batch at a time, and keeps none.
    ///
    /// - Throws: as ``all``.
    public var count: Int {
        get throws(CofferError) {
            var (rows, count) = (makeIterator(), 0)
            while let batch = try rows.takeBatch() { count += batch.count }
            return count
        }
    }

    /// Gives all rows to `body`, one after another.
    ///
    /// - Throws: what `body` throws, which ends it; and as ``all``.
    public func forEach(_ body: (Element) throws -> Void) throws {
        var rows = makeIterator()
        while let row = try rows.next() { try body(row) }
    }

    /// Takes the rows one after another, where there is no task.
    public func makeIterator() -> Iterator { Iterator(preparation: preparation, makeBatches: makeBatches) }

    /// Takes the rows one after another, in a task.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(rows: makeIterator()) }

    /// Takes the rows one after another.
    public struct Iterator {
        /// Nil once it is done.
        private var preparation: Preparation?
        private let makeBatches: @Sendable () throws(CofferError) -> () throws(CofferError) -> [Element]
        private var nextBatch: (() throws(CofferError) -> [Element])?
        private var batch: [Element] = []
        private var takenCount = 0
        private var isOver = false

        fileprivate init(
            preparation: Preparation?,
            makeBatches: @escaping @Sendable () throws(CofferError) -> () throws(CofferError) -> [Element]
        ) {
            self.preparation = preparation
            self.makeBatches = makeBatches
        }

        /// The next row; nil after the last.
        ///
        /// - Throws: as ``Rows/all``. There are no more rows then.
        public mutating func next() throws(CofferError) -> Element? {
            while takenCount == batch.count {
                guard let read = try takeBatch() else { return nil }
                batch = read
                takenCount = 0
            }
            takenCount += 1
            return batch[takenCount - 1]
        }

        /// Does what comes before the first batch, where a task's thread would have to wait.
        fileprivate mutating func prepareInBackground() async throws(CofferError) {
            guard let waiting = preparation else { return }
            preparation = nil
            // A transaction that this thread is in can't wait for itself.
            guard !waiting.storage.writerLock.isHeldByCaller else { return try waiting.body() }
            do {
                try await waiting.storage.inBackground(waiting.body)
            } catch {
                isOver = true
                throw error as? CofferError ?? CofferError(.cancelled)
            }
        }

        fileprivate mutating func takeBatch() throws(CofferError) -> [Element]? {
            guard !isOver else { return nil }
            isOver = true
            if let preparation {
                self.preparation = nil
                try preparation.body()
            }
            if nextBatch == nil { nextBatch = try makeBatches() }
            let read = try nextBatch?() ?? []
            isOver = read.isEmpty
            if isOver { nextBatch = nil }
            return isOver ? nil : read
        }
    }

    /// Takes the rows one after another, in a task: suspends it where an index has to be brought up to date first.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private var rows: Iterator

        fileprivate init(rows: Iterator) { self.rows = rows }

        /// The next row; nil after the last. Reads on the calling task's thread; waits for a transaction only where an index has
        /// to be brought up to date, and suspends the task then.
        ///
        /// - Throws: as ``Rows/all``; `cancelled` (499).
        public mutating func next() async throws(CofferError) -> Element? {
            if Task.isCancelled { throw CofferError(.cancelled) }
            try await rows.prepareInBackground()
            return try rows.next()
        }

        /// The next row; nil after the last.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(CofferError) -> Element? {
            if Task.isCancelled { throw CofferError(.cancelled) }
            try await rows.prepareInBackground()
            return try rows.next()
        }
    }
}

/// How many rows are still to be skipped, and given at most.
struct RowCount {
    private var skipCount: Int
    private var remainingCount: Int

    /// - Throws: `invalidArgument` (400) for a count below zero.
    init(skip: Int, limit: Int?) throws(CofferError) {
        skipCount = try Self.skipCount(skip)
        remainingCount = try Self.rowCount(limit)
    }

    /// How many rows are skipped.
    ///
    /// - Throws: `invalidArgument` (400) where that is below zero.
    static func skipCount(_ skip: Int) throws(CofferError) -> Int {
        guard skip >= 0 else { throw CofferError(.invalidArgument, "\(skip) rows can't be skipped") }
        return skip
    }

    /// How many rows a limit lets through.
    ///
    /// - Throws: `invalidArgument` (400) for a limit below zero.
    static func rowCount(_ limit: Int?) throws(CofferError) -> Int {
        guard let limit else { return .max }
        guard limit >= 0 else { throw CofferError(.invalidArgument, "a limit of \(limit)") }
        return limit
    }

    /// Whether all were given.
    var isOver: Bool { remainingCount == 0 }

    /// How many rows are needed at most, those skipped too.
    var wantedCount: Int {
        let (sum, overflows) = skipCount.addingReportingOverflow(remainingCount)
        return overflows ? .max : sum
    }

    /// Those of the next rows that are to be given.
    mutating func take<Row>(_ rows: [Row]) -> [Row] {
        let skipped = min(skipCount, rows.count)
        let taken =
            skipped == 0 && rows.count <= remainingCount
            ? rows : Array(rows.dropFirst(skipped).prefix(remainingCount))
        skipCount -= skipped
        remainingCount -= taken.count
        return taken
    }
}

extension Array {
    /// Those that pass a filter of the app's.
    ///
    /// - Throws: what the filter throws, as `rejected` (403) of `subject` unless it is Coffer's.
    func passing(_ filter: (Element) throws -> Bool, of subject: String) throws(CofferError) -> [Element] {
        do {
            return try self.filter(filter)
        } catch let error as CofferError {
            throw error
        } catch {
            throw CofferError(.rejected, of: subject, "the filter failed", cause: error)
        }
    }
}
