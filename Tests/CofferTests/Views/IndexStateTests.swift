import CofferSealing
import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferModel
@testable import CofferSQLite

/// What an index knows of itself, where it could come to differ from the documents.
@Suite("An index and its documents")
struct IndexStateTests {
    let stores = TestStores()

    struct Failure: Error {}

    private func view(_ database: Database, _ name: String = "v", version: String = "1") throws -> DatabaseView {
        let view = database.view(named: name)
        try view.setMap(version: version) { revision, emit in emit(revision.documentID) }
        return view
    }

    private func ids(_ view: DatabaseView) throws -> [String] { try view.rows().all.map(\.documentID) }

    private func save(_ database: Database, _ id: String) throws { try database.save(json: json(1), withID: id) }

    @Test("Entries of an index do not skip documents that get the sequences of what was rolled back")
    func rolledBack() throws {
        var database: Database? = try stores.open { $0.durability = .relaxed }
        let open = try #require(database)
        try save(open, "a")
        #expect(try ids(view(open)) == ["a"])
        #expect(throws: Failure.self) {
            try open.inTransaction {
                for id in ["x", "y", "z"] { try save(open, id) }
                throw Failure()
            }
        }
        try save(open, "b")
        try open.inTransaction { () throws -> Void in
            #expect(throws: Failure.self) {
                try open.inTransaction {
                    for id in ["x", "y", "z"] { try save(open, id) }
                    throw Failure()
                }
            }
            let found = try ids(view(open))
            #expect(found == ["a", "b"])
        }
        #expect(throws: Failure.self) {
            try open.inTransaction {
                try save(open, "x")
                throw Failure()
            }
        }
        try view(open).updateIndex()
        try open.close()
        database = nil
        let again = try stores.open { $0.durability = .relaxed }
        for id in ["c", "d", "e", "f"] { try save(again, id) }
        #expect(try ids(view(again)) == ["a", "b", "c", "d", "e", "f"])
    }

    @Test("Entries of an index have no row twice, whatever is purged before they come to it", arguments: [0, 1, 2])
    func purgedBefore(updatesBefore: Int) throws {
        let database = try stores.open { $0.durability = .relaxed }
        try save(database, "first")
        let view = try view(database)
        if updatesBefore > 0 { try view.updateIndex() } else { try database.createIndex(named: "i", on: "n") }
        for number in 0..<700 { try save(database, "d\(number)") }
        if updatesBefore > 1 { try view.updateIndex() }
        let base = try #require(try database["d600"]?.currentRevision)
        var leaves: [RevisionID] = []
        for number in 1...2 {
            let draft = try base.createRevision()
            draft["n"] = number
            leaves.append(try draft.saveAllowingConflict().revisionID)
        }
        try database.document(withID: "d600").purge([try #require(leaves.max())])
        #expect(try ids(view).count == 701)
        #expect(try view.totalRows == 701)
        let query = DocumentQuery(where: Property("n").isOne(of: [1, 2, 3]))
        #expect(try database.documents(query).all.count == 701)
    }

    /// A purge changes an index without a new sequence; somebody else brings it up to date.
    @Test(
        "Entries of an index tell a live query what a purge changed, and what another update did",
        .timeLimit(.minutes(30)))
    func live() async throws {
        let database = try stores.open { $0.durability = .relaxed }
        let view = database.view(named: "v")
        try view.setMap(version: "1") { revision, emit in emit(try revision["n"] ?? .null) }
        try save(database, "a")
        let base = try #require(try database["a"]?.currentRevision)
        let (left, right) = (try base.createRevision(), try base.createRevision())
        (left["n"], right["n"]) = (2, 3)
        let saved = [try await left.save(), try await right.saveAllowingConflict()]
        var live = view.liveRows().makeAsyncIterator()
        let first = try await live.next()?.rows.all.map(\.key)
        let winner = try #require(try database["a"]?.currentRevision)
        try await database.document(withID: "a").purge([winner.revisionID])
        let other = try #require(saved.first { $0 != winner })
        let second = try await live.next()?.rows.all.map(\.key)
        #expect(first == [try winner["n"] ?? .null])
        #expect(second == [try other["n"] ?? .null])
        for number in 0..<20 {
            let draft = try database.document(withID: "a").newRevision()
            draft["n"] = 10 + number
            try await draft.save()
            // Both find it out of date.
            async let rows = view.rows().reduce(into: 0) { count, _ in count += 1 }
            let result = try await live.next()
            #expect(try result?.rows.all.map(\.key) == [.number(JSONNumber(10 + number))])
            #expect(try await rows == 1)
        }
        // One that is made again begins to count anew, and isn't taken for the old one.
        try await view.deleteIndex()
        try await database.document(withID: "b").newRevision().save()
        #expect(try await live.next()?.rows.all.count == 2)
    }

    @Test(
        "Indexes that were dropped are found again by whoever needs them, and deleted ones stay deleted")
    func dropped() throws {
        let database = try stores.open { $0.durability = .relaxed }
        for number in 0..<300 { try save(database, "d\(number)") }
        try database.createIndex(named: "i", on: "n")
        try database.createIndex(named: "j", on: "t")
        let query = DocumentQuery(where: Property("n") == 1)
        #expect(try database.documents(query).all.count == 300)
        #expect(try ids(view(database)).count == 300)
        try database.close()
        try damageAnEntry()
        let again = try stores.open { $0.durability = .relaxed }
        // By way of a change of the key, which needs none of them.
        try again.changeEncryptionKey(to: testKey(9))
        #expect(try again.indexes.map(\.name) == ["i", "j"])
        #expect(try again.explain(query).index?.name == "i")
        #expect(try again.documents(query).all.count == 300)
        try again.deleteIndex(named: "j")
        #expect(try again.indexes.map(\.name) == ["i"])
        #expect(try ids(view(again)).count == 300)
        #expect(try again.indexes.map(\.name) == ["i"])
    }

    /// Has one page of entries no longer open.
    private func damageAnEntry() throws {
        let file = try stores.databaseFile()
        let original = try Data(contentsOf: file)
        for page in (2...original.count / 4096).reversed() {
            try file.patch { $0[(page - 1) * 4096 + 1_000] ^= 1 }
            let database = try? stores.open { ($0.create, $0.readOnly) = (false, true) }
            if let database {
                let damage = database.storage.damageOfIndexes()
                try database.close()
                if damage == .entries { return }
            }
            try original.write(to: file)
        }
        Issue.record("no page is one of entries")
    }

    @Test("Damaged entries of an index let documents be purged and expire")
    func purgeOfDamaged() throws {
        let database = try stores.open { $0.durability = .relaxed }
        for number in 0..<300 { try save(database, "d\(number)") }
        #expect(try ids(view(database)).count == 300)
        try database.close()
        try damageAnEntry()
        let again = try stores.open { $0.durability = .relaxed }
        let expiring = (0..<150).map { "d\($0)" }
        try again.inTransaction {
            for id in expiring { try again.document(withID: id).setExpirationDate(Date(timeIntervalSinceNow: -1)) }
        }
        while try again.documentCount > 150 { Thread.sleep(forTimeInterval: 0.01) }
        for number in 150..<290 { try again.document(withID: "d\(number)").purge() }
        #expect(try again.documentCount == 10)
        try save(again, "new")
        #expect(try ids(view(again)).count == 11)
    }

    @Test("Entries of an index that can't even say what they are go altogether, and documents stay")
    func definitions() throws {
        let database = try stores.open(key: nil) { $0.durability = .relaxed }
        for number in 0..<20 { try save(database, "d\(number)") }
        try database.createIndex(named: "i", on: "n")
        #expect(try ids(view(database)).count == 20)
        for change: StaticString in [
            "UPDATE indexes SET changes = 9223372036854775807", "UPDATE indexes SET entries = -1",
            "UPDATE indexes SET sequence = 9223372036854775807", "UPDATE indexes SET definition = 'x' WHERE kind = 1",
            "DROP TABLE index_debts",
        ] {
            try database.storage.write { (writer) throws(CofferError) in try writer.tables.connection.execute(change) }
            #expect(try ids(view(database)).count == 20, "\(change)")
            _ = try? database.documents(DocumentQuery(where: Property("n") == 1)).all
            try database.createIndex(named: "i", on: "n")
            #expect(try database.documents(DocumentQuery(where: Property("n") == 1)).all.count == 20, "\(change)")
        }
        #expect(try database.documentCount == 20)
    }

    @Test("Indexes that are replaced while somebody reads them end the reading by an error, or go on right")
    func replaced() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try database.inTransaction {
            for number in 0..<1_000 {
                try database.save(json: Data(#"{"a":\#(number % 2),"b":1}"#.utf8), withID: "d\(1_000 + number)")
            }
        }
        try database.createIndex(named: "i", on: "a")
        var rows = database.documents(DocumentQuery(where: Property("a") == 1)).makeIterator()
        var found: [SavedRevision] = [try #require(try rows.next())]
        // What was between the same ends of the other index isn't what was asked for.
        try database.createIndex(named: "i", on: "b")
        try database.updateIndexes()
        do {
            while let next = try rows.next() { found.append(next) }
        } catch {
            #expect(error.code == .invalidArgument)
        }
        for revision in found { #expect(try revision["a"] == 1) }

        let view = try view(database)
        var keys = view.rows().makeIterator()
        var read = [try #require(try keys.next()).documentID]
        try view.deleteIndex()
        while let next = try keys.next() { read.append(next.documentID) }
        #expect(read == (0..<1_000).map { "d\(1_000 + $0)" })
        var options = ViewOptions()
        options.update = .never
        var never = view.rows(options).makeIterator()
        _ = try never.next()
        try view.deleteIndex()
        #expect(thrown { while try never.next() != nil {} }?.code == .invalidArgument)
    }

    @Test(
        "Entries of an index end up as the function that was given last has them, whoever was under way with another",
        .timeLimit(.minutes(30)))
    func twoVersions() async throws {
        let database = try stores.open { $0.durability = .relaxed }
        try await database.inTransaction { for number in 0..<5_000 { try save(database, "d\(number)") } }
        let first = try view(database)
        async let early = first.updateIndex()
        try await Task.sleep(for: .milliseconds(20))
        let changed = database.view(named: "v")
        try changed.setMap(version: "2") { revision, emit in emit(["new", revision.documentID]) }
        #expect(
            try await changed.rows().reduce(into: 0) { count, row in count += row.key[0] == "new" ? 1 : 0 } == 5_000)
        _ = try await early
        #expect(try changed.totalRows == 5_000)
        #expect(try changed.rows().all.allSatisfy { $0.key[0] == "new" })
    }

    @Test("Entries of an index can't be brought up to date within a function, which still can't write after it tried")
    func nested() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try save(database, "a")
        let other = try view(database, "other")
        let outer = database.view(named: "outer")
        let errors = Tally()
        try outer.setMap(version: "1") { revision, emit in
            for body in [{ _ = try other.rows().all }, { try save(database, "written") }] as [() throws -> Void] {
                do { try body() } catch let error as CofferError { errors.count(error.code.description) }
            }
            emit(revision.documentID)
        }
        #expect(try ids(outer) == ["a"])
        #expect(errors["invalidArgument"] == 2)
        #expect(try database.documentCount == 1)
    }

    /// The view before the documents, so that the pages behind the first ones of its tables are its own.
    @Test("Entries of an index that were made before everything else are made anew too, or say what helps")
    func damageBehindTheRoots() throws {
        let database = try stores.open { $0.durability = .relaxed }
        #expect(try ids(view(database)) == [])
        try database.createIndex(named: "i", on: "n")
        for part in 0..<20 {
            try database.inTransaction { for number in 0..<50 { try save(database, "d\(part)-\(number)") } }
            try view(database).updateIndex()
        }
        try database.close()
        try FileManager.default.copyItem(at: stores.url(), to: stores.url("saved"))
        let pageCount = try Data(contentsOf: stores.databaseFile()).count / 4096
        var outcomes = (anew: 0, told: 0)
        for page in 2...pageCount {
            try FileManager.default.removeItem(at: stores.url())
            try FileManager.default.copyItem(at: stores.url("saved"), to: stores.url())
            try stores.databaseFile().patch { $0[(page - 1) * 4096 + 1_000] ^= 1 }
            let opened = try? stores.open { ($0.create, $0.durability) = (false, .relaxed) }
            guard let opened else { continue }
            defer { try? opened.close() }
            guard opened.storage.damageOfIndexes() != .none else { continue }
            do {
                _ = try opened.document(withID: "d0-0").purge()
                #expect(try ids(view(opened)).count == 999, "page \(page)")
                outcomes.anew += 1
            } catch {
                let text = (error as? CofferError)?.detail ?? ""
                #expect(text.contains("until the key is changed"), "page \(page): \(error)")
                try opened.changeEncryptionKey(to: testKey(3))
                _ = try opened["d0-0"].map { try $0.purge() }
                #expect(try ids(view(opened)).count == 999)
                outcomes.told += 1
            }
        }
        #expect(outcomes.anew > 5, "\(outcomes)")
    }
}
