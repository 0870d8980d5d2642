internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// A function that makes one value of a view's rows.
public struct Reduction: Sendable {
    enum Kind: Sendable {
        case count, sum, stats
        case custom(@Sendable ([JSONValue], [JSONValue], Bool) throws -> JSONValue)
    }

    let kind: Kind

    /// How many rows there are.
    public static let count = Reduction(kind: .count)

    /// The sum of the values. Those that are not numbers count nothing. Integers are summed exactly as long as all are, and the
    /// sum is one of 64 bits; otherwise as a `Double`. Null where that is infinite.
    public static let sum = Reduction(kind: .sum)

    /// `{"count", "max", "min", "sum", "sumsqr"}` of the values that are numbers; `max` and `min` are null where none is.
    public static let stats = Reduction(kind: .stats)

    private init(kind: Kind) { self.kind = kind }

    /// Your own reduction.
    ///
    /// - Parameter reduce: is given the keys and values of up to 1,000 rows, in order. What it makes of more than that many is
    ///   given to it again, as values without keys, with `isRereduce` true. So it must not matter how the rows are divided.
    public init(
        _ reduce:
            @escaping @Sendable (
                _ keys: [JSONValue], _ values: [JSONValue], _ isRereduce: Bool
            ) throws -> JSONValue
    ) {
        kind = .custom(reduce)
    }

    /// Whether it looks at values.
    var needsValues: Bool {
        if case .count = kind { false } else { true }
    }
}

/// A reduction under way, over the rows of one group. Holds no more than some thousand values.
struct Reducer {
    private let kind: Reduction.Kind
    private var count = 0
    private var sum = NumberSum()
    private var squares = 0.0
    private var least, most: JSONNumber?
    private var keys: [JSONValue] = []
    private var values: [JSONValue] = []
    private var reduced: [JSONValue] = []

    private static let chunk = 1_000

    init(_ reduction: Reduction) { kind = reduction.kind }

    mutating func add(_ entry: IndexEntry) throws {
        if case .count = kind {
            count += 1
            return
        }
        let value = try entry.value.map { json in try JSONValue(canonicalJSON: json) } ?? .null
        if case .custom(let reduce) = kind {
            keys.append(try CollationKey.value(entry.key))
            values.append(value)
            if values.count == Self.chunk { try reduceChunk(reduce) }
            return
        }
        guard case .number(let number) = value else { return }
        count += 1
        sum.add(number)
        squares += number.double * number.double
        least = least.map { number.double < $0.double ? number : $0 } ?? number
        most = most.map { number.double > $0.double ? number : $0 } ?? number
    }

    private mutating func reduceChunk(_ reduce: ([JSONValue], [JSONValue], Bool) throws -> JSONValue) throws {
        reduced.append(try reduce(keys, values, false))
        (keys, values) = ([], [])
        if reduced.count == Self.chunk { reduced = [try reduce([], reduced, true)] }
    }

    private static func value(_ number: JSONNumber) -> JSONValue { number.isFinite ? .number(number) : .null }

    /// What came of the rows so far, of which there must be some.
    mutating func finish() throws -> JSONValue {
        switch kind {
        case .count: return .number(JSONNumber(count))
        case .sum: return Self.value(sum.number)
        case .stats:
            return [
                "count": .number(JSONNumber(count)), "max": most.map { .number($0) } ?? .null,
                "min": least.map { .number($0) } ?? .null, "sum": Self.value(sum.number),
                "sumsqr": Self.value(JSONNumber(squares)),
            ]
        case .custom(let reduce):
            if !values.isEmpty { try reduceChunk(reduce) }
            return reduced.count == 1 ? reduced[0] : try reduce([], reduced, true)
        }
    }
}

/// A sum that is exact while it is one of integers.
struct NumberSum {
    private var integer: Int128 = 0
    private var double = 0.0
    private var isExact = true

    mutating func add(_ number: JSONNumber) {
        double += number.double
        guard let summand = number.int64.map({ Int128($0) }) ?? number.uint64.map({ Int128($0) }) else {
            isExact = false
            return
        }
        integer += summand
    }

    var number: JSONNumber {
        guard isExact else { return JSONNumber(double) }
        if let signed = Int64(exactly: integer) { return JSONNumber(signed) }
        return UInt64(exactly: integer).map { JSONNumber($0) } ?? JSONNumber(Double(integer))
    }
}

/// Reads a view's rows and reduces each group of them, a batch of groups at a time.
struct GroupReader {
    private let view: DatabaseView
    private let options: ViewOptions
    private let reduction: Reduction
    private var entries: EntryReader
    private var skipCount: Int
    private var remainingCount: Int

    /// The group that is being read.
    private struct Group {
        /// The key of its last row, so that an equal one needs no reading.
        var lastKey: [UInt8]
        var key: JSONValue
        var reducer: Reducer
    }

    private var group: Group?
    private var isOver = false

    init(_ view: DatabaseView, _ options: ViewOptions, _ reduction: Reduction) throws(CofferError) {
        self.view = view
        self.options = options
        self.reduction = reduction
        entries = try view.entryReader(options, loadsValues: reduction.needsValues || options.filter != nil)
        skipCount = try RowCount.skipCount(options.skip)
        remainingCount = try RowCount.rowCount(options.limit)
    }

    mutating func nextBatch() throws(CofferError) -> [ReducedRow] {
        var groups: [ReducedRow] = []
        do {
            while groups.isEmpty && !isOver && remainingCount > 0 {
                let batch = try entries.nextBatch { (_, entry, _) throws(CofferError) in entry }
                for entry in batch where try passes(entry) {
                    try add(entry, &groups)
                    if remainingCount == 0 { break }
                }
                if batch.isEmpty {
                    isOver = true
                    try endGroup(&groups)
                }
            }
        } catch let error as CofferError {
            throw error.about(view.database.storage.subject)
        } catch {
            throw CofferError(.rejected, of: view.subject, "the reduction or the filter failed", cause: error)
        }
        return groups
    }

    private func passes(_ entry: IndexEntry) throws -> Bool {
        guard let filter = options.filter else { return true }
        let id = String(decoding: entry.id, as: UTF8.self)
        return try filter(try ViewRow(entry, of: id, in: view))
    }

    private mutating func add(_ entry: IndexEntry, _ groups: inout [ReducedRow]) throws {
        if group?.lastKey != entry.key {
            let key = try groupKey(of: entry.key)
            if group?.key != key {
                try endGroup(&groups)
                if remainingCount == 0 { return }
                group = Group(lastKey: entry.key, key: key, reducer: Reducer(reduction))
            } else {
                group?.lastKey = entry.key
            }
        }
        try group?.reducer.add(entry)
    }

    private func groupKey(of key: [UInt8]) throws(CofferError) -> JSONValue {
        guard let level = options.groupLevel, level > 0 else { return .null }
        let value = try CollationKey.value(key)
        guard case .array(let elements) = value, elements.count > level else { return value }
        return .array(Array(elements[..<level]))
    }

    private mutating func endGroup(_ groups: inout [ReducedRow]) throws {
        guard var ended = group else { return }
        group = nil
        if skipCount > 0 {
            skipCount -= 1
        } else {
            groups.append(ReducedRow(key: ended.key, value: try ended.reducer.finish()))
            remainingCount -= 1
        }
    }
}
