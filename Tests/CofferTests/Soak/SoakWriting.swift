import Foundation
import Synchronization

@testable import Coffer
import TestSupport

/// How a body looks to `Codable`.
struct SoakBody: Codable, Sendable {
    var owner: String
    var n: Int
    var t: String
    var blob: Blob?
}

/// What a transaction that is to be rolled back throws.
struct SoakRolledBack: Error {}

extension SoakActor {
    /// Does one thing, and notes what must be there after it.
    func act(_ action: SoakAction, _ place: SoakPlace, _ random: inout SeededNumbers) throws {
        model.trail.note("\(action)")
        let database = place.database
        switch action {
        case .save, .rewrite, .change, .refuse, .raise: try save(action, place, &random)
        case .delete: try delete(database, &random)
        case .purge: try purge(database, &random)
        case .fork: try fork(database, &random)
        case .merge: try merge(database, &random)
        case .expire, .keep: try expire(action, database, &random)
        case .attach, .stream, .blob: try saveDraft(action, database, &random)
        case .local: try saveLocal(database, &random)
        case .transact: try transact(place, &random, depth: 0)
        case .rollBack: try rollBack(place, &random, depth: 0)
        case .read, .list, .feed, .view, .query, .count: try look(action, database, &random)
        case .compact, .verify, .backup, .rekey, .keys, .index: try tend(action, place, &random)
        case .live, .open, .owe, .close, .cancel: break
        }
    }

    /// An id to save under, of few, so that documents come and go; nil where all of them will expire.
    func freeID(_ random: inout SeededNumbers) -> String? {
        let ids = (0..<16).map { "\(name)-\($0)" }.filter { model.documents[$0]?.expiration == nil }
        return random.pick(ids)
    }

    func json(_ content: SoakContent) -> Data {
        Data(#"{"owner":"\#(name)","n":\#(content.number),"t":"\#(content.text)"}"#.utf8)
    }

    // MARK: Whole values

    private func save(_ action: SoakAction, _ place: SoakPlace, _ random: inout SeededNumbers) throws {
        let database = place.database
        switch action {
        case .raise:
            try database.update(SoakCounter.id, as: SoakCounter.self) { $0.n += 1 }
            place.store.raisedCount.add(1, ordering: .relaxed)
        case .change:
            guard let id = random.pick(model.live), var content = model.documents[id]?.current else { return }
            let parent = model.documents[id]?.winner
            content.number = nextContent()
            let (number, text) = (content.number, content.text)
            let revision = try database.update(id, as: SoakBody.self) { ($0.n, $0.t) = (number, text) }
            model.note(id, revision.revisionID, content, after: parent)
        case .refuse:
            guard let id = random.pick(model.live) else { return }
            let body = json(SoakContent(number: nextContent()))
            try refused(id) { try database.save(json: body, withID: id) }
        default:
            guard let id = action == .save ? freeID(&random) : random.pick(model.live) else { return }
            let (content, parent) = next(id)
            let revision = try database.save(json: json(content), withID: id, replacing: parent)
            model.note(id, revision.revisionID, content, after: parent)
        }
    }

    /// What a save of a whole value under `id` makes of it, and what it replaces. Attachments stay; a deletion has none.
    func next(_ id: String) -> (content: SoakContent, parent: RevisionID?) {
        let document = model.documents[id]
        let content = SoakContent(number: nextContent(), attachments: document?.current?.attachments ?? [:])
        return (content, document?.winner)
    }

    func refused(_ id: String, _ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as CofferError where error.code == .conflict {
            return
        }
        throw SoakMismatch("\(id) was saved as new, and is there already")
    }

    // MARK: Drafts

    private func saveDraft(_ action: SoakAction, _ database: Database, _ random: inout SeededNumbers) throws {
        guard let id = freeID(&random) else { return }
        let (draft, content) = try draft(action, id, database, &random)
        let parent = draft.parentRevisionID
        model.note(id, try draft.save().revisionID, content, after: parent)
    }

    /// A draft with another content, attached from memory or a stream or as a blob.
    func draft(
        _ action: SoakAction, _ id: String, _ database: Database, _ random: inout SeededNumbers
    ) throws -> (UnsavedRevision, SoakContent) {
        let draft = try database.document(withID: id).newRevision()
        try soakExpect(
            draft.parentRevisionID == model.documents[id]?.winner,
            "\(id) is at \(String(describing: draft.parentRevisionID)), not \(String(describing: model.documents[id]))")
        var content = model.documents[id]?.current ?? SoakContent(number: 0)
        content.number = nextContent()
        draft["owner"] = name
        draft["n"] = content.number
        draft["t"] = content.text
        let number = random.below(SoakContent.contents.count)
        let bytes = SoakContent.contents[number]
        let attachment = "file \(random.below(2))"
        switch action {
        case .attach:
            draft.setAttachment(named: attachment, contentType: nil, content: bytes)
            content.attachments[attachment] = number
        case .stream:
            try draft.setAttachment(named: attachment, contentType: nil, contentsOf: InputStream(data: bytes))
            content.attachments[attachment] = number
        default:
            draft.setBlob(Blob(contentType: "soak", data: bytes), forKey: "blob")
            content.blob = number
        }
        if random.isOne(in: 4), let removed = content.attachments.keys.sorted().first {
            draft.removeAttachment(named: removed)
            content.attachments[removed] = nil
        }
        return (draft, content)
    }

    // MARK: Deleting and branching

    private func delete(_ database: Database, _ random: inout SeededNumbers) throws {
        guard let id = random.pick(model.live) else { return }
        let parent = model.documents[id]?.winner
        model.note(id, try database.document(withID: id).delete().revisionID, nil, after: parent)
    }

    private func purge(_ database: Database, _ random: inout SeededNumbers) throws {
        guard let id = random.pick(model.lasting) else { return }
        try database.document(withID: id).purge()
        model.noteGone(id, "was purged")
    }

    /// A second revision beside one that has just replaced the same parent.
    private func fork(_ database: Database, _ random: inout SeededNumbers) throws {
        guard let id = random.pick(model.live), let parent = model.documents[id]?.winner else { return }
        let document = database.document(withID: id)
        let (first, second) = (next(id).content, SoakContent(number: nextContent()))
        let saved = try database.save(json: json(first), withID: id, replacing: parent)
        model.note(id, saved.revisionID, first, after: parent)
        let draft = UnsavedRevision(
            document: document, parent: parent,
            properties: [
                "owner": .string(name), "n": .number(.init(Int64(second.number))), "t": .string(second.text),
            ])
        model.note(id, try draft.saveAllowingConflict().revisionID, second, after: nil)
    }

    private func merge(_ database: Database, _ random: inout SeededNumbers) throws {
        let ids = model.live.filter { id in model.documents[id]?.leaves.values.count { $0 != nil } ?? 0 > 1 }
        guard let id = random.pick(ids), let (content, leaves) = try merged(id, in: database) else { return }
        model.note(id, merged: leaves, content)
    }

    /// Resolves conflicts, in one transaction with a look at what came of it.
    func merged(_ id: String, in database: Database) throws -> (SoakContent, [SavedRevision])? {
        guard var content = model.documents[id]?.current else { return nil }
        content.number = nextContent()
        let (number, text) = (content.number, content.text)
        let document = database.document(withID: id)
        let leaves = try database.inTransaction {
            try document.resolveConflicts { draft, _ in
                draft["n"] = number
                draft["t"] = text
            }
            return try document.leafRevisions
        }
        return (content, leaves)
    }

    // MARK: Expiring

    private func expire(_ action: SoakAction, _ database: Database, _ random: inout SeededNumbers) throws {
        guard let (id, date) = expiration(action, &random) else { return }
        let document = database.document(withID: id)
        try noteExpiration(of: id, date) { try document.setExpirationDate(date) }
    }

    /// Whose date is set, and to what: a moment away, or away with it.
    func expiration(_ action: SoakAction, _ random: inout SeededNumbers) -> (id: String, date: Date?)? {
        if action == .expire {
            return random.pick(model.lasting).map {
                ($0, Date(timeIntervalSinceNow: Double(random.below(250)) / 1_000))
            }
        }
        let expiring = model.documents.filter { $0.value.expiration != nil }.keys.sorted()
        return random.pick(expiring).map { ($0, nil) }
    }

    /// A date is taken away in time, or the document is gone and its time had come.
    func noteExpiration(of id: String, _ date: Date?, _ set: () throws -> Void) throws {
        do {
            try set()
            model.trail.note("\(id) expires \(date.map { "in \($0.timeIntervalSinceNow) s" } ?? "never")")
            model.documents[id]?.expiration = date
        } catch let error as CofferError where error.code == .documentNotFound {
            try noteGone(id)
        }
    }

    func noteGone(_ id: String) throws {
        guard let document = model.documents[id] else { return }
        try soakExpect(
            document.mayBeGone(by: Date()), "\(id) is gone, and expires \(String(describing: document.expiration))")
        model.noteGone(id, "has expired")
    }

    // MARK: Local documents

    private func saveLocal(_ database: Database, _ random: inout SeededNumbers) throws {
        let id = "\(name)-\(random.below(4))"
        let found: Int? = try database.localDocument(withID: id)?["n"]
        try soakExpect(
            found == model.localDocuments[id],
            "local \(id) is \(String(describing: found)), not \(model.localDocuments)")
        if found != nil && random.isOne(in: 3) {
            try database.deleteLocalDocument(withID: id)
            model.localDocuments[id] = nil
        } else {
            let number = nextContent()
            try database.saveLocalDocument(["n": .number(.init(Int64(number)))], withID: id)
            model.localDocuments[id] = number
        }
    }

    // MARK: Transactions

    /// Several things in one transaction, with others inside of it: all of it is there after it, or nothing.
    func transact(_ place: SoakPlace, _ random: inout SeededNumbers, depth: Int) throws {
        let before = model
        do {
            try place.database.inTransaction {
                for _ in 0..<1 + random.below(5) {
                    switch random.below(depth < 2 ? 8 : 6) {
                    case 6: try transact(place, &random, depth: depth + 1)
                    case 7: try rollBack(place, &random, depth: depth + 1)
                    default: try act(random.pick(SoakAction.ofTransactions) ?? .save, place, &random)
                    }
                }
            }
        } catch {
            undo(to: before)
            throw error
        }
    }

    func undo(to before: SoakModel) {
        model.trail.note("rolled back")
        model = before
    }

    func rollBack(_ place: SoakPlace, _ random: inout SeededNumbers, depth: Int) throws {
        let before = model
        do {
            try place.database.inTransaction {
                try transact(place, &random, depth: depth + 1)
                throw SoakRolledBack()
            }
        } catch is SoakRolledBack {
            undo(to: before)
        } catch {
            undo(to: before)
            throw error
        }
    }
}

extension SoakModel {
    /// Notes what is left of a document whose conflicts were resolved.
    mutating func note(_ id: String, merged leaves: [SavedRevision], _ content: SoakContent) {
        guard let winner = leaves.first else { return noteGone(id, "has no leaves") }
        trail.note("\(id) was merged to \(winner.revisionID)")
        acknowledged += leaves.map(\.revisionID).filter { documents[id]?.leaves[$0] == nil }
        documents[id]?.leaves = Dictionary(
            uniqueKeysWithValues: leaves.map {
                ($0.revisionID, $0.revisionID == winner.revisionID ? content : nil)
            })
    }
}
