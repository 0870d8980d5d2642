import Foundation
import Synchronization

@testable import Coffer
import TestSupport

// The same actions through the `async` forms, which wait for their turn without a thread.

extension SoakActor {
    func actInTask(_ action: SoakAction, _ place: SoakPlace, _ random: inout SeededNumbers) async throws {
        let database = place.database
        model.trail.note("\(action)")
        switch action {
        case .save, .rewrite, .change, .refuse, .raise, .local: try await save(action, place, &random)
        case .attach, .stream, .blob:
            guard let id = freeID(&random) else { return }
            let (draft, content) = try draft(action, id, database, &random)
            let parent = draft.parentRevisionID
            model.note(id, try await draft.save().revisionID, content, after: parent)
        case .delete:
            guard let id = random.pick(model.live) else { return }
            let parent = model.documents[id]?.winner
            model.note(id, try await database.document(withID: id).delete().revisionID, nil, after: parent)
        case .purge:
            guard let id = random.pick(model.lasting) else { return }
            try await database.document(withID: id).purge()
            model.noteGone(id, "was purged")
        case .expire, .keep:
            guard let (id, date) = expiration(action, &random) else { return }
            do {
                try await database.document(withID: id).setExpirationDate(date)
                model.trail.note("\(id) expires \(date.map { "in \($0.timeIntervalSinceNow) s" } ?? "never")")
                model.documents[id]?.expiration = date
            } catch let error as CofferError where error.code == .documentNotFound {
                try noteGone(id)
            }
        case .fork, .merge, .transact, .rollBack: try await transact(action, place, random)
        case .view:
            var rows: [(String, Int?)] = []
            for try await row in try SoakIndexes.view(in: database).rows(SoakIndexes.options(name)) {
                rows.append((row.documentID, try row.decodeValue(Int.self)))
            }
            try compare(rows, by: "view")
        case .query:
            var rows: [(String, Int?)] = []
            for try await row in database.documents(SoakIndexes.query(name)) {
                rows.append((row.document.documentID, try row["n"]))
            }
            try compare(rows, by: "query")
        case .read, .list, .feed, .count: try look(action, database, &random)
        case .compact, .verify, .backup, .rekey, .keys, .index: try await tendInTask(action, place, &random)
        case .cancel: try await cancel(place, &random)
        case .live, .open, .owe, .close: break
        }
    }

    // MARK: Writing

    private func save(_ action: SoakAction, _ place: SoakPlace, _ random: inout SeededNumbers) async throws {
        let database = place.database
        switch action {
        case .raise:
            try await database.update(SoakCounter.id, as: SoakCounter.self) { $0.n += 1 }
            place.store.raisedCount.add(1, ordering: .relaxed)
        case .change:
            guard let id = random.pick(model.live), var content = model.documents[id]?.current else { return }
            let parent = model.documents[id]?.winner
            content.number = nextContent()
            let (number, text) = (content.number, content.text)
            let revision = try await database.update(id, as: SoakBody.self) { ($0.n, $0.t) = (number, text) }
            model.note(id, revision.revisionID, content, after: parent)
        case .refuse:
            guard let id = random.pick(model.live) else { return }
            do {
                try await database.save(json: json(SoakContent(number: nextContent())), withID: id)
            } catch let error as CofferError where error.code == .conflict {
                return
            }
            throw SoakMismatch("\(id) was saved as new, and is there already")
        case .local:
            let id = "\(name)-\(random.below(4))"
            let number = nextContent()
            try await database.saveLocalDocument(["n": .number(.init(Int64(number)))], withID: id)
            model.localDocuments[id] = number
        default:
            guard let id = action == .save ? freeID(&random) : random.pick(model.live) else { return }
            let (content, parent) = next(id)
            let revision = try await database.save(json: json(content), withID: id, replacing: parent)
            model.note(id, revision.revisionID, content, after: parent)
        }
    }

    /// What takes several steps, on the line's own thread.
    private func transact(_ action: SoakAction, _ place: SoakPlace, _ random: SeededNumbers) async throws {
        let before = model
        do {
            try await place.database.inTransaction { [self] in
                var random = random
                try act(action, place, &random)
            }
        } catch {
            undo(to: before)
            throw error
        }
    }

    /// Calls off a save that may have begun: then it is there, and otherwise nothing is.
    private func cancel(_ place: SoakPlace, _ random: inout SeededNumbers) async throws {
        guard let id = freeID(&random) else { return }
        let (content, parent) = next(id)
        let body = json(content)
        let saving = Task { try await place.database.save(json: body, withID: id, replacing: parent).revisionID }
        for _ in 0..<random.below(3) { await Task.yield() }
        saving.cancel()
        model.note(id, try await saving.value, content, after: parent)
    }

    // MARK: The store as a whole

    private func tendInTask(_ action: SoakAction, _ place: SoakPlace, _ random: inout SeededNumbers) async throws {
        let database = place.database
        switch action {
        case .compact:
            try await database.compact()
        case .verify:
            let result = try await database.verify(random.pick([.everything, .pages, .documents]) ?? .everything)
            try soakExpect(result.isSound, "an open store has \(result.findings.prefix(5))")
        case .backup:
            let (url, key) = backupPlace(place, &random)
            try await database.backup(to: url, encryptionKey: key)
            try judgeBackup(place, key)
        case .rekey:
            let (key, kept) = nextKeys(place, &random)
            try await database.changeEncryptionKey(to: key, keeping: kept, droppingOtherKeys: true)
        case .keys:
            guard place.store.kind != .unencrypted else { return }
            do {
                let key = try await database.addKey(ownKey, label: random.isOne(in: 2) ? name : nil)
                try await database.removeKey(key.id)
            } catch let error as CofferError where [.conflict, .invalidArgument].contains(error.code) {}
        case .index:
            if random.isOne(in: 3) {
                try await SoakIndexes.view(in: database).deleteIndex()
            } else if random.isOne(in: 3) {
                try await database.deleteIndex(named: "by owner")
            } else {
                try await database.createIndex(named: "by owner", on: "owner", "n")
                try await database.updateIndexes()
            }
        default: break
        }
    }
}

extension SoakPlace {
    /// Reads every result of a live query until the database is closed or the task cancelled.
    func watch(owner: String) async throws {
        let view = try SoakIndexes.view(in: database)
        for try await result in view.liveRows(SoakIndexes.options(owner)) {
            for try await row in result.rows {
                try soakExpect(row.key == .string(owner), "a live row of \(row.key) among those of \(owner)")
            }
        }
    }
}
