internal import CofferModel
internal import CofferRecords
public import CofferSealing
internal import Synchronization

/// A view: an index over a database's documents whose entries your own function makes.
///
/// ```swift
/// let byCity = database.view(named: "people by city")
/// try byCity.setMap(version: "1", documentType: "person") { person, emit in
///     if let city = try person["city"] { emit(city, try person["name"] ?? nil) }
/// }
/// var options = ViewOptions()
/// options.startKey = "B"
/// for row in try byCity.rows(options).all { show(row.key, row.value, row.documentID) }
/// ```
///
/// The entries are kept in the database, encrypted as it is, and survive a change of its key; the functions aren't kept,
/// and are given again whenever the database was opened. A view is brought up to date when it is asked, from what was
/// saved since. Keys may be any JSON, and are sorted: null, false, true, numbers, strings by code points, lists element
/// by element, objects member by member; rows with equal keys by the bytes of their documents' ids. Safe from any
/// thread.
public final class DatabaseView: Sendable {
    /// The database that it is a view of.
    public let database: Database

    /// The view's name, 1 to 400 bytes.
    public let name: String

    init(database: Database, name: String) {
        self.database = database
        self.name = name
    }

    /// A function that makes a view's entries: it gets the current revision of a document and calls `emit` for each
    /// entry.
    ///
    /// It must make the same of the same revision whenever it is called, on whatever thread, and can't write. Deleted
    /// documents and those whose id starts with `_design/` are not given to it.
    public typealias Map = @Sendable (_ revision: SavedRevision, _ emit: Emitter) throws -> Void

    // MARK: Functions

    /// Gives the view its function.
    ///
    /// A document for which it throws, or emits what can't be a key or a value, has no rows: see ``failedDocumentIDs(limit:)``.
    ///
    /// - Parameters:
    ///   - version: of the function, at most some hundred bytes. With another than the entries were made by, they are all
    ///     rebuilt when the view is next brought up to date.
    ///   - documentType: only documents whose property `type` is this string have rows. Default: nil, all documents.
    ///   - reduction: what ``reducedRows(_:)`` makes of rows. Default: nil, nothing.
    ///   - map: makes the entries. Runs within a transaction, when the view is brought up to date.
    /// - Returns: whether the entries will be rebuilt, or for the first time.
    /// - Throws: `invalidArgument` (400) for a name or a version that is too long; `damaged` and `closed` (500).
    @discardableResult
    public func setMap(
        version: String, documentType: String? = nil, reduction: Reduction? = nil, _ map: @escaping Map
    ) throws(CofferError) -> Bool {
        let functions = ViewFunctions(version: version, documentType: documentType, reduction: reduction, map: map)
        let index = functions.definition(ofView: name)
        try index.check()
        database.storage.views.setFunctions(functions, ofView: name)
        return try database.storage.readIndexes { (tables) throws(CofferError) in try tables.row(of: index) } == nil
    }

    /// Whether the view was given its function since the database was opened.
    public var hasMap: Bool { functions != nil }

    /// Whether the view was given a reduction since the database was opened.
    public var hasReduction: Bool { functions?.reduction != nil }

    /// The type of documents that it is limited to; nil for all.
    public var documentType: String? { functions?.documentType }

    private var functions: ViewFunctions? { database.storage.views.functions(ofView: name) }

    var subject: String { "view \(name) of \(database.storage.subject)" }

    /// - Throws: `invalidArgument` (400) when it has no function.
    func definition() throws(CofferError) -> IndexDefinition {
        guard let functions else {
            throw CofferError(
                .invalidArgument, of: subject, "no map function was registered since the database was opened")
        }
        return functions.definition(ofView: name)
    }

    /// - Throws: `invalidArgument` (400) when it has none.
    func reduction() throws(CofferError) -> Reduction {
        guard let reduction = functions?.reduction else {
            throw CofferError(
                .invalidArgument, of: subject, "no reduction was registered since the database was opened")
        }
        return reduction
    }

    // MARK: Its index

    /// Brings the view up to date with what was committed, and returns how many documents were looked at.
    ///
    /// Takes its turn as a writer, where there is something to do, in transactions between which others write. Inside a
    /// transaction it is part of that, and sees what it has saved.
    ///
    /// - Throws: `invalidArgument` (400) when the view was given no function; `readOnly` (403) where it would have to be
    ///   brought up to date in a database that is open for reading only; `busy` (503), `noSpace` (507), `damaged` (500).
    @discardableResult
    public func updateIndex() throws(CofferError) -> Int {
        try bringUpToDate().documentCount
    }

    /// Brings it up to date by the function that it has, also where it is given another one meanwhile.
    func bringUpToDate() throws(CofferError) -> (row: IndexRow, documentCount: Int) {
        while true {
            let definition = try definition()
            let result = try database.storage.healingIndexes { () throws(CofferError) in
                try database.storage.update(definition, making: true, in: database)
            }
            if let result { return result }
        }
    }

    /// Whether documents were saved, or the function was changed, since the view was last brought up to date.
    public var isStale: Bool {
        get throws(CofferError) {
            let definition = try definition()
            return try database.storage.readIndexes { (tables) throws(CofferError) in
                guard let row = try tables.row(of: definition) else { return true }
                return try !tables.isUpToDate(row)
            }
        }
    }

    /// The sequence of the last revision that it knows; 0 before it was first brought up to date.
    public var lastSequenceIndexed: Int {
        get throws(CofferError) { try row?.sequence.value ?? 0 }
    }

    /// How many rows it had when it was last brought up to date. Takes no time to speak of.
    public var totalRows: Int {
        get throws(CofferError) { try row?.entryCount ?? 0 }
    }

    private var row: IndexRow? {
        get throws(CofferError) {
            try database.storage.readIndexes { (tables) throws(CofferError) in
                try tables.indexes.areUsable() ? tables.indexes.index(.view, name) : nil
            }
        }
    }

    /// The ids of documents that have no rows because the function threw, or what it emitted can't be a key or a value, when
    /// the view was last brought up to date. Sorted by their bytes.
    ///
    /// - Parameter limit: how many at most. Default: 1,000. One below zero is `invalidArgument` (400).
    public func failedDocumentIDs(limit: Int = 1_000) throws(CofferError) -> [String] {
        try database.storage.readIndexes { (tables) throws(CofferError) in
            guard try tables.indexes.areUsable(), let row = try tables.indexes.index(.view, name) else { return [] }
            return try tables.indexes.failures(of: row.number, limit: RowCount.rowCount(limit))
        }
    }

    /// Drops the view's entries and what the database knows of it. Its function stays, so that asking it rebuilds them.
    ///
    /// - Returns: whether there was anything to drop.
    /// - Throws: `readOnly` (403), `busy` (503), `damaged` (500).
    @discardableResult
    public func deleteIndex() throws(CofferError) -> Bool {
        try database.storage.deleteIndex(.view, name)
    }

    /// Deletes the view: its entries and its function.
    ///
    /// - Throws: as `deleteIndex()`.
    public func delete() throws(CofferError) {
        try deleteIndex()
        database.storage.views.setFunctions(nil, ofView: name)
    }
}

extension Database {
    // MARK: Views

    /// The view of that name, whether it exists or not. Touches no disk. All that are asked for by one name are one view.
    public func view(named name: String) -> DatabaseView { DatabaseView(database: self, name: name) }

    /// The view of that name, if it has a function, or entries from an earlier time; otherwise nil.
    ///
    /// - Throws: `damaged` and `closed` (500).
    public func existingView(named name: String) throws(CofferError) -> DatabaseView? {
        let view = view(named: name)
        if view.hasMap { return view }
        return try viewNames.contains { $0.utf8.elementsEqual(name.utf8) } ? view : nil
    }

    /// The names of the views that have entries in the database, sorted by their bytes.
    public var viewNames: [String] {
        get throws(CofferError) {
            try storage.listIndexes(.view) { (row, _) throws(CofferError) in row.name }
        }
    }
}

/// Takes the entries that a view's function makes of a document: see ``DatabaseView/Map``. Not for use after its return.
public final class Emitter {
    private(set) var entries: [MappedEntry] = []
    private(set) var failure: CofferError?

    init() {}

    /// Adds a row for the document.
    ///
    /// - Parameters:
    ///   - key: what the row is found and sorted by. Any JSON, of any length.
    ///   - value: what the row says. Any JSON. Default: null.
    public func callAsFunction(_ key: some JSONConvertible, _ value: some JSONConvertible = JSONValue.null) {
        do throws(CofferError) {
            let key = try CollationKey(key.jsonValue)
            let value = value.jsonValue
            entries.append(MappedEntry(key: key.bytes, value: value.isNull ? nil : try value.canonicalJSON()))
        } catch {
            failure = failure ?? error
        }
    }

    /// Adds a row for the document under a key that it may not have: `emit(try revision["city"], 1)`. Without one the key is
    /// null, as CouchDB has it.
    @_disfavoredOverload
    public func callAsFunction(_ key: JSONValue?, _ value: some JSONConvertible = JSONValue.null) {
        self(key ?? .null, value)
    }
}

/// What the app has given a view.
struct ViewFunctions: Sendable {
    let version: String
    let documentType: String?
    let reduction: Reduction?
    let map: DatabaseView.Map

    /// The index that holds what they make.
    func definition(ofView name: String) -> IndexDefinition {
        let parts = [version] + (documentType.map { [$0] } ?? [])
        return IndexDefinition(kind: .view, name: name, definition: parts.jsonValue.description) {
            [map, documentType] revision in
            if let documentType {
                guard case .string(let type)? = try revision["type"], type.utf8.elementsEqual(documentType.utf8) else {
                    return []
                }
            }
            let emitter = Emitter()
            try map(revision, emitter)
            if let failure = emitter.failure { throw failure }
            return emitter.entries
        }
    }
}

/// The functions that the app has given the views of an open database. Safe from any thread.
final class OpenViews: StorageCompanion {
    /// By the UTF-8 of the views' names.
    private let functions = Lock<[[UInt8]: ViewFunctions]>([:])

    func functions(ofView name: String) -> ViewFunctions? { functions.withLock { $0[Array(name.utf8)] } }

    func setFunctions(_ new: ViewFunctions?, ofView name: String) {
        // Let go of outside the lock: what a function holds may end here.
        _ = functions.withLock { functions in
            let key = Array(name.utf8)
            defer { functions[key] = new }
            return functions[key]
        }
    }
}

extension Storage {
    /// The functions of its views.
    var views: OpenViews { companions[OpenViews.self] }
}
