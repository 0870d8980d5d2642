import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

@Suite("All documents")
struct AllDocumentsTests {
    let stores = TestStores()

    /// `d000` and so on, saved backwards, each third one deleted.
    private func fill(_ database: Database, _ count: Int, byteCount: Int = 0) throws {
        try database.inTransaction {
            for number in (0..<count).reversed() {
                let id = Self.id(number)
                try database.save(json: json(number, byteCount: byteCount), withID: id)
                if number % 3 == 2 { try database.document(withID: id).delete() }
            }
        }
    }

    private static func id(_ number: Int) -> String { "d" + "\(1_000 + number)".dropFirst() }

    private func numbers(_ database: Database, _ change: (inout AllDocumentsOptions) -> Void = { _ in }) throws -> [Int]
    {
        var options = AllDocumentsOptions()
        change(&options)
        let revisions = try database.allDocuments(options).all
        try expectSame(revisions, in: database, options)
        return try revisions.map { revision in
            let id = revision.document.documentID
            let number = try #require(Int(id.dropFirst()))
            if revision.isDeletion {
                #expect(try revision.properties == [:])
            } else {
                #expect(try revision["n"] == .number(.init(Int64(number))))
            }
            return number
        }
    }

    /// Expects that the documents that are lent are those that are listed.
    private func expectSame(
        _ revisions: [SavedRevision], in database: Database, _ options: AllDocumentsOptions
    ) throws {
        var expected = revisions.makeIterator()
        try database.forEachDocument(options) { document in
            let next = expected.next()
            let revision = try #require(next)
            #expect(document.documentID == revision.documentID && document.revisionID == revision.revisionID)
            #expect(unsafe document.idBytes.withUnsafeBytes { unsafe $0.elementsEqual(revision.documentID.utf8) })
            #expect(document.sequence == revision.sequence && document.isDeletion == revision.isDeletion)
            let json = options.loadsProperties ? try revision.json : Data()
            #expect(unsafe document.json.withUnsafeBytes { unsafe $0.elementsEqual(json) })
        }
        #expect(expected.next() == nil)
    }

    /// More than a batch, and less; batches that end with the last document, too.
    @Test(
        "All documents come in the order of their ids, deleted ones only where asked for",
        arguments: [0, 1, 255, 256, 257, 384, 900])
    func order(count: Int) throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, count)
        let live = (0..<count).filter { $0 % 3 != 2 }
        #expect(try numbers(database) == live)
        #expect(try numbers(database) { $0.isDescending = true } == live.reversed())
        #expect(try numbers(database) { $0.includesDeleted = true } == Array(0..<count))
        #expect(try numbers(database) { $0.loadsProperties = false } == live)
        #expect(try numbers(database) { $0.order = .sequence } == live.reversed())
        let bySequence = try numbers(database) {
            $0.order = .sequence
            $0.includesDeleted = true
            $0.isDescending = true
        }
        #expect(bySequence == Array(0..<count))
    }

    @Test("All documents are limited to a prefix of their ids, to conflicts, and by a filter")
    func limits() throws {
        let database = try stores.open { $0.durability = .relaxed }
        let ids = ["a", "ab", "aba", "ab\u{10FFFF}", "ac", "b", "ä"]
        for id in ids { try database.save(json: json(1), withID: id) }
        func found(_ change: (inout AllDocumentsOptions) -> Void) throws -> [String] {
            var options = AllDocumentsOptions()
            change(&options)
            try expectSame(try database.allDocuments(options).all, in: database, options)
            return try database.allDocuments(options).all.map(\.documentID)
        }
        #expect(try found { $0.idPrefix = "ab" } == ["ab", "aba", "ab\u{10FFFF}"])
        #expect(try found { ($0.idPrefix, $0.isDescending, $0.limit) = ("ab", true, 2) } == ["ab\u{10FFFF}", "aba"])
        #expect(try found { ($0.idPrefix, $0.startID, $0.endID) = ("ab", "ab\0", "b") } == ["aba", "ab\u{10FFFF}"])
        #expect(try found { ($0.idPrefix, $0.order) = ("a", .sequence) } == ["a", "ab", "aba", "ab\u{10FFFF}", "ac"])
        #expect(try found { $0.idPrefix = "x" } == [])
        #expect(try found { $0.onlyConflicts = true } == [])
        let branch = try #require(try database["ab"]?.currentRevision)
        for number in [2, 3] {
            let draft = try branch.createRevision()
            draft["n"] = number
            try draft.saveAllowingConflict()
        }
        #expect(try found { $0.onlyConflicts = true } == ["ab"])
        #expect(try found { ($0.onlyConflicts, $0.order) = (true, .sequence) } == ["ab"])
        #expect(try found { ($0.onlyConflicts, $0.ids) = (true, ["b", "ab"]) } == ["ab"])
        try database.document(withID: "ab").currentRevision?.deleteDocument()
        #expect(try found { $0.onlyConflicts = true } == [])
        let isShort: @Sendable (SavedRevision) -> Bool = { $0.documentID.count == 1 }
        #expect(try found { $0.filter = isShort } == ["a", "b", "ä"])
        #expect(try found { ($0.filter, $0.skip, $0.limit) = (isShort, 1, 1) } == ["b"])
        struct Failure: Error {}
        #expect(thrown { try found { $0.filter = { _ in throw Failure() } } }?.code == .rejected)
    }

    @Test("All documents end at their bounds, which are included or not", arguments: [false, true], [false, true])
    func bounds(includesStart: Bool, includesEnd: Bool) throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 600)
        for isDescending in [false, true] {
            let found = try numbers(database) {
                $0.isDescending = isDescending
                $0.includesDeleted = true
                ($0.startID, $0.endID) = (Self.id(isDescending ? 590 : 10), Self.id(isDescending ? 10 : 590))
                ($0.includesStart, $0.includesEnd) = (includesStart, includesEnd)
            }
            var expected = Array(10...590)
            if isDescending { expected.reverse() }
            #expect(found == Array(expected.dropFirst(includesStart ? 0 : 1).dropLast(includesEnd ? 0 : 1)))
        }
        // Bounds that are no documents, one alone, and none that fits.
        #expect(
            try numbers(database) { $0.startID = "d590x" } == [591, 592, 594, 595, 597, 598].filter { $0 % 3 != 2 })
        #expect(try numbers(database) { $0.endID = "d003x" } == [0, 1, 3])
        #expect(try numbers(database) { ($0.startID, $0.endID) = ("d300", "d200") } == [])
        #expect(try numbers(database) { $0.startID = "e" } == [])

        let sequences = try database.allDocuments().all.map { ($0.sequence, $0.document.documentID) }.sorted {
            $0.0 < $1.0
        }
        let ids = sequences.map { Int($0.1.dropFirst()) }
        for isDescending in [false, true] {
            let found = try numbers(database) {
                ($0.order, $0.isDescending) = (.sequence, isDescending)
                let (first, last) = (sequences[5].0, sequences[399].0)
                ($0.startSequence, $0.endSequence) = isDescending ? (last, first) : (first, last)
                ($0.includesStart, $0.includesEnd) = (includesStart, includesEnd)
            }
            var expected = Array(ids[5...399])
            if isDescending { expected.reverse() }
            #expect(found == Array(expected.dropFirst(includesStart ? 0 : 1).dropLast(includesEnd ? 0 : 1)))
        }
    }

    @Test(
        "All documents are passed over and limited", arguments: [0, 1, 255, 256, 300, 10_000], [0, 1, 256, 257, 10_000])
    func limits(skip: Int, limit: Int) throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 700)
        let live = (0..<700).filter { $0 % 3 != 2 }
        for order in [AllDocumentsOptions.Order.id, .sequence] {
            let found = try numbers(database) { ($0.order, $0.skip, $0.limit) = (order, skip, limit) }
            let all = order == .id ? live : live.reversed()
            #expect(found == Array(all.dropFirst(skip).prefix(limit)))
        }
        for (skip, limit) in [(-1, nil), (0, -1), (.min, .min)] as [(Int, Int?)] {
            #expect(thrown { try numbers(database) { ($0.skip, $0.limit) = (skip, limit) } }?.code == .invalidArgument)
            let filtered = thrown {
                try numbers(database) { ($0.skip, $0.limit, $0.filter) = (skip, limit, { _ in true }) }
            }
            #expect(filtered?.code == .invalidArgument)
        }
        #expect(thrown { try database.documentIDs(limit: -1) }?.code == .invalidArgument)
        #expect(try database.documentIDs(limit: 0) == [])
    }

    @Test("Documents of a query, a view or a feed are counted from zero: less is a 400")
    func negativeCounts() throws {
        let database = try stores.open()
        try fill(database, 3)
        let view = database.view(named: "all")
        try view.setMap(version: "1", reduction: .count) { _, emit in emit(1) }
        for (skip, limit) in [(-1, nil), (0, -1)] as [(Int, Int?)] {
            var query = DocumentQuery()
            (query.skip, query.limit) = (skip, limit)
            #expect(thrown { try database.documents(query).all }?.code == .invalidArgument)
            query.order = [.ascending("a")]
            #expect(thrown { try database.documents(query).all }?.code == .invalidArgument)
            var options = ViewOptions()
            (options.skip, options.limit) = (skip, limit)
            #expect(thrown { try view.rows(options).all }?.code == .invalidArgument)
            #expect(thrown { try view.reducedRows(options).all }?.code == .invalidArgument)
        }
        var feed = FeedOptions()
        feed.limit = -1
        #expect(thrown { try database.changes(since: 0, options: feed).all }?.code == .invalidArgument)
        #expect(thrown { try view.failedDocumentIDs(limit: -1) }?.code == .invalidArgument)
    }

    @Test("Documents of given ids come in that order; those that are not there are left out")
    func keys() throws {
        let database = try stores.open()
        try fill(database, 10)
        let ids = [9, 2, 0, 0, 77, 4].map { Self.id($0) }
        #expect(try numbers(database) { $0.ids = ids } == [9, 0, 0, 4])
        #expect(try numbers(database) { ($0.ids, $0.includesDeleted) = (ids, true) } == [9, 2, 0, 0, 4])
        #expect(try numbers(database) { ($0.ids, $0.skip, $0.limit) = (ids, 1, 2) } == [0, 0])
        #expect(try numbers(database) { $0.ids = [] } == [])
        #expect(thrown { try numbers(database) { $0.ids = ["d001", ""] } }?.code == .invalidDocumentID)
    }

    @Test("All documents may be changed while they are taken, and a database closed, without waiting")
    func changing() async throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 600)
        var count = 0
        for try await revision in database.allDocuments() {
            count += 1
            try await revision.deleteDocument()
        }
        #expect(count == 400)
        #expect(try database.documentCount == 0)
        try fill(try stores.open("other"), 600)
        let other = try stores.open("other")
        var rows = other.allDocuments().makeIterator()
        _ = try rows.next()
        try await other.close()
        // What was read is there; what was not is closed.
        var codes: [CofferError.Code] = []
        var taken = 1
        do throws(CofferError) {
            while try rows.next() != nil { taken += 1 }
        } catch {
            codes.append(error.code)
        }
        #expect(codes == [.closed] && taken == 256)
        #expect(try rows.next() == nil)
        #expect(thrown { try other.allDocuments().all }?.code == .closed)
    }

    @Test("Documents may be changed while they are lent, and an error ends the listing")
    func changingLent() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 600)
        var count = 0
        try database.forEachDocument { document in
            count += 1
            try database.document(withID: document.documentID).delete()
        }
        #expect(count == 400)
        #expect(try database.documentCount == 0)
        try fill(database, 3)
        count = 0
        #expect(throws: CancellationError.self) {
            try database.forEachDocument { _ in
                count += 1
                throw CancellationError()
            }
        }
        #expect(count == 1)
        try database.close()
        #expect(thrown { try database.forEachDocument { _ in count += 1 } }?.code == .closed)
        #expect(count == 1)
    }

    @Test("A lent document becomes an object where it is asked for, and says whether it may have contents or conflicts")
    func lentRevision() throws {
        let database = try stores.open()
        try fill(database, 5)
        let draft = try database.document(withID: "attached").newRevision()
        draft.setAttachment(named: "a", contentType: nil, content: Data("content".utf8))
        try draft.save()
        try database.save(["blob": .blob(Blob(data: Data("other".utf8)))], withID: "blob")
        try database.save(["attachments": "_attachments", "@type": "blobs"], withID: "none")
        let first = try database.save(["n": 1], withID: "branched")
        for number in 0..<2 {
            let branch = try first.createRevision()
            branch["n"] = .number(JSONNumber(number))
            try branch.saveAllowingConflict()
        }
        for loadsProperties in [true, false] {
            var options = AllDocumentsOptions()
            options.loadsProperties = loadsProperties
            var lent: [SavedRevision] = []
            var (contents, conflicts) = (Set<String>(), Set<String>())
            try database.forEachDocument(options) { document in
                lent.append(database.revision(of: document))
                if document.mayHaveContents { contents.insert(document.documentID) }
                if document.isInConflict { conflicts.insert(document.documentID) }
            }
            let all = try database.allDocuments().all
            #expect(lent == all && lent.count > 6)
            for (left, right) in zip(lent, all) {
                #expect(try left.json == right.json && left.parentRevisionID == right.parentRevisionID)
                #expect(left.sequence == right.sequence)
            }
            #expect(contents == (loadsProperties ? ["attached", "blob"] : Set(all.map(\.documentID))))
            #expect(conflicts == ["branched"])
        }
    }

    /// Also of one that is long enough for an overflow page, whose damage SQLCipher doesn't notice.
    @Test("A body that is not what was written is noticed before its batch is lent or listed", arguments: [10, 5_000])
    func damagedBody(byteCount: Int) throws {
        let database = try stores.open(key: nil)
        for number in 0..<3 { try database.save(json: json(number, byteCount: byteCount), withID: Self.id(number)) }
        var count = 0
        try database.storage.alone { (writer) throws(CofferError) in
            try writer.tables.connection.execute(
                "UPDATE revisions SET body = zeroblob(4000) WHERE sequence = 3")
        }
        #expect(thrown { try database.forEachDocument { _ in count += 1 } }?.code == .damaged)
        #expect(thrown { try database.allDocuments().all }?.code == .damaged)
        #expect(count == 0)
    }

    @Test("All documents inside a transaction are those that it sees")
    func transaction() throws {
        let database = try stores.open()
        try fill(database, 3)
        try? database.inTransaction {
            try database.save(json: json(7), withID: "d007")
            try database.document(withID: "d000").delete()
            #expect(try numbers(database) == [1, 7])
            throw CancellationError()
        }
        #expect(try numbers(database) == [0, 1])
    }

    @Test("All documents with much in each come in more batches, and none is lost")
    func large() throws {
        let database = try stores.open { $0.durability = .relaxed }
        try fill(database, 40, byteCount: 100_000)
        #expect(try numbers(database) == (0..<40).filter { $0 % 3 != 2 })
    }

    @Test("All documents compare ids as bytes")
    func bytes() throws {
        let database = try stores.open()
        let ids = ["\u{E9}", "e\u{301}", "z", "\u{FFFF}", "\u{10000}", "A"]
        for id in ids { try database.save(json: json(1), withID: id) }
        let found = try database.allDocuments().all.map(\.document.documentID)
        let sorted = ids.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        #expect(found.map { Array($0.utf8) } == sorted.map { Array($0.utf8) })
        var options = AllDocumentsOptions()
        (options.startID, options.includesStart) = ("\u{E9}", false)
        #expect(try database.allDocuments(options).all.map(\.document.documentID) == ["\u{FFFF}", "\u{10000}"])
    }

    /// A row of `revisions` that names no document, and a document without its winner: either must show.
    @Test("All documents that are damaged are noticed in either order, and not left out")
    func damage() throws {
        let database = try stores.open(key: nil)
        for id in ["a", "b", "c"] { try database.save(json: json(1), withID: id) }
        try database.storage.alone { (writer) throws(CofferError) in
            try writer.tables.connection.execute("DELETE FROM revisions WHERE sequence = 2")
        }
        #expect(thrown { try database.allDocuments().all }?.code == .damaged)
        try database.storage.alone { (writer) throws(CofferError) in
            try writer.tables.connection.execute("DELETE FROM documents WHERE id = 'c'")
        }
        var options = AllDocumentsOptions()
        options.order = .sequence
        #expect(thrown { try database.allDocuments(options).all }?.code == .damaged)
        #expect(thrown { try database.changes(since: 0).all }?.code == .damaged)
    }

    @Test("All documents stop when their task is cancelled")
    func cancelled() async throws {
        let database = try stores.open()
        try fill(database, 10)
        let task = Task {
            for try await _ in database.allDocuments() {
                while !Task.isCancelled { await Task.yield() }
            }
        }
        task.cancel()
        await #expect(throws: CofferError(.cancelled)) { try await task.value }
    }
}
