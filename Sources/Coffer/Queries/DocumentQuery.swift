internal import CofferModel
public import CofferSealing

/// Which documents ``Database/documents(_:)`` gives, and in which order.
///
/// ```swift
/// var query = DocumentQuery(where: Property("type") == "person" && Property("address.city") == "Berlin")
/// query.order = [.ascending("name")]
/// query.limit = 20
/// for try await person in database.documents(query) { … }
/// ```
public struct DocumentQuery: Sendable {
    /// A property that documents are sorted by.
    public struct Order: Sendable {
        /// Its path.
        public let path: PropertyPath
        /// Whether the last comes first.
        public let isDescending: Bool

        /// Documents without it come first, then by its value: null, false, true, numbers, strings, lists, objects.
        public static func ascending(_ path: PropertyPath) -> Order { Order(path: path, isDescending: false) }

        /// The other way round: documents without it come last.
        public static func descending(_ path: PropertyPath) -> Order { Order(path: path, isDescending: true) }
    }

    /// The condition that documents must meet. Default: nil, all documents.
    public var predicate: DocumentPredicate?

    /// The sort order: the first property that differs decides; then by their ids, in the direction of the last.
    /// Default: nothing; they come in any order then.
    public var order: [Order] = []

    /// How many documents are skipped before the first. Default: 0.
    public var skip = 0

    /// How many documents are given at most. Default: nil, all. As with ``skip``, a count below zero is `invalidArgument` (400)
    /// when they are taken.
    public var limit: Int?

    /// A query for documents that are like this; nil for all documents.
    public init(where predicate: DocumentPredicate? = nil) { self.predicate = predicate }

    /// A query for documents that are as an expression says: `try DocumentQuery(where: "age > 3")`.
    ///
    /// - Throws: `invalidArgument` (400), naming the byte that can't be read: see `DocumentPredicate.init(_:)`.
    public init(where expression: String) throws(CofferError) { predicate = try DocumentPredicate(expression) }
}

/// An index that was declared over properties: see `createIndex(named:on:)`.
public struct PropertyIndex: Sendable, Equatable {
    /// Its name.
    public let name: String

    /// The properties that it is over, the most important first.
    public let paths: [PropertyPath]

    /// How many entries it had when it was last brought up to date: one for each document, or, where a path ends in a list's
    /// elements, for each of those.
    public let documentCount: Int

    /// Whether one of its paths is over a list's elements, so that it has an entry for each of them.
    public var isOverElements: Bool { paths.contains(where: \.isOverElements) }

    /// Whether documents were saved since.
    public let isStale: Bool

    /// Whether it was ever brought up to date.
    let hasBeenMade: Bool
}

/// How ``Database/documents(_:)`` finds documents: what ``Database/explain(_:)`` tells.
public struct QueryPlan: Sendable, CustomStringConvertible {
    /// The index that is read; nil if all documents are.
    public let index: PropertyIndex?

    /// How many of the index's properties narrow what is read of it, from the first on.
    public let narrowingCount: Int

    /// Whether documents are looked at that may turn out not to be meant.
    public let checksDocuments: Bool

    /// Whether documents come in another order than they are read in, so that all that are meant have to be read first. Their
    /// ids and what they are sorted by are held in memory; with a limit, of no more than twice as many, and a thousand.
    public let sortsInMemory: Bool

    /// The plan in words, without values.
    public var description: String {
        var text: String
        if let index {
            text = "reads the index \(index.name)"
            if narrowingCount > 0 {
                text += ", narrowed by " + index.paths.prefix(narrowingCount).map(\.description).joined(separator: ", ")
            }
        } else {
            text = "reads all documents"
        }
        if checksDocuments { text += "; checks each document" }
        if sortsInMemory { text += "; sorts in memory" }
        return text
    }
}
