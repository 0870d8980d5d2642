import Coffer
import CofferCouchbaseLite
import CofferSQLite
import CofferSealing
import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Sources that are damaged, hostile, or not stores that can be imported.
@Suite("Importing hostile stores of Couchbase Lite") struct HostileSourceTests {
    private static func id(_ generation: Int, _ digit: Character = "a") -> String {
        "\(generation)-" + String(repeating: digit, count: 32)
    }

    private let good = SourceStore.Row(sequence: 1_000, document: 1_000, id: id(1), json: #"{"good":true}"#)

    /// Rows that can't be imported as they are, and how many problems they make.
    struct BadRow: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var document = "bad"
        var rows: [SourceStore.Row]
        var problemCount = 1
        /// Whether the document is still imported.
        var comes = false
    }

    private static let badRows = [
        BadRow(
            testDescription: "an id too long for Coffer", document: String(repeating: "x", count: 901),
            rows: [.init(sequence: 1, document: 1, id: id(1), json: "{}")]),
        BadRow(
            testDescription: "an empty id", document: "",
            rows: [.init(sequence: 1, document: 1, id: id(1), json: "{}")]),
        BadRow(
            testDescription: "a reserved id", document: "_design",
            rows: [.init(sequence: 1, document: 1, id: id(1), json: "{}")]),
        BadRow(
            testDescription: "the id of a local document", document: "_local/x",
            rows: [.init(sequence: 1, document: 1, id: id(1), json: "{}")]),
        BadRow(
            testDescription: "an invalid revision id",
            rows: [.init(sequence: 1, document: 1, id: "first", json: "{}")]),
        BadRow(
            testDescription: "generation 0", rows: [.init(sequence: 1, document: 1, id: "0-a", json: "{}")]),
        BadRow(
            testDescription: "a generation beyond 64 bits",
            rows: [.init(sequence: 1, document: 1, id: "99999999999999999999-a", json: "{}")]),
        BadRow(
            testDescription: "a missing document", rows: [.init(sequence: 1, document: 77, id: id(1), json: "{}")]),
        BadRow(
            testDescription: "a missing body", rows: [.init(sequence: 1, document: 1, id: id(1), json: nil)]),
        BadRow(
            testDescription: "a body that is not JSON",
            rows: [.init(sequence: 1, document: 1, id: id(1), json: "{\"a\":")]),
        BadRow(
            testDescription: "a body that is not an object",
            rows: [.init(sequence: 1, document: 1, id: id(1), json: "[1]")]),
        BadRow(
            testDescription: "a key that starts with _",
            rows: [.init(sequence: 1, document: 1, id: id(1), json: #"{"_secret":1}"#)]),
        BadRow(
            testDescription: "a number that is too large",
            rows: [.init(sequence: 1, document: 1, id: id(1), json: #"{"a":1e999}"#)]),
        BadRow(
            testDescription: "a key twice",
            rows: [.init(sequence: 1, document: 1, id: id(1), json: #"{"a":1,"a":2}"#)]),
        BadRow(
            testDescription: "attachments that are a number",
            rows: [.init(sequence: 1, document: 1, id: id(1), json: #"{"_attachments":7}"#)]),
        BadRow(
            testDescription: "the same revision twice",
            rows: [
                .init(sequence: 1, document: 1, id: id(1), json: #"{"n":1}"#),
                .init(sequence: 2, document: 1, id: id(1), json: #"{"n":2}"#),
            ], comes: true),
        BadRow(
            testDescription: "a missing parent",
            rows: [.init(sequence: 1, document: 1, id: id(2), parent: 55, json: "{}")], comes: true),
        BadRow(
            testDescription: "a revision that is its own parent",
            rows: [.init(sequence: 1, document: 1, id: id(1), parent: 1, json: "{}")], comes: true),
        BadRow(
            testDescription: "a cycle of parents",
            rows: [
                .init(sequence: 1, document: 1, id: id(1), parent: 2, json: "{}"),
                .init(sequence: 2, document: 1, id: id(2), parent: 1, json: "{}"),
            ], comes: true),
        BadRow(
            testDescription: "a parent in another document",
            rows: [.init(sequence: 1, document: 1, id: id(2), parent: 1_000, json: "{}")], comes: true),
        BadRow(
            testDescription: "a parent two generations before",
            rows: [
                .init(sequence: 1, document: 1, id: id(1), isCurrent: false, json: "{}"),
                .init(sequence: 2, document: 1, id: id(3), parent: 1, json: "{}"),
            ], comes: true),
        BadRow(
            testDescription: "two current revisions, one of which is the other's parent",
            rows: [
                .init(sequence: 1, document: 1, id: id(1), json: "{}"),
                .init(sequence: 2, document: 1, id: id(2), parent: 1, json: "{}"),
            ], problemCount: 0, comes: true),
        BadRow(
            testDescription: "a current revision without a body",
            rows: [
                .init(sequence: 1, document: 1, id: id(1), isCurrent: false, json: #"{"n":1}"#),
                .init(sequence: 2, document: 1, id: id(2), parent: 1, json: nil),
            ], comes: true),
    ]

    @Test("An import reports an invalid row, and loses nothing else", arguments: badRows)
    func rows(_ bad: BadRow) throws {
        let source = try SourceStore()
        try source.add(documents: [1: bad.document, 1_000: "good"], bad.rows + [good])
        let target = try Target()
        let checked = try target.manager.checkCouchbaseLite(at: source.url)
        let (database, report) = try target.take(source)
        #expect(report.problemCount == bad.problemCount, "\(report.problems)")
        #expect(try database.document(withID: "good").properties?["good"] == true)
        #expect(try database.documentCount == (bad.comes ? 2 : 1))
        #expect(report.documentCount == (bad.comes ? 2 : 1))
        #expect(!report.problems.contains { $0.reason.contains("secret") })
        // Only the new store notices a revision that is there twice.
        if !bad.testDescription.contains("twice") { #expect(checked == report) }
        try database.close()
        #expect(try target.manager.verifyDatabase(named: "people").isSound)
    }

    @Test("An import reports a document whose id is not UTF-8, and brings the others")
    func oddBytes() throws {
        let source = try SourceStore()
        try source.add(
            documents: [1: "bad", 1_000: "good"], [.init(sequence: 1, document: 1, id: Self.id(1), json: "{}"), good])
        try source.run("UPDATE docs SET docid = CAST(x'FF0041' AS TEXT) WHERE doc_id = 1")
        let target = try Target()
        let (database, report) = try target.take(source)
        #expect(report.problemCount == 1 && report.documentCount == 1)
        try database.close()
    }

    @Test("A report lists no more problems than its limit, and counts all of them")
    func problemLimit() throws {
        let source = try SourceStore()
        let numbers = Array(Int64(1)...50)
        try source.add(
            documents: Dictionary(uniqueKeysWithValues: numbers.map { ($0, "d\($0)") }),
            numbers.map { .init(sequence: $0, document: $0, id: Self.id(1), json: "x") })
        var options = CouchbaseLiteImportOptions()
        options.problemLimit = 3
        let report = try Target().manager.checkCouchbaseLite(at: source.url, options: options)
        #expect(report.problemCount == 50 && report.problems.count == 3)
    }

    // MARK: Files

    private func filled(_ key: SymmetricKey? = nil) throws -> SourceStore {
        let source = try SourceStore(key: key)
        let numbers = Array(Int64(1)...60)
        try source.add(
            documents: Dictionary(uniqueKeysWithValues: numbers.map { ($0, "document-\($0)") }),
            numbers.map {
                .init(
                    sequence: $0, document: $0, id: Self.id(1),
                    json: #"{"text":"\#(String(repeating: "lorem ", count: 40))","n":\#($0)}"#)
            })
        return source
    }

    /// Imports a store that may be damaged, and expects a whole new store or none.
    private func tryImport(_ source: SourceStore, _ key: SymmetricKey?) throws {
        let target = try Target()
        do {
            let (database, report) = try target.take(source, key: key)
            #expect(try database.documentCount == report.documentCount)
            try database.close()
            #expect(target.names == ["people.coffer"])
            #expect(try target.manager.verifyDatabase(named: "people").isSound)
        } catch let error as CofferError {
            #expect([400, 401, 404, 500, 501].contains(error.status), "\(error)")
            #expect(target.names.isEmpty)
        }
    }

    @Test("An import of a truncated database makes a whole store or none", arguments: [false, true])
    func truncated(_ isEncrypted: Bool) throws {
        let key = isEncrypted ? try SymmetricKey() : nil
        let original = try filled(key)
        let whole = try Data(contentsOf: original.file)
        let page = isEncrypted ? 1024 : 4096
        let borders = [0, 1, 15, 16, 17, 99, 100, 512, page - 1, page, page + 1, 2 * page]
        for count in borders + [whole.count - page, whole.count - 1] {
            let source = try SourceStore(key: key)
            try whole.prefix(count).write(to: source.file)
            try tryImport(source, key)
        }
    }

    @Test("An import of a database with flipped bits makes a whole store or none", arguments: [false, true])
    func flipped(_ isEncrypted: Bool) throws {
        let key = isEncrypted ? try SymmetricKey() : nil
        let original = try filled(key)
        let whole = try Data(contentsOf: original.file)
        let page = isEncrypted ? 1024 : 4096
        // Places in the file's header and, in each page, at the start of its header and among its rows.
        var places = Array(stride(from: 16, to: 100, by: 6))
        for start in stride(from: 0, to: whole.count, by: page) {
            places += [start, start + 1, start + 3, start + 5, start + 8, start + page / 2, start + page - 9]
        }
        for place in places {
            let source = try SourceStore(key: key)
            var bytes = whole
            bytes[place] ^= 0x11
            try bytes.write(to: source.file)
            try tryImport(source, key)
        }
    }

    @Test("A damaged page of an encrypted store is damage, but a damaged first page is a wrong key that says so")
    func damagedPages() throws {
        let key = try SymmetricKey()
        let source = try filled(key)
        var bytes = try Data(contentsOf: source.file)
        let target = try Target()
        bytes[bytes.count - 700] ^= 1
        try bytes.write(to: source.file)
        var error = #expect(throws: CofferError.self) { try target.take(source, key: key) }
        #expect(error?.code == .damaged)
        bytes[500] ^= 1
        try bytes.write(to: source.file)
        error = #expect(throws: CofferError.self) { try target.take(source, key: key) }
        #expect(error?.code == .wrongKey && error?.detail?.contains("damaged first page") == true)
        #expect(target.names.isEmpty)
    }

    @Test("An import refuses anything but a store of Couchbase Lite 1.x, with a status that says why")
    func otherFormats() throws {
        let target = try Target()
        func code(_ source: SourceStore) throws -> CofferError.Code? {
            let error = #expect(throws: CofferError.self) { try target.take(source) }
            return error?.code
        }
        let forest = try SourceStore()
        try FileManager.default.moveItem(at: forest.file, to: forest.url.appending(path: "db.forest.0"))
        #expect(try code(forest) == .unsupportedFormat)
        for version in [201, 302, 400, 7, 50, 103] {
            #expect(try code(SourceStore(version: version)) == .unsupportedFormat)
        }
        let other = try SourceStore(version: 0)
        try other.run("DROP TABLE revs")
        #expect(try code(other) == .notAStore)
        let empty = try SourceStore()
        try FileManager.default.removeItem(at: empty.file)
        #expect(try code(empty) == .notAStore)
        try FileManager.default.removeItem(at: empty.url)
        #expect(try code(empty) == .databaseNotFound)
        let view = try SourceStore()
        try view.run("ALTER TABLE revs RENAME TO r; CREATE VIEW revs AS SELECT * FROM r")
        #expect(try code(view) == .damaged)
        #expect(target.names.isEmpty)
    }

    @Test("An import follows no symbolic link to a store, its database, its log or its attachments")
    func links() throws {
        for part in 0..<4 {
            let source = try filled()
            let real = try filled()
            let place: URL
            var target = real.url
            switch part {
            case 0: place = source.url
            case 1: (place, target) = (source.file, real.file)
            case 2: (place, target) = (source.url.appending(path: "db.sqlite3-wal"), real.file)
            default: (place, target) = (source.attachments, real.attachments)
            }
            try? FileManager.default.removeItem(at: place)
            try FileManager.default.createSymbolicLink(at: place, withDestinationURL: target)
            let new = try Target()
            let error = #expect(throws: CofferError.self) { try new.take(source) }
            #expect(error?.code == .invalidArgument, "\(part)")
            withExtendedLifetime(real) {}
            #expect(new.names.isEmpty)
        }
    }

    #if os(Linux)
    @Test("An import of a store that is open elsewhere is a 503")
    func inUse() throws {
        let source = try filled()
        let connection = try source.connect(.readWrite)
        try connection.switchToWriteAheadLog()
        try connection.execute("SELECT count(*) FROM docs")
        let target = try Target()
        let error = #expect(throws: CofferError.self) { try target.take(source) }
        #expect(error?.code == .busy && error?.status == 503)
        try connection.close()
        let (database, report) = try target.take(source)
        #expect(report.documentCount == 60)
        try database.close()
    }
    #endif

    @Test("An import under a name that is taken is a 412, and leaves the database of that name alone")
    func taken() throws {
        let target = try Target()
        let there = try target.manager.database(named: "people")
        try there.saveDocument(MutableDocument(id: "mine", ["n": 1]))
        try there.close()
        let source = try filled()
        let error = #expect(throws: CofferError.self) { try target.take(source) }
        #expect(error?.code == .databaseExists)
        #expect(target.names == ["people.coffer"])
        #expect(try target.manager.database(named: "people").documentCount == 1)
    }
}
