package import CofferModel

/// Where in a feed of changes somebody is, as the server says it: a number, a string or a list that means something to it alone.
package struct FeedPosition: Sendable, Equatable {
    package let value: JSONValue

    package init(_ value: JSONValue) { self.value = value }

    /// Before the first change.
    package static let start = FeedPosition(0)

    /// As `since` has it in a query, not percent-encoded.
    package var text: String { value.stringValue ?? value.description }
}

/// One row of a feed: a document and those of its revisions that nothing has replaced.
package struct ChangedRow: Sendable, Equatable {
    package var position: FeedPosition
    package var id: String
    package var revisions: [RevisionID]
    package var isDeletion: Bool
    /// Whether it has revisions whose ids none can have here.
    package private(set) var hasForeignRevisions = false

    package init(position: FeedPosition, id: String, revisions: [RevisionID], isDeletion: Bool) {
        self.position = position
        self.id = id
        self.revisions = revisions
        self.isDeletion = isDeletion
    }

    /// - Throws: ``SyncError`` 502.
    package init(_ json: JSONValue) throws(SyncError) {
        guard let position = json["seq"], !position.isNull, let id = json["id"]?.stringValue,
            let changes = json["changes"]?.arrayValue
        else { throw .garbage("a row of _changes without seq, id or changes") }
        let revisions = changes.compactMap { $0["rev"]?.stringValue.flatMap(RevisionID.init) }
        self.init(
            position: FeedPosition(position), id: id, revisions: revisions,
            isDeletion: json["deleted"]?.boolValue ?? false)
        hasForeignRevisions = revisions.count < changes.count
    }

    package var json: JSONValue {
        var row: JSONObject = ["seq": position.value, "id": .string(id)]
        row["changes"] = .array(revisions.map { ["rev": .string($0.description)] })
        if isDeletion { row["deleted"] = true }
        return .object(row)
    }
}

/// An answer of `_changes` that is not continuous.
package struct ChangesPage: Sendable {
    package var rows: [ChangedRow]
    package var last: FeedPosition
    /// How many more there are; nil if the server doesn't say.
    package var pendingCount: Int?

    package init(rows: [ChangedRow], last: FeedPosition, pendingCount: Int?) {
        self.rows = rows
        self.last = last
        self.pendingCount = pendingCount
    }

    /// - Throws: ``SyncError`` 502.
    package init(_ json: JSONValue) throws(SyncError) {
        guard let results = json["results"]?.arrayValue, let last = json["last_seq"], !last.isNull else {
            throw .garbage("an answer of _changes without results or last_seq")
        }
        var rows: [ChangedRow] = []
        rows.reserveCapacity(results.count)
        for result in results { rows.append(try ChangedRow(result)) }
        self.init(rows: rows, last: FeedPosition(last), pendingCount: json["pending"])
    }

    package var json: JSONValue {
        var page: JSONObject = ["results": .array(rows.map(\.json)), "last_seq": last.value]
        page["pending"] = pendingCount.map { .number(JSONNumber(Int64($0))) }
        return .object(page)
    }
}

/// Takes a continuous feed apart into its lines. Empty ones are heartbeats.
package struct LineSplitter: Sendable {
    /// A row of a feed has its id and revisions: a longer one is invalid.
    static let byteLimit = 1 << 20

    private var rest: [UInt8] = []

    package init() {}

    /// The lines that `bytes` end, without their ends.
    ///
    /// - Throws: ``SyncError`` 502 for one that is too long.
    package mutating func lines(_ bytes: [UInt8]) throws(SyncError) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var start = 0
        while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
            var line = rest + bytes[start..<end]
            rest = []
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            lines.append(line)
            start = end + 1
        }
        rest += bytes[start...]
        guard rest.count <= Self.byteLimit, lines.allSatisfy({ $0.count <= Self.byteLimit }) else {
            throw .garbage("a line of _changes with more than \(Self.byteLimit) bytes")
        }
        return lines
    }
}
