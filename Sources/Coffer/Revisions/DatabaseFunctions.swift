internal import CofferModel
internal import CofferRecords
public import CofferSealing
internal import Synchronization

/// Says whether a revision passes, given the parameters of whoever asks.
public typealias RevisionFilter = @Sendable (_ revision: SavedRevision, _ parameters: JSONObject) throws -> Bool

extension Database {
    // MARK: Functions

    /// Has every revision looked at before it is saved, those from peers too.
    ///
    /// ```swift
    /// database.setValidation(named: "tasks have titles") { revision in
    ///     let type: String? = try revision["type"]
    ///     if type == "task", try revision["title"] == nil { try revision.reject("a task needs a title") }
    /// }
    /// ```
    ///
    /// Validations run within the save, on its thread, one after another in the order of their names; what they read is what
    /// the transaction sees. They can't write: that is a 400. They hold while the database is open and are not stored. The
    /// same edit saved again is the same revision, which nothing looks at twice.
    ///
    /// - Parameters:
    ///   - name: whatever tells it from others.
    ///   - validation: throws to refuse the revision: with ``ProposedRevision/reject(_:)``, or any error, which becomes the
    ///     cause of a `rejected` (403). Nil removes the validation of that name.
    public func setValidation(named name: String, _ validation: (@Sendable (ProposedRevision) throws -> Void)?) {
        storage.functions.setValidation(name, validation)
    }

    /// Whether there is a validation of that name.
    public func hasValidation(named name: String) -> Bool { storage.functions.hasValidation(name) }

    /// Names a function that says which revisions pass, for ``changes(since:options:)`` and for replications.
    ///
    /// It holds while the database is open and is not stored.
    ///
    /// - Parameters:
    ///   - name: whatever tells it from others.
    ///   - filter: is given a revision, deletions too, and parameters. Nil removes the filter of that name.
    public func setFilter(named name: String, _ filter: RevisionFilter?) { storage.functions.setFilter(name, filter) }

    /// The filter of that name; nil if there isn't one.
    public func filter(named name: String) -> RevisionFilter? { storage.functions.filter(name) }
}

/// A revision that is about to be saved, for a validation to look at: see ``Database/setValidation(named:_:)``.
public struct ProposedRevision: Sendable {
    /// The document that it is to be a revision of.
    public var document: Document { revision.document }

    /// The document's id.
    public var documentID: String { document.documentID }

    /// The id that the revision will have.
    public var revisionID: RevisionID { revision.revisionID }

    /// Whether it deletes the document.
    public var isDeletion: Bool { revision.isDeletion }

    /// Whether it comes from a peer, and not from a save in this process.
    public let isFromPeer: Bool

    /// The revision that it replaces; nil for a first one, and where that is not known.
    public let parentRevision: SavedRevision?

    private let revision: SavedRevision

    init(_ revision: SavedRevision, parentRevision: SavedRevision?, isFromPeer: Bool) {
        self.revision = revision
        self.parentRevision = parentRevision
        self.isFromPeer = isFromPeer
    }

    /// The properties that it would have.
    public var properties: JSONObject {
        get throws(CofferError) { try revision.properties }
    }

    /// One property; nil when it has none of that name.
    public subscript(key: String) -> JSONValue? {
        get throws(CofferError) { try properties[key] }
    }

    /// One property as your own type; nil if no property has that name, or if it does not fit.
    @_disfavoredOverload
    public subscript<Value: JSONConvertible>(key: String) -> Value? {
        get throws(CofferError) { try properties[key] }
    }

    /// The names of the attachments that it would have.
    public var attachmentNames: [String] {
        get throws(CofferError) { try revision.attachmentStubs.map(\.name) }
    }

    /// The names of the properties that differ from those of ``parentRevision``, added and removed ones too, in canonical
    /// order. All of them where there is no parent, or where its properties are gone.
    public var changedKeys: [String] {
        get throws(CofferError) {
            let new = try properties
            var old: JSONObject = [:]
            if let parentRevision, try parentRevision.propertiesAvailable { old = try parentRevision.properties }
            var merged = old
            for (key, value) in new { merged[key] = value }
            return merged.map(\.key).filter { new[$0] != old[$0] }
                .sorted { $0.utf16.lexicographicallyPrecedes($1.utf16) }
        }
    }

    /// Refuses the revision: saving it fails with `rejected` (403) and this message.
    ///
    /// - Parameter message: why, for whoever reads the error. Put nothing into it that must not be logged.
    public func reject(_ message: String) throws(CofferError) -> Never {
        throw CofferError(.rejected, of: document.subject, message)
    }
}

/// The functions that an app has given an open database, by their names. They are not stored.
final class DatabaseFunctions: StorageCompanion {
    private struct State {
        /// By the bytes of their names; validations run in the order of these.
        var validations: [(name: String, body: @Sendable (ProposedRevision) throws -> Void)] = []
        var filters: [(name: String, body: RevisionFilter)] = []
    }

    private let state = Lock(State())
    private let mayValidate = Atomic(false)

    // What was set before is let go of outside the lock: what it holds may end here.

    func setValidation(_ name: String, _ body: (@Sendable (ProposedRevision) throws -> Void)?) {
        _ = state.withLock { state in
            let former = Self.set(name, body, in: &state.validations)
            mayValidate.store(!state.validations.isEmpty, ordering: .releasing)
            return former
        }
    }

    func setFilter(_ name: String, _ body: RevisionFilter?) {
        _ = state.withLock { Self.set(name, body, in: &$0.filters) }
    }

    func filter(_ name: String) -> RevisionFilter? {
        state.withLock { state in state.filters.first { $0.name.utf8.elementsEqual(name.utf8) }?.body }
    }

    func hasValidation(_ name: String) -> Bool {
        state.withLock { state in state.validations.contains { $0.name.utf8.elementsEqual(name.utf8) } }
    }

    /// Whether there are validations: costs next to nothing.
    var hasValidations: Bool { mayValidate.load(ordering: .acquiring) }

    /// Lets the validations look at a revision that is about to be inserted.
    ///
    /// - Throws: `rejected` (403). Nothing was changed then.
    func validate(
        _ id: RevisionID, _ body: CanonicalBody, isDeletion: Bool, of document: Document, number: DocumentNumber?,
        parent: SequenceNumber?, isFromPeer: Bool = false, in writer: borrowing Writer
    ) throws(CofferError) {
        guard hasValidations else { return }
        let validations = state.withLock(\.validations)
        guard !validations.isEmpty else { return }
        try writer.checkNotInFunction()
        let documentID = try document.checkedID
        let next = writer.state.nextSequence
        let stored = RevisionRow(
            sequence: next, document: number ?? DocumentNumber(first: next), parent: parent, isDeletion: isDeletion,
            id: id, body: body.bytes)
        let parentRevision = try parent.map { (sequence) throws(CofferError) in
            SavedRevision(document: document, try writer.tables.revision(sequence: sequence, of: documentID))
        }
        let revision = ProposedRevision(
            SavedRevision(document: document, stored), parentRevision: parentRevision, isFromPeer: isFromPeer)
        try writer.state.asFunction { () throws(CofferError) in
            for (name, validation) in validations {
                do {
                    try validation(revision)
                } catch let error as CofferError {
                    throw error.about(document.subject)
                } catch {
                    throw CofferError(.rejected, of: document.subject, "validation \(name) refused it", cause: error)
                }
            }
        }
    }

    /// - Returns: what had that name before.
    private static func set<Body>(
        _ name: String, _ body: Body?, in all: inout [(name: String, body: Body)]
    ) -> (name: String, body: Body)? {
        let former = all.firstIndex { $0.name.utf8.elementsEqual(name.utf8) }.map { all.remove(at: $0) }
        guard let body else { return former }
        let place = all.firstIndex { name.utf8.lexicographicallyPrecedes($0.name.utf8) } ?? all.count
        all.insert((name, body), at: place)
        return former
    }
}

extension Storage {
    /// The functions that the app has given the database.
    var functions: DatabaseFunctions { companions[DatabaseFunctions.self] }
}

/// What the rules of saving ask of the open database beside the writer, found when it is asked for.
struct SaveContext {
    private let storage: Storage

    init(of storage: Storage) { self.storage = storage }

    /// The validations that look at each revision.
    var functions: DatabaseFunctions { storage.functions }

    /// What contents are called by now.
    var renamedContents: RenamedContents { storage.renamedContents }
}
