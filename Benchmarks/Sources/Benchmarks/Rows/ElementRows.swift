internal import Coffer
internal import Foundation

/// Finding documents by an element of a list: by an index of declared properties, against a view that emits the elements.
struct ElementRows {
    private let bench: Bench
    private let database: Database
    private let view: DatabaseView
    private let documentCount: Int
    private let groupCount: Int

    /// Documents that have an element in common.
    private static let groupSize = 100

    init(_ bench: Bench) throws {
        self.bench = bench
        let set = try bench.documents(isInOrder: false)
        documentCount = set.all.count
        let groupCount = max(1, set.all.count / Self.groupSize)
        self.groupCount = groupCount
        database = try bench.newStore(cacheByteCount: DocumentSet.cacheByteCount)
        view = database.view(named: "by group")
        try view.setMap(version: "1") { revision, emit in
            guard case .array(let groups) = try revision["groups"] else { return }
            for group in groups { emit(group) }
        }
        try database.createIndex(named: "groups", on: "groups[]")
        for start in stride(from: 0, to: set.all.count, by: 10_000) {
            try database.inTransaction {
                for number in start..<min(start + 10_000, set.all.count) {
                    let document = set.all[number]
                    let groups = #"{"groups":["g\#(number % groupCount)","h\#(number / Self.groupSize)"],"#
                    try database.save(json: Data(groups.utf8) + document.json.dropFirst(), withID: document.id)
                }
            }
        }
        try view.updateIndex()
        try database.updateIndexes()
    }

    func rows() throws -> [Row] {
        defer { try? database.close() }
        return [try containing()]
    }

    private func containing() throws -> Row {
        bench.say("documents that contain an element …")
        var random = SplitMix(state: 5)
        let groups = (0..<bench.size(200, quick: 50)).map { _ in "g\(random.next() % UInt64(groupCount))" }
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            try measure {
                var options = ViewOptions()
                options.loadsDocuments = true
                for group in groups {
                    options.startKey = .string(group)
                    options.endKey = .string(group)
                    try check(view.rows(options).all.count { $0.revision != nil })
                }
            }
        } own: {
            try measure {
                for group in groups {
                    let query = DocumentQuery(where: Property("groups").hasElement(group))
                    try check(database.documents(query).all.count)
                }
            }
        }
        return Row(
            "query: an element, among \(documentCount)", processorTime: comparison, atMost: 1.2,
            explanation: """
                the \(Self.groupSize) documents that have an element in a list, found by an index over its elements, against a \
                view that emits the elements, asked for the same documents
                """)
    }

    private func check(_ count: Int) throws {
        guard count == Self.groupSize else { throw Failure("\(count) documents instead of \(Self.groupSize)") }
    }
}
