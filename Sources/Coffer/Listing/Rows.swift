public import CofferSealing

/// Rows that a database is asked for, read in batches as they are taken.
///
/// ```swift
/// for try await revision in database.allDocuments() { … }      // in a task
/// try database.allDocuments().forEach { revision in … }        // elsewhere
/// let all = try database.allDocuments().all                    // if they are few
/// ```
///
/// Each batch of some hundred rows is what was committed when it is read, and has been checked before its first row is
/// handed out; while the rows are looked at nothing is kept open or locked, so that they may be changed meanwhile. Whoever
/// needs all rows of one moment asks inside a transaction. Every iteration reads anew.
public struct Rows<Element: Sendable>: AsyncSequence, Sendable {
    /// What reading may throw.
    public typealias Failure = CofferError

    /// Makes what reads one batch after another; the last one is empty.
    private let makeBatches: @Sendable () throws(CofferError) -> () throws(CofferError) -> [Element]

    init(_ makeBatches: @escaping @Sendable () throws(CofferError) -> () throws(CofferError) -> [Element]) {
        self.makeBatches = makeBatches
    }

    /// All rows at once.
    ///
    /// - Throws: `invalidArgument` and `invalidDocumentID` (400), `damaged` and `closed` (500).
    public var all: [Element] {
        get throws(CofferError) {
            var all: [Element] = []
            var rows = makeIterator()
            while let batch = try rows.takeBatch() { all += batch }
            return all
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
    public func makeIterator() -> Iterator { Iterator(makeBatches: makeBatches) }

    /// Takes the rows one after another, in a task.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(rows: makeIterator()) }

    /// Takes the rows one after another.
    public struct Iterator {
        private let makeBatches: @Sendable () throws(CofferError) -> () throws(CofferError) -> [Element]
        private var nextBatch: (() throws(CofferError) -> [Element])?
        private var batch: [Element] = []
        private var takenCount = 0
        private var isOver = false

        fileprivate init(
            makeBatches: @escaping @Sendable () throws(CofferError) -> () throws(CofferError) -> [Element]
        ) {
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

        fileprivate mutating func takeBatch() throws(CofferError) -> [Element]? {
            guard !isOver else { return nil }
            isOver = true
            if nextBatch == nil { nextBatch = try makeBatches() }
            let read = try nextBatch?() ?? []
            isOver = read.isEmpty
            if isOver { nextBatch = nil }
            return isOver ? nil : read
        }
    }

    /// Takes the rows one after another, in a task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private var rows: Iterator

        fileprivate init(rows: Iterator) { self.rows = rows }

        /// The next row; nil after the last. Reads on the calling task's thread, and waits for no transaction.
        ///
        /// - Throws: as ``Rows/all``; `cancelled` (499).
        public mutating func next() async throws(CofferError) -> Element? {
            if Task.isCancelled { throw CofferError(.cancelled) }
            return try rows.next()
        }

        /// The next row; nil after the last.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(CofferError) -> Element? {
            if Task.isCancelled { throw CofferError(.cancelled) }
            return try rows.next()
        }
    }
}
