internal import CofferModel
internal import CofferRecords
internal import CofferSealing

/// Which rows ``DatabaseView/rows(_:)`` and ``DatabaseView/reducedRows(_:)`` give, and in which order.
public struct ViewOptions: Sendable {
    /// When a view that isn't up to date is brought up to date.
    public enum Update: Sendable {
        /// Before its rows are read.
        case before
        /// Not at all: the rows are those of the last time.
        case never
        /// In the background, once reading has begun: the rows may be those of the last time.
        case after
    }

    /// The key at which the rows start, in their direction. Default: nil, at the first row. For null: `.some(.null)`.
    public var startKey: JSONValue?

    /// The key at which the rows end, in their direction. Default: nil, at the last row. For null: `.some(.null)`.
    public var endKey: JSONValue?

    /// The document at which the rows with ``startKey`` start. Default: nil, at the first of them.
    public var startDocumentID: String?

    /// The document at which the rows with ``endKey`` end. Default: nil, at the last of them.
    public var endDocumentID: String?

    /// Whether rows right at the start are among them. Default: true.
    public var includesStart = true

    /// Whether rows right at the end are among them. Default: true.
    public var includesEnd = true

    /// Whether the last comes first. Default: false. Starts and ends are where the rows start and end, either way.
    public var isDescending = false

    /// The keys to find, in the order to give their rows in. Default: nil. With it starts and ends mean nothing.
    public var keys: [JSONValue]?

    /// How much of the end key, or of the start key where rows descend, is only the beginning of those that are meant.
    ///
    /// At 1, a string stands for all strings that begin with it, a list for all lists that begin with its elements. At 2, a
    /// list's last element may be such a string or list; and so on. All of these are among the rows, whatever is said of the
    /// document id or of the end's inclusion there. Default: 0, nothing.
    public var prefixMatchLevel = 0

    /// How many rows are skipped before the first. Default: 0. Skipping them takes as long as reading them.
    public var skip = 0

    /// How many rows are given at most. Default: nil, all. As with ``skip``, a count below zero is `invalidArgument` (400)
    /// when they are taken.
    public var limit: Int?

    /// Whether the documents' current revisions are read together with the rows. Default: false.
    public var loadsDocuments = false

    /// When the view is brought up to date. Default: ``Update/before``.
    public var update = Update.before

    /// Says which rows are given; ``skip`` and ``limit`` count those. Default: nil, all.
    public var filter: (@Sendable (ViewRow) throws -> Bool)?

    /// Says whether the first row comes before the second, where they should be in another order than by key. All rows
    /// are held in memory then. Default: nil, they come by key.
    public var sort: (@Sendable (ViewRow, ViewRow) -> Bool)?

    /// How many elements of a list ``DatabaseView/reducedRows(_:)`` groups by; other keys are groups of their own. Default:
    /// nil, all rows are reduced to one. `.max` groups by whole keys.
    public var groupLevel: Int?

    /// The options that are their defaults.
    public init() {}
}

extension ViewOptions {
    /// The places of the entries that are asked for, one stretch after another.
    ///
    /// - Throws: `invalidJSON` (400) for a key that JSON can't say.
    func ranges() throws(CofferError) -> [EntryRange] {
        if let keys {
            return try keys.map { (key) throws(CofferError) in
                let bytes = try CollationKey(key).bytes
                return EntryRange(
                    lower: EntryPosition(key: bytes), upper: EntryPosition(key: bytes, id: EntryPosition.afterIDs))
            }
        }
        let (low, high) = isDescending ? (endKey, startKey) : (startKey, endKey)
        let (lowID, highID) = isDescending ? (endDocumentID, startDocumentID) : (startDocumentID, endDocumentID)
        let (includesLow, includesHigh) = isDescending ? (includesEnd, includesStart) : (includesStart, includesEnd)
        var range = EntryRange(lower: EntryPosition(key: []), upper: EntryPosition(key: [CollationKey.aboveAll]))
        if let low {
            range.lower.key = try CollationKey(low).bytes
            if let lowID {
                // Nothing comes between an id and the same with a zero byte behind it.
                range.lower.id = Array(lowID.utf8) + (includesLow ? [] : [0])
            } else if !includesLow {
                range.lower.id = EntryPosition.afterIDs
            }
        }
        guard let high else { return [range] }
        if prefixMatchLevel > 0 {
            range.upper.key = try CollationKey.upperBound(ofPrefix: high, level: prefixMatchLevel)
            return [range]
        }
        range.upper.key = try CollationKey(high).bytes
        if let highID {
            range.upper.id = includesHigh ? Array(highID.utf8) : EntryPosition.right(before: Array(highID.utf8))
        } else if includesHigh {
            range.upper.id = EntryPosition.afterIDs
        }
        return [range]
    }
}

extension ViewOptions {
    /// The rows of one key: a string, a number, a list, or anything else that JSON can say.
    public init(key: some JSONConvertible) { self.init(from: key, through: key) }

    /// The rows from one key to another, both included.
    public init(from first: some JSONConvertible, through last: some JSONConvertible) {
        self.init()
        startKey = first.jsonValue
        endKey = last.jsonValue
    }
}
