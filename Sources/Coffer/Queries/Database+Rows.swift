public import CofferModel
internal import CofferRecords
internal import CofferSealing

/// Properties of a document, or of a group of documents: see ``Database/rows(_:of:)`` and ``Database/groups(by:of:_:)``.
public struct PropertyRow: Sendable {
    /// Which properties they are.
    public let paths: [PropertyPath]

    /// Their values, in the order of ``paths``; nil for one that isn't there.
    public let values: [JSONValue?]

    /// The aggregates of a group's documents, in the order of the request. Empty in the row of one document.
    public let aggregates: [JSONValue]

    init(_ paths: [PropertyPath], _ values: [JSONValue?], aggregates: [JSONValue] = []) {
        self.paths = paths
        self.values = values
        self.aggregates = aggregates
    }

    /// The value of a property; nil if it isn't there, or was not asked for.
    public subscript(path: PropertyPath) -> JSONValue? { paths.firstIndex(of: path).flatMap { values[$0] } }
}

/// A value computed from a property of a group's documents: see ``Database/groups(by:of:_:)``.
///
/// Documents without the property count nothing, and neither do those in which it is `null`.
public struct Aggregate: Sendable {
    enum Kind: Sendable {
        case documents
        case count, sum, least, greatest, average
    }

    let kind: Kind
    let path: PropertyPath

    /// How many documents there are.
    public static let count = Aggregate(kind: .documents, path: "_id")

    /// How many documents have the property.
    public static func count(_ path: PropertyPath) -> Aggregate { Aggregate(kind: .count, path: path) }

    /// The sum of the values that are numbers, 0 without any. Exact where all are integers, and the sum is one of 64 bits; null
    /// where it is infinite.
    public static func sum(_ path: PropertyPath) -> Aggregate { Aggregate(kind: .sum, path: path) }

    /// The value that comes first: false, true, numbers, strings, lists, objects. Null without any.
    public static func min(_ path: PropertyPath) -> Aggregate { Aggregate(kind: .least, path: path) }

    /// The value that comes last. Null without any.
    public static func max(_ path: PropertyPath) -> Aggregate { Aggregate(kind: .greatest, path: path) }

    /// The average of the values that are numbers; null without any, and where it is infinite.
    public static func average(_ path: PropertyPath) -> Aggregate { Aggregate(kind: .average, path: path) }
}

extension Database {
    // MARK: Rows of properties

    /// Properties of the documents that a query asks for, a row for each document.
    ///
    /// ```swift
    /// for row in try database.rows(["name", "address.city"], of: query).all { names.append(row["name"]) }
    /// ```
    ///
    /// - Parameters:
    ///   - paths: which properties.
    ///   - query: as for ``documents(_:)``, which says which errors come when rows are taken.
    public func rows(_ paths: [PropertyPath], of query: DocumentQuery = DocumentQuery()) -> Rows<PropertyRow> {
        rows(paths, query, counting: nil)
    }

    /// The different combinations that properties of a query's documents have, each once.
    ///
    /// All that were given are held in memory, until the rows end.
    ///
    /// - Parameters:
    ///   - paths: which properties. What differs in nothing that an index tells apart is the same.
    ///   - query: as for ``rows(_:of:)``. ``DocumentQuery/skip`` and ``DocumentQuery/limit`` count rows. In an order of other
    ///     properties, a row stands where the first document with it does.
    public func distinctRows(_ paths: [PropertyPath], of query: DocumentQuery = DocumentQuery()) -> Rows<PropertyRow> {
        var all = query
        (all.skip, all.limit) = (0, nil)
        return rows(paths, all, counting: query)
    }

    /// - Parameter counted: what counts different rows; nil if every document has its row.
    private func rows(
        _ paths: [PropertyPath], _ query: DocumentQuery, counting counted: DocumentQuery?
    ) -> Rows<PropertyRow> {
        Rows(waitingIn: storage) { [self] () throws(CofferError) in
            try bringUpToDate(for: query)
        } batches: { [self] () throws(CofferError) in
            var count = try RowCount(skip: counted?.skip ?? 0, limit: counted?.limit)
            var documents = documents(query).makeIterator()
            var seen: Set<[UInt8]>? = counted == nil ? nil : []
            return { () throws(CofferError) in
                while !count.isOver {
                    var batch: [PropertyRow] = []
                    while batch.count < BatchLimit().rowCount, let revision = try documents.next() {
                        let values = try revision.values(at: paths)
                        if seen != nil, seen?.insert(try CollationKey(of: values).bytes).inserted != true { continue }
                        batch.append(PropertyRow(paths, values))
                    }
                    guard !batch.isEmpty else { return [] }
                    let taken = count.take(batch)
                    if !taken.isEmpty { return taken }
                }
                return []
            }
        }
    }

    /// Groups of the documents that a query asks for, one row for each set of equal properties.
    ///
    /// ```swift
    /// let report = database.groups(by: ["address.city"], of: query, .count, .average("age"))
    /// for row in try report.all { lines.append((row["address.city"], row.aggregates)) }
    /// ```
    ///
    /// Rows come by their properties, in the order of ``DocumentQuery/Order/ascending(_:)``. All are held in memory.
    ///
    /// - Parameters:
    ///   - paths: what the documents of a group have in common, be it that they lack it. Without any, there is one row, even of no
    ///     documents.
    ///   - query: as for ``documents(_:)``. ``DocumentQuery/skip`` and ``DocumentQuery/limit`` count rows;
    ///     ``DocumentQuery/order`` means nothing.
    ///   - aggregates: what is made of a group's documents.
    public func groups(
        by paths: [PropertyPath] = [], of query: DocumentQuery = DocumentQuery(), _ aggregates: Aggregate...
    ) -> Rows<PropertyRow> {
        var all = query
        (all.order, all.skip, all.limit) = ([], 0, nil)
        return Rows(waitingIn: storage) { [self, all] () throws(CofferError) in
            try bringUpToDate(for: all)
        } batches: { [self, all] () throws(CofferError) in
            var count = try RowCount(skip: query.skip, limit: query.limit)
            var rest: ArraySlice<PropertyRow>?
            return { [self] () throws(CofferError) in
                if rest == nil { rest = count.take(try grouped(all, paths, aggregates))[...] }
                let batch = Array((rest ?? []).prefix(BatchLimit().rowCount))
                rest?.removeFirst(batch.count)
                return batch
            }
        }
    }

    private func grouped(
        _ query: DocumentQuery, _ paths: [PropertyPath], _ aggregates: [Aggregate]
    ) throws(CofferError) -> [PropertyRow] {
        var groups: [[UInt8]: DocumentGroup] = [:]
        if paths.isEmpty { groups[[]] = DocumentGroup(values: [], aggregates) }
        var documents = documents(query).makeIterator()
        while let revision = try documents.next() {
            let values = try revision.values(at: paths)
            let key = try CollationKey(of: values).bytes
            let added = try revision.values(at: aggregates.map(\.path))
            try groups[key, default: DocumentGroup(values: values, aggregates)].add(added)
        }
        return groups.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { group in
            PropertyRow(paths, group.value.values, aggregates: group.value.sums.map(\.value))
        }
    }
}

extension SavedRevision {
    fileprivate func values(at paths: [PropertyPath]) throws(CofferError) -> [JSONValue?] {
        let properties = try properties
        return paths.map { $0.value(in: properties, id: documentID) }
    }
}

/// What came of a group's documents so far.
private struct DocumentGroup {
    let values: [JSONValue?]
    var sums: [RunningAggregate]

    init(values: [JSONValue?], _ aggregates: [Aggregate]) {
        self.values = values
        sums = aggregates.map { RunningAggregate(kind: $0.kind) }
    }

    mutating func add(_ values: [JSONValue?]) throws(CofferError) {
        for (place, value) in values.enumerated() {
            guard let value, value != .null else { continue }
            try sums[place].add(value)
        }
    }
}

private struct RunningAggregate {
    let kind: Aggregate.Kind
    private var count = 0
    private var sum = NumberSum()
    private var best: (key: [UInt8], value: JSONValue)?

    init(kind: Aggregate.Kind) { self.kind = kind }

    mutating func add(_ value: JSONValue) throws(CofferError) {
        switch kind {
        case .documents, .count: count += 1
        case .sum, .average:
            guard case .number(let number) = value else { return }
            count += 1
            sum.add(number)
        case .least, .greatest:
            let key = try CollationKey(value).bytes
            let isBetter =
                best.map { best in
                    kind == .least ? key.lexicographicallyPrecedes(best.key) : best.key.lexicographicallyPrecedes(key)
                } ?? true
            if isBetter { best = (key, value) }
        }
    }

    var value: JSONValue {
        switch kind {
        case .documents, .count: .number(JSONNumber(count))
        case .sum: Self.value(sum.number)
        case .average: count == 0 ? .null : Self.value(JSONNumber(sum.number.double / Double(count)))
        case .least, .greatest: best?.value ?? .null
        }
    }

    private static func value(_ number: JSONNumber) -> JSONValue { number.isFinite ? .number(number) : .null }
}
