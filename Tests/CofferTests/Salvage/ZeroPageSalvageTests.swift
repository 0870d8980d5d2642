import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferVault

/// Two threads in one connection once wrote the frames of two commits to the same place of the log. One frame was never
/// written, and the next checkpoint copied its zeros into the database file.
@Suite("Salvaging a store that has pages of zeros", .timeLimit(.minutes(30)))
struct ZeroPageSalvageTests {
    /// A store with some of everything, an index and a view among it, all of it in the file.
    private func make(isEncrypted: Bool = true, fill: ((Database) throws -> Void)? = nil) throws -> SalvageFixture {
        try SalvageFixture(key: isEncrypted ? TestStores.key : nil) { database in
            try SalvageFixture.fill(database, 36, hasForeignRevisions: isEncrypted)
            // Empties the log.
            if fill != nil { try database.compact() }
            try database.createIndex(named: "by text", on: "text")
            try database.view(named: "all").setMap(version: "1") { revision, emit in
                emit(revision.document.documentID, JSONValue.null)
            }
            _ = try database.view(named: "all").updateIndex()
            try fill?(database)
        }
    }

    private static func zero(_ pages: Set<Int>, in data: Data) -> Data {
        var data = data
        for page in pages { data.resetBytes(in: (page - 1) * 4096..<page * 4096) }
        return data
    }

    /// Verifies and salvages a store whose pages `zeroed` are all zeros, and compares what comes of it with where each row
    /// stood before.
    private func check(
        _ fixture: SalvageFixture, _ places: RowPlaces, zeroed: Set<Int>, store: String = "db",
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let comment: Comment = "pages \(zeroed.sorted())"
        if fixture.key != nil {
            let found = try fixture.stores.manager.verifyDatabase(
                named: store, encryptionKey: fixture.key, level: .pages
            ).findings
            #expect(found.map(\.page) == zeroed.sorted(), comment, sourceLocation: sourceLocation)
            #expect(
                found.allSatisfy { $0.detail.hasPrefix("it is all zeros, which an encrypted page never is") }, comment,
                sourceLocation: sourceLocation)
        }
        let outcome = try fixture.salvage(store, sourceLocation: sourceLocation)
        let (contents, original) = (outcome.contents, fixture.original)
        let findings = outcome.result.losses + outcome.result.harmless
        // Where no code can be checked, what the rows say of each other has to do.
        let hasCodes = fixture.key != nil && !zeroed.contains(1)
        for (id, own) in places.revisions where original.documents[id] != nil {
            let needed = hasCodes ? own : own.union(places.documents[id] ?? [])
            guard needed.isDisjoint(with: zeroed), hasCodes || !["torn", "awaited"].contains(id) else { continue }
            #expect(outcome.intact.contains(id), "\(id), \(comment)", sourceLocation: sourceLocation)
        }
        for id in Set(original.documents.keys).subtracting(outcome.intact)
        where places.documents[id]?.isDisjoint(with: zeroed) == true {
            #expect(outcome.named.contains(id), "\(id), \(comment)", sourceLocation: sourceLocation)
        }
        if fixture.key != nil {
            #expect(Set(findings.compactMap(\.page)) == zeroed, comment, sourceLocation: sourceLocation)
        }
        guard hasCodes else { return }
        #expect(
            findings.allSatisfy { $0.page == nil || $0.detail.hasPrefix("it is all zeros") }, comment,
            sourceLocation: sourceLocation)
        checkRows(fixture, places, outcome, zeroed: zeroed, sourceLocation)
        // A content proves itself, even if its row and its document are lost.
        #expect(contents.contents == original.contents, comment, sourceLocation: sourceLocation)
        let lost = places.revisions.filter { !$0.value.isDisjoint(with: zeroed) }.keys
        let lostLocals = places.localDocuments.filter { !$0.value.isDisjoint(with: zeroed) }.keys
        #expect(
            outcome.named.isSubset(of: Set(lost).union(lostLocals).union(["salvaged-attachments"])), comment,
            sourceLocation: sourceLocation)
        let database = try fixture.stores.open("out", key: fixture.key)
        if places.indexes.isDisjoint(with: zeroed) {
            #expect(try database.indexes.map(\.name) == ["by text"], comment, sourceLocation: sourceLocation)
            #expect(try database.viewNames == ["all"], comment, sourceLocation: sourceLocation)
        }
        try database.close()
    }

    /// Expects each row that is on none of the pages `zeroed`: revisions with a body, local documents, expirations.
    private func checkRows(
        _ fixture: SalvageFixture, _ places: RowPlaces, _ outcome: SalvageFixture.Outcome, zeroed: Set<Int>,
        _ sourceLocation: SourceLocation
    ) {
        let comment: Comment = "pages \(zeroed.sorted())"
        /// Without the parent, which may be lost; and without revisions that have no body.
        func revisions(_ contents: StoreContents) -> [Int64: String] {
            let rows = contents.rows["revisions", default: []].compactMap { row -> (Int64, String)? in
                var columns = row.components(separatedBy: ", ")
                guard columns[8] != "NULL", let sequence = Int64(columns[0]) else { return nil }
                columns[2] = ""
                return (sequence, columns.joined(separator: ", "))
            }
            return Dictionary(uniqueKeysWithValues: rows)
        }
        let taken = revisions(outcome.contents)
        for (sequence, row) in revisions(fixture.original) {
            guard places.bySequence[sequence]?.isDisjoint(with: zeroed) == true else { continue }
            #expect(
                taken[sequence] == row, "revision \(sequence), \(comment)", sourceLocation: sourceLocation)
        }
        func ids(_ table: String, _ contents: StoreContents) -> Set<String> { Set(contents.rows[table, default: []]) }
        let locals = ids("local_documents", fixture.original).subtracting(ids("local_documents", outcome.contents))
        for (id, own) in places.localDocuments where locals.contains(where: { $0.contains("'\(id)'") }) {
            #expect(!own.isDisjoint(with: zeroed), "\(id), \(comment)", sourceLocation: sourceLocation)
            guard places.localEntries[id]?.isDisjoint(with: zeroed) == true else { continue }
            #expect(outcome.named.contains(id), "\(id), \(comment)", sourceLocation: sourceLocation)
        }
        for row in ids("expirations", fixture.original).subtracting(ids("expirations", outcome.contents)) {
            let id = row.split(separator: "'").first.map(String.init) ?? ""
            let isWhole = [places.expirations[id]?.table, places.expirations[id]?.index].contains {
                $0?.isDisjoint(with: zeroed) == true
            }
            #expect(
                !isWhole || !outcome.contents.rows["documents", default: []].contains { $0.hasPrefix("'\(id)'") },
                "\(id), \(comment)", sourceLocation: sourceLocation)
        }
    }

    @Test(
        "Salvage brings back every row that is not on the page of zeros, whichever page that is, and names the page",
        arguments: [true, false])
    func anyPage(isEncrypted: Bool) throws {
        let fixture = try make(isEncrypted: isEncrypted)
        let places = try RowPlaces(fixture.source())
        let file = try fixture.databaseFile
        let whole = try Data(contentsOf: file)
        let pageCount = whole.count / 4096
        #expect((40...90).contains(pageCount) && places.revisions.count == (isEncrypted ? 38 : 36))
        for page in 1...pageCount {
            try Self.zero([page], in: whole).write(to: file)
            try check(fixture, places, zeroed: [page])
        }
    }

    @Test("Salvage brings back every row that is on none of several pages of zeros, and names each of the pages")
    func severalPages() throws {
        let fixture = try make()
        let places = try RowPlaces(fixture.source())
        let file = try fixture.databaseFile
        let whole = try Data(contentsOf: file)
        let pageCount = whole.count / 4096
        #expect(!places.interior.isEmpty)
        var random = SeededNumbers(seed: 23)
        var samples: [Set<Int>] = [places.interior, Set(places.documents.values.flatMap { $0 }), [1, 2, 3]]
        for count in [2, 3, 5, 8, 13, 21] {
            samples.append(Set((0..<count).map { _ in Int.random(in: 2...pageCount, using: &random) }))
        }
        // The end of the file, and page 1 with pages of which only their zeros tell.
        samples.append(Set(pageCount - 6...pageCount))
        samples.append([1, try #require(places.revisions["document-2"]?.min()), pageCount])
        for zeroed in samples {
            try Self.zero(zeroed, in: whole).write(to: file)
            try check(fixture, places, zeroed: zeroed)
        }
    }

    @Test(
        "Salvage brings back every row but those of the frame that was never written when a checkpoint copied its zeros",
        .enabled(if: TestStores.isSQLCipher, "a checkpoint opens sealed pages that it copies"))
    func skippedFrame() throws {
        // A file that has most of it, and a log with some commits more.
        let fixture = try make { database in
            for number in 0..<12 {
                let id = number % 2 == 0 ? SalvageFixture.id(20 + number) : "late-\(number)"
                let draft = try database.document(withID: id).newRevision()
                draft["text"] = .string(SalvageFixture.text(number, count: 30))
                if number % 4 == 1 {
                    draft.setAttachment(
                        named: "content", contentType: nil, content: AttachmentTests.bytes(9_000 + number))
                }
                try draft.save()
            }
            for name in ["sound", "holed"] {
                try FileManager.default.copyItem(
                    at: database.manager.directory.appending(path: "db.coffer"),
                    to: database.manager.directory.appending(path: "\(name).coffer"))
            }
        }
        let before = try Data(contentsOf: fixture.stores.databaseFile("sound"))
        let log = try Data(contentsOf: fixture.stores.generation("sound").appending(path: "db.sqlite3-wal"))
        let frames = Self.frames(of: log)
        #expect(frames.count > 20)
        for name in ["sound", "holed"] {
            let generation = try fixture.stores.generation(name)
            try FileManager.default.removeItem(at: generation.appending(path: "db.sqlite3-wal"))
            try FileManager.default.removeItem(at: generation.appending(path: "db.sqlite3-shm"))
        }
        // Without a skipped frame, what this test makes is a store as SQLite leaves it.
        try Self.checkpoint(frames, into: before).write(to: fixture.stores.databaseFile("sound"))
        let sound = try fixture.salvage("sound")
        #expect(sound.result.isComplete && sound.result.harmless.isEmpty)
        let places = try RowPlaces(fixture.source())
        var newest: [Int: Int] = [:]
        for (index, frame) in frames.enumerated() { newest[frame.page] = index }
        #expect(newest.count > 6)
        for (page, index) in newest where page > 1 {
            var holed = frames
            holed[index].bytes.resetBytes(in: 0..<4096)
            try Self.checkpoint(holed, into: before).write(to: fixture.stores.databaseFile("holed"))
            try check(fixture, places, zeroed: [page], store: "holed")
        }
    }

    private struct Frame {
        var page: Int
        /// The pages that the database has after the commit that this frame ends, or 0.
        var pageCount: Int
        var bytes: Data
    }

    /// The frames of the log, up to its last commit: sqlite.org/fileformat2.html, section 4.1.
    private static func frames(of log: Data) -> [Frame] {
        func word(_ at: Int) -> Int { log[at..<at + 4].reduce(0) { $0 << 8 | Int($1) } }
        var frames: [Frame] = []
        for at in stride(from: 32, through: log.count - 24 - 4096, by: 24 + 4096)
        where log[at + 8..<at + 16] == log[16..<24] {
            frames.append(Frame(page: word(at), pageCount: word(at + 4), bytes: Data(log[at + 24..<at + 24 + 4096])))
        }
        while let last = frames.last, last.pageCount == 0 { frames.removeLast() }
        return frames
    }

    /// What a checkpoint makes of the file: the newest frame of each page in its place.
    private static func checkpoint(_ frames: [Frame], into file: Data) -> Data {
        var file = file
        let byteCount = 4096 * (frames.last?.pageCount ?? 0)
        if file.count < byteCount { file.append(Data(count: byteCount - file.count)) }
        for frame in frames where frame.page * 4096 <= byteCount {
            file.replaceSubrange((frame.page - 1) * 4096..<frame.page * 4096, with: frame.bytes)
        }
        return file.prefix(byteCount)
    }
}
