import Coffer
import CofferCouchbaseLite
import CofferSQLite
import CofferSealing
import Foundation
import Testing

/// Imports of healthy stores.
@Suite("Importing healthy stores of Couchbase Lite") struct ImportTests {
    private func id(_ generation: Int, _ digit: Character = "a") -> String {
        "\(generation)-" + String(repeating: digit, count: 32)
    }

    @Test("An import keeps documents, revision ids, conflicts, deletions, earlier bodies and the order of changes")
    func wholeStore() throws {
        let source = try SourceStore()
        try source.add(
            documents: [1: "zebra", 2: "conflicted", 3: "deleted", 4: "old"],
            [
                .init(sequence: 1, document: 1, id: id(1), isCurrent: false, json: #"{"n":1}"#),
                .init(sequence: 2, document: 2, id: id(1), isCurrent: false, json: nil),
                .init(sequence: 3, document: 3, id: id(1), isCurrent: false, json: #"{"gone":true}"#),
                .init(sequence: 4, document: 4, id: id(1), json: #"{"b":1,"a":2}"#),
                .init(sequence: 5, document: 2, id: id(2, "b"), parent: 2, json: #"{"side":"b"}"#),
                .init(sequence: 6, document: 2, id: id(2, "c"), parent: 2, json: #"{"side":"c"}"#),
                .init(sequence: 7, document: 3, id: id(2), parent: 3, isDeleted: true, json: "{}"),
                .init(sequence: 8, document: 1, id: id(2), parent: 1, json: #"{"n":2}"#),
            ])
        try source.run(
            """
            INSERT INTO localdocs VALUES ('_local/mine', '3-local', '{"k":"v"}'), ('_local/CBL_LocalCheckpoint', '1-local', '{}');
            UPDATE docs SET expiry_timestamp = 4102444800 WHERE docid = 'old';
            UPDATE info SET value = '7' WHERE key = 'max_revs';
            INSERT INTO info VALUES ('checkpoint/abc', '12');
            INSERT INTO views (name, version) VALUES ('v', '1')
            """)
        try source.nameCollations()
        let before = try source.snapshot()
        let target = try Target()

        let (database, report) = try target.take(source)

        #expect(report.isComplete, "\(report.problems)")
        #expect(report.schemaVersion == 102 && !report.isSourceEncrypted)
        #expect(report.documentCount == 3 && report.deletedDocumentCount == 1 && report.conflictCount == 1)
        #expect(report.revisionCount == 7 && report.localDocumentCount == 1 && report.expirationCount == 1)
        #expect(report.skippedViewCount == 1 && report.skippedCheckpointCount == 2)
        #expect(try database.documentCount == 3)
        let zebra = database.document(withID: "zebra")
        #expect(try zebra.currentRevision?.revisionID.description == id(2))
        let first = try #require(RevisionID(id(1)))
        #expect(try zebra.revision(withID: first)?.properties["n"] == 1)
        let conflicted = database.document(withID: "conflicted")
        #expect(try conflicted.conflictingRevisions.map(\.revisionID.description).sorted() == [id(2, "b"), id(2, "c")])
        #expect(try conflicted.currentRevision?.history.map(\.revisionID.description) == [id(1), id(2, "c")])
        #expect(try database.document(withID: "deleted").isDeleted)
        #expect(try database.changes(since: 0).map(\.documentID) == ["old", "conflicted", "deleted", "zebra"])
        #expect(try database.localDocument(withID: "mine")?["k"] == "v")
        #expect(
            try database.document(withID: "old").expirationDate == Date(timeIntervalSince1970: 4_102_444_800))
        #expect(try database.maxRevTreeDepth == 7)
        #expect(try source.snapshot() == before)
        #expect(target.names == ["people.coffer"])
        try database.close()
        #expect(try target.manager.verifyDatabase(named: "people").isSound)
    }

    @Test("A check reports the same as an import, and makes no store")
    func check() throws {
        let source = try SourceStore()
        let content = Data("an attachment".utf8)
        try source.write(content)
        try source.add(
            documents: [1: "a", 2: "b"],
            [
                .init(
                    sequence: 1, document: 1, id: id(1),
                    json:
                        #"{"_attachments":{"f":{"stub":true,"digest":"\#(try SourceStore.digest(content))","length":13}}}"#
                ),
                .init(sequence: 2, document: 2, id: id(1), json: "no JSON"),
            ])
        let target = try Target()
        let checked = try target.manager.checkCouchbaseLite(at: source.url)
        #expect(target.names.isEmpty)
        let (database, imported) = try target.take(source)
        #expect(checked == imported)
        #expect(imported.problems.map(\.documentID) == ["b"])
        try database.close()
    }

    @Test("An import reads the write-ahead log of a store that was not closed, and changes neither log nor database")
    func log() throws {
        let source = try SourceStore()
        let connection = try source.connect(.readWrite)
        try connection.switchToWriteAheadLog()
        try source.add(
            documents: [1: "a"], [.init(sequence: 1, document: 1, id: id(1), json: #"{"n":1}"#)], to: connection)
        // As a killed process leaves them.
        let copy = try SourceStore()
        for suffix in ["", "-wal"] {
            let data = try Data(contentsOf: URL(filePath: source.file.path(percentEncoded: false) + suffix))
            try data.write(to: URL(filePath: copy.file.path(percentEncoded: false) + suffix))
        }
        try connection.close()
        let before = try copy.snapshot()
        #expect(before.keys.contains { $0.hasSuffix("-wal") })
        let target = try Target()
        let (database, report) = try target.take(copy)
        #expect(report.documentCount == 1)
        #expect(try database.document(withID: "a").properties?["n"] == 1)
        #expect(try copy.snapshot() == before)
        #expect(target.names == ["people.coffer"])
        try database.close()
    }

    @Test("An import prunes a revision tree only once it is whole, so that each branch keeps its history")
    func depth() throws {
        let source = try SourceStore()
        try source.run("UPDATE info SET value = '3' WHERE key = 'max_revs'")
        let rows = (1...6).map { generation in
            SourceStore.Row(
                sequence: Int64(generation), document: 1, id: id(generation),
                parent: generation == 1 ? nil : Int64(generation - 1), isCurrent: generation == 6,
                json: #"{"n":\#(generation)}"#)
        }
        // This branch starts after the other one has grown far beyond that point.
        let branch = SourceStore.Row(sequence: 7, document: 1, id: id(3, "b"), parent: 2, json: "{}")
        try source.add(documents: [1: "a"], rows + [branch])
        let target = try Target()
        let (database, report) = try target.take(source)
        #expect(report.isComplete && report.conflictCount == 1)
        let document = database.document(withID: "a")
        #expect(
            try document.currentRevision?.history.map(\.revisionID.generation) == [1, 2, 3, 4, 5, 6]
                || document.currentRevision?.history.map(\.revisionID.generation) == [4, 5, 6])
        let sideID = try #require(RevisionID(id(3, "b")))
        let found = try document.revision(withID: sideID)
        let side = try #require(found)
        #expect(try side.history.map(\.revisionID.generation) == [1, 2, 3])
        #expect(try side.history.last?.revisionID.description == id(3, "b"))
        try database.close()
    }

    @Test("An import keeps a child and its parent, with both bodies, even if the parent has the later sequence")
    func laterParent() throws {
        let source = try SourceStore()
        try source.add(
            documents: [1: "a"],
            [
                .init(sequence: 1, document: 1, id: id(2), parent: 2, json: #"{"n":2}"#),
                .init(sequence: 2, document: 1, id: id(1), isCurrent: false, json: #"{"n":1}"#),
            ])
        let target = try Target()
        let (database, report) = try target.take(source)
        #expect(report.isComplete && report.revisionCount == 2)
        let history = try database.document(withID: "a").currentRevision?.history ?? []
        #expect(history.map(\.revisionID.description) == [id(1), id(2)])
        #expect(try history.first?.properties["n"] == 1)
        try database.close()
    }

    @Test("An import that reads revisions in several batches keeps all of them, their order and links between batches")
    func batches() throws {
        let source = try SourceStore.ofSeveralBatches()
        let target = try Target()
        let (database, report) = try target.take(source)
        #expect(report.isComplete && report.revisionCount == 2_500, "\(report.problems.prefix(3))")
        let changes = try database.changes(since: 0).map(\.documentID)
        let own = (3...2_500).filter { $0 != 2_400 && $0 != 2_450 }
        let expected = [1] + own.filter { $0 < 2_450 } + [2] + own.filter { $0 > 2_450 }
        #expect(changes == expected.map { "document-\($0)" })
        for name in ["document-1", "document-2"] {
            let history = try database.document(withID: name).currentRevision?.history ?? []
            #expect(history.map(\.revisionID.description) == [id(1), id(2)], "\(name)")
            #expect(try history.first?.properties["n"] == (name == "document-1" ? 2_400 : 2))
        }
        #expect(try database.document(withID: "document-2500").properties?["n"] == 2_500)
        try database.close()
    }

    @Test("An old revision without a child makes no conflict, and counts only in a document without a current revision")
    func leftOver() throws {
        let source = try SourceStore()
        try source.add(
            documents: [1: "a", 2: "b"],
            [
                .init(sequence: 1, document: 1, id: id(1, "f"), isCurrent: false, json: #"{"n":1}"#),
                .init(sequence: 2, document: 1, id: id(2), json: #"{"n":2}"#),
                .init(sequence: 3, document: 2, id: id(1), isCurrent: false, json: #"{"n":3}"#),
            ])
        let target = try Target()
        let (database, report) = try target.take(source)
        #expect(report.conflictCount == 0 && report.skippedRevisionCount == 1 && report.documentCount == 2)
        #expect(try database.document(withID: "a").conflictingRevisions.count == 1)
        #expect(try database.document(withID: "b").properties?["n"] == 3)
        try database.close()
    }

    @Test("An import that is cancelled leaves nothing")
    func cancelled() async throws {
        let source = try SourceStore()
        try source.add(documents: [1: "a"], [.init(sequence: 1, document: 1, id: id(1), json: "{}")])
        let target = try Target()
        let (manager, url) = (target.manager, source.url)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await manager.importCouchbaseLite(at: url, named: "people", encryptionKey: nil)
        }
        let error = await #expect(throws: CofferError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(target.names.isEmpty)
    }
}
