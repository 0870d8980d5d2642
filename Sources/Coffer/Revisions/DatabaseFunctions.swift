internal import CofferModel
internal import CofferRecords
internal import CofferSealing
internal import Synchronization

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
