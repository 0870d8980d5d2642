import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

/// Rows that no Coffer wrote, in a store that is not encrypted: anybody can write those. Each is damage where it is met, or
/// means nothing; the process goes on. The fuzzer `rows` looks for more of them.
@Suite("A row that nobody wrote so")
struct HostileRowTests {
    let stores = TestStores()

    /// Some documents, a content that nothing uses, and what the statements make of it.
    private func make(_ statements: StaticString...) throws {
        let database = try stores.open(key: nil)
        try database.save(json: Data(#"{"n":1}"#.utf8), withID: "a")
        try database.document(withID: "a").newRevision().save()
        try database.saveLocalDocument(["n": 1], withID: "local")
        let draft = try database.document(withID: "photo").newRevision()
        draft.setAttachment(named: "photo", contentType: nil, content: Data("content".utf8))
        try draft.save()
        try database.document(withID: "photo").purge()
        try database.close()
        try change(statements)
    }

    private func change(_ statements: [StaticString]) throws {
        let connection = try Connection(
            path: try stores.databaseFile().path, subject: "test", access: .readWrite, key: nil,
            cacheByteCount: 1 << 20)
        for statement in statements { try connection.execute(statement) }
        try connection.close()
    }

    @Test("A content without a use whose digest has another length ends its compaction, and removes no file")
    func digest() throws {
        try make("UPDATE attachments SET digest = x'00'")
        let database = try stores.open(key: nil)
        #expect(thrown { try database.compact() }?.code == .damaged)
        #expect(try database.document(withID: "a").currentRevision?["n"] == 1)
        let directory = try stores.generation().appending(path: "attachments")
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).count == 1)
    }

    @Test("A content of a length that none has ends its compaction", arguments: [Int64.max, 1 << 52, -1])
    func length(_ length: Int64) throws {
        try make(
            length == -1
                ? "UPDATE attachments SET length = -1"
                : length == .max
                    ? "UPDATE attachments SET length = 9223372036854775807"
                    : "UPDATE attachments SET length = 1 << 52")
        #expect(thrown { try stores.open(key: nil).compact() }?.code == .damaged)
    }

    @Test(
        "A sequence after which none can come is damage at opening, and a salvage does not go on from it",
        .timeLimit(.minutes(30)))
    func sequence() throws {
        for statement in [
            "UPDATE revisions SET sequence = 9223372036854775807 WHERE parent IS NOT NULL",
            "INSERT OR REPLACE INTO info (key, value) VALUES ('last_sequence', 9223372036854775807)",
            "INSERT OR REPLACE INTO info (key, value) VALUES ('last_sequence', (1 << 53) + 1)",
        ] as [StaticString] {
            let stores = HostileRowTests()
            try stores.make(statement)
            #expect(thrown { try stores.stores.open(key: nil) }?.code == .damaged, "\(statement)")
            let url = stores.stores.url("out")
            try stores.stores.manager.salvageDatabase(named: "db", to: url)
            let salvaged = try stores.stores.open("out", key: nil)
            try salvaged.save(json: Data("{}".utf8), withID: "new")
            #expect(try salvaged.lastSequenceNumber < 100, "\(statement)")
        }
    }

    @Test("Sequences with a gap that takes for ever to go through are compacted at once", .timeLimit(.minutes(30)))
    func gap() throws {
        try make("UPDATE revisions SET sequence = 1 << 52 WHERE parent IS NOT NULL")
        let database = try stores.open(key: nil)
        #expect(thrown { try database.compact() } == nil)
        try database.save(json: Data("{}".utf8), withID: "new")
        #expect(try database.lastSequenceNumber == 1 << 52 + 1)
    }

    @Test(
        "A compaction's notes count only where they can be",
        arguments: ["(-9223372036854775807 - 1)", "9223372036854775807", "'text'"])
    func notes(_ value: String) throws {
        try make()
        let notes: [String: [StaticString]] = [
            "(-9223372036854775807 - 1)": [
                "INSERT OR REPLACE INTO info (key, value) VALUES ('compacted', (-9223372036854775807 - 1))",
                "INSERT OR REPLACE INTO info (key, value) VALUES ('reclaimable', (-9223372036854775807 - 1))",
            ],
            "9223372036854775807": [
                "INSERT OR REPLACE INTO info (key, value) VALUES ('compacted', 9223372036854775807)",
                "INSERT OR REPLACE INTO info (key, value) VALUES ('reclaimable', 9223372036854775807)",
            ],
            "'text'": [
                "INSERT OR REPLACE INTO info (key, value) VALUES ('compacted', 'text')",
                "INSERT OR REPLACE INTO info (key, value) VALUES ('reclaimable', 'text')",
            ],
        ]
        try change(try #require(notes[value]))
        let database = try stores.open(key: nil)
        try database.document(withID: "a").delete()
        #expect(try database.compact().revisionCount == 2)
    }

    @Test("The history of a row that nobody wrote goes back at least to the current revision")
    func depth() throws {
        try make("INSERT OR REPLACE INTO info (key, value) VALUES ('depth', -9223372036854775807 - 1)")
        let database = try stores.open(key: nil)
        #expect(thrown { try database.maxRevTreeDepth }?.code == .damaged)
        #expect(thrown { try database.document(withID: "a").newRevision().save() }?.code == .damaged)
        try database.setMaxRevTreeDepth(.max)
        try database.document(withID: "a").newRevision().save()
        #expect(try database.document(withID: "a").revisionHistory.count == 3)
    }

    @Test("A local document that was saved more often than can be is damaged, and can be removed")
    func localDocument() throws {
        try make("UPDATE local_documents SET generation = 9223372036854775807")
        let database = try stores.open(key: nil)
        #expect(thrown { try database.localDocument(withID: "local") }?.code == .damaged)
        #expect(thrown { try database.saveLocalDocument(["n": 2], withID: "local") }?.code == .damaged)
        try database.deleteLocalDocument(withID: "local")
        try database.saveLocalDocument(["n": 2], withID: "local")
        #expect(try database.localDocument(withID: "local") == ["n": 2])
    }

    @Test("An attachment of a length that none has is none, whoever says so")
    func statedLength() throws {
        let database = try stores.open()
        let history = ["1-a"].compactMap { RevisionID($0) }
        for length in [1 << 52, Int.max] {
            let stub: JSONObject = [
                "digest": "md5-1B2M2Y8AsgTpgAmY7PhCfg==", "length": .number(JSONNumber(Int64(length))), "revpos": 1,
                "stub": true,
            ]
            let error = thrown {
                try database.putExistingRevision(
                    ["_attachments": ["film": .object(stub)]], withID: "film", history: history)
            }
            #expect(error?.status == 400)
        }
        #expect(try database.documentCount == 0)
    }

    // MARK: What background work, listings and indexes make of them

    @Test("A content's length is a guess of what a compaction gives back, and stops no deletion")
    func guess() throws {
        let database = try stores.open(key: nil)
        for id in ["a", "b"] {
            let draft = try database.document(withID: id).newRevision()
            draft.setAttachment(named: "photo", contentType: nil, content: Data("content of \(id)".utf8))
            try draft.save()
        }
        try database.close()
        try change(["UPDATE attachments SET length = 9223372036854775807"])
        let again = try stores.open(key: nil)
        try again.document(withID: "a").delete()
        try again.document(withID: "b").purge()
        #expect(try again.documentCount == 0)
        #expect(thrown { try again.changeEncryptionKey(to: testKey(9)) }?.code == .damaged)
        #expect(try !again.isEncrypted && again.verify().isSound == false)
    }

    @Test(
        "A time that is no number keeps nothing else from expiring",
        arguments: ["'soon'", "x'2D39323233333732303336383534373735383038'", "CAST('-9223372036854775808x' AS TEXT)"])
    func expiration(_ time: String) throws {
        try make()
        let statements: [String: StaticString] = [
            "'soon'": "INSERT INTO expirations VALUES ('a', 'soon'), ('b', 1), ('_bad', 2), ('_worse', 0)",
            "x'2D39323233333732303336383534373735383038'":
                "INSERT INTO expirations VALUES ('a', x'2D39323233333732303336383534373735383038'), ('b', 1)",
            "CAST('-9223372036854775808x' AS TEXT)":
                "INSERT INTO expirations VALUES ('a', '-9223372036854775808x'), ('b', -9223372036854775807 - 1)",
        ]
        let database = try stores.open(key: nil)
        try database.save(json: Data("{}".utf8), withID: "b")
        try database.close()
        try change([try #require(statements[time])])
        let again = try stores.open(key: nil)
        #expect(try again["b"] == nil)
        #expect(try again["a"] != nil)
    }

    @Test("A row with the number before the last is verified to its end")
    func lastNumber() throws {
        try make("UPDATE local_documents SET number = 9223372036854774784")
        let database = try stores.open(key: nil)
        #expect(try database.verify().isSound)
    }

    @Test("A listing from the last sequence on, or to the first, is empty")
    func bounds() throws {
        try make()
        let database = try stores.open(key: nil)
        for isDescending in [false, true] {
            var options = AllDocumentsOptions()
            options.order = .sequence
            options.isDescending = isDescending
            (options.startSequence, options.includesStart) = (isDescending ? .min : .max, false)
            #expect(try database.allDocuments(options).all.isEmpty)
            (options.startSequence, options.endSequence) = (nil, isDescending ? .max : .min)
            options.includesEnd = false
            #expect(try database.allDocuments(options).all.isEmpty)
        }
    }

    @Test(
        "An index that says what it is over in other words, or is not found by its name, is damaged",
        .timeLimit(.minutes(30)), arguments: [false, true])
    func definition(hasOtherName: Bool) throws {
        let again = try reopened(
            after: hasOtherName
                ? "UPDATE indexes SET name = CAST(name AS BLOB)" : #"UPDATE indexes SET definition = '[ "n" ]'"#)
        let error = thrown { _ = try again.documents(DocumentQuery(where: Property("n") == 1)).all.count }
        #expect(error?.code == .damaged)
    }

    @Test(
        "A document's debt to an index that can't be paid is damaged, and not paid for ever",
        .timeLimit(.minutes(30)))
    func debt() throws {
        let again = try reopened(after: "INSERT INTO index_debts SELECT number, x'31', 'a' FROM indexes")
        #expect(thrown { try again.updateIndexes() }?.code == .damaged)
        #expect(try again.deleteIndex(named: "i"))
        #expect(try again.documents(DocumentQuery(where: Property("n") == 1)).all.map(\.documentID) == ["a"])
    }

    /// A database with an index, as a statement leaves it.
    private func reopened(after statement: StaticString) throws -> Database {
        try make()
        let database = try stores.open(key: nil)
        try database.createIndex(named: "i", on: "n")
        try database.updateIndexes()
        try database.close()
        try change([statement])
        return try stores.open(key: nil)
    }

    @Test("A view whose name leads to another view's row gives none of that one's entries")
    func otherView() throws {
        func view(_ name: String, _ key: JSONValue, in database: Database) throws -> DatabaseView {
            let view = database.view(named: name)
            try view.setMap(version: "1") { _, emit in emit(key, 1) }
            return view
        }
        let database = try stores.open(key: nil)
        try database.save(json: Data("{}".utf8), withID: "a")
        for (name, key) in [("view-1", "one"), ("view-2", "two")] as [(String, JSONValue)] {
            #expect(try view(name, key, in: database).rows().all.map(\.key) == [key])
        }
        try database.close()
        // Their names change places in the index of names.
        var count = 0
        try stores.databaseFile().patch { data in
            for start in stride(from: 0, to: data.count, by: Schema.pageByteCount) where data[start] == 10 {
                let page = start..<start + Schema.pageByteCount
                guard let one = data.range(of: Data("view-1".utf8), in: page),
                    let two = data.range(of: Data("view-2".utf8), in: page)
                else { continue }
                data.swapAt(one.upperBound - 1, two.upperBound - 1)
                count += 1
            }
        }
        #expect(count == 1)
        let again = try stores.open(key: nil)
        #expect(try view("view-2", "two", in: again).rows().all.map(\.key) == ["two"])
    }

    @Test("A view or a trigger in the file is refused before it can run", .timeLimit(.minutes(30)))
    func code() throws {
        for statements in [
            ["CREATE VIEW v AS SELECT 1"],
            [
                "DROP TABLE info",
                "CREATE VIEW info AS WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n AS key, n AS value FROM r",
            ],
            ["CREATE TRIGGER t AFTER INSERT ON revisions BEGIN DELETE FROM documents; END"],
            ["CREATE VIRTUAL TABLE t USING fts3(x)"],
        ] as [[StaticString]] {
            let test = HostileRowTests()
            try test.make()
            try test.change(statements)
            #expect(thrown { try test.stores.open(key: nil) }?.code == .damaged, "\(statements)")
            #expect(try !test.stores.manager.verifyDatabase(named: "db").isSound)
        }
    }

    @Test("A revision that is its own parent ends what is pruned")
    func parent() throws {
        func history(_ suffix: String, from generation: Int) -> [RevisionID] {
            ["4-\(suffix)", "3-\(suffix)", "2-p", "1-o"].compactMap { RevisionID($0) }.suffix(generation)
        }
        let database = try stores.open(key: nil)
        for suffix in ["x", "y"] {
            try database.putExistingRevision([:], withID: "d", history: history(suffix, from: 3))
        }
        try database.setMaxRevTreeDepth(3)
        try database.close()
        try change(["UPDATE revisions SET parent = sequence WHERE generation = 1"])
        let again = try stores.open(key: nil)
        try again.putExistingRevision([:], withID: "d", history: history("x", from: 4))
        // Now no leaf needs the first one any more.
        let error = thrown { try again.putExistingRevision([:], withID: "d", history: history("y", from: 4)) }
        #expect(error?.code == .damaged)
    }
}
