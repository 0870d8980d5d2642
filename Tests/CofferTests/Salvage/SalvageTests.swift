import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite
@testable import CofferVault

@Suite("Salvaging a database")
struct SalvageTests {
    @Test("A salvage of a sound database brings all of it, into a store of its own", arguments: [true, false])
    func sound(isEncrypted: Bool) throws {
        let fixture = try SalvageFixture(key: isEncrypted ? TestStores.key : nil)
        let outcome = try fixture.salvage()
        #expect(outcome.result.losses.map(\.description) == [])
        #expect(outcome.result.harmless == [])
        #expect(outcome.result.revisionCount == fixture.original.rows["revisions"]?.count)
        #expect(outcome.result.attachmentCount == 5)
        #expect(outcome.result.localDocumentCount == 8)
        let infos = try ["db", "out"].map { try fixture.stores.manager.storeInfo(named: $0) }
        #expect(infos[0].storeUUID != infos[1].storeUUID)
        let uuids = try ["db", "out"].map { try fixture.stores.open($0, key: fixture.key).uuid }
        #expect(uuids[0] != uuids[1])
        // What is readable in the one is nowhere in the other; that the search finds it, the other kind of store shows.
        let files = try fixture.stores.files(containing: SalvageFixture.canary).filter { $0.hasPrefix("out") }
        #expect(files.isEmpty == isEncrypted)
    }

    @Test("A salvage brings the settings, the key's label, and no sequence twice; and works under another key")
    func settings() throws {
        let fixture = try SalvageFixture(documentCount: 3)
        let database = try fixture.stores.open()
        let label = "the operator's"
        try database.addKey(testKey(9), label: label)
        try database.setMaxRevTreeDepth(7)
        try database.document(withID: SalvageFixture.id(2)).purge()
        let last = try database.lastSequenceNumber
        try database.close()
        try fixture.stores.manager.salvageDatabase(
            named: "db", encryptionKey: testKey(9), to: fixture.stores.url("same"))
        let same = try fixture.stores.open("same", key: testKey(9))
        #expect(try same.keys.map(\.label) == [label])
        #expect(try same.maxRevTreeDepth == 7)
        #expect(try same.lastSequenceNumber == last)
        #expect(try same[SalvageFixture.id(2)] == nil)
        try fixture.stores.manager.salvageDatabase(
            named: "db", encryptionKey: testKey(9), to: fixture.stores.url("other"), newKey: testKey(11))
        #expect(thrown { try fixture.stores.open("other", key: testKey(9)) }?.code == .wrongKey)
        let other = try fixture.stores.open("other", key: testKey(11))
        #expect(try other.keys.map(\.label) == [nil])
        #expect(try other.documentCount == 4)
    }

    @Test(
        "A salvage with any one page damaged brings all that was not on it, and says which page and what is lost",
        arguments: [true, false])
    func anyPage(isEncrypted: Bool) throws {
        let fixture = try SalvageFixture(key: isEncrypted ? TestStores.key : nil, documentCount: 30)
        let file = try fixture.databaseFile
        let whole = try Data(contentsOf: file)
        var completeCount = 0
        for page in stride(from: 1, through: whole.count / 4096, by: isEncrypted ? 1 : 2) {
            // Behind the salt; a page without a code is damaged as a whole, or nobody could tell.
            try whole.write(to: file)
            try file.patch { data in
                let start = (page - 1) * 4096
                if isEncrypted {
                    data[start + 16 + page % 4000] ^= 4
                } else {
                    data.replaceSubrange(start..<start + 4096, with: repeatElement(0xff, count: 4096))
                }
            }
            let outcome = try fixture.salvage()
            let found = outcome.result.losses + outcome.result.harmless
            if isEncrypted { #expect(found.contains { $0.page == page }, "page \(page): \(found)") }
            completeCount += outcome.result.isComplete ? 1 : 0
        }
        // Indexes, and tables that follow from others.
        #expect(completeCount > 3)
    }

    @Test(
        "A salvage of a database whose first pages are gone, salt and all, brings what its ids vouch for",
        .enabled(if: TestStores.isSQLCipher, "sealed pages have no salt"))
    func noSalt() throws {
        let fixture = try SalvageFixture()
        try fixture.databaseFile.patch { $0.replaceSubrange(0..<4096, with: Data(repeating: 0, count: 4096)) }
        let outcome = try fixture.salvage()
        let own = Set(fixture.original.documents.keys).subtracting(["torn", "awaited"])
        #expect(outcome.intact.isSuperset(of: own))
        #expect(outcome.named.isSuperset(of: ["torn", "awaited"]))
        #expect(outcome.result.losses.contains { $0.page == 1 })
        #expect(outcome.result.attachmentCount == 5)
        #expect(outcome.contents.rows["expirations"] == fixture.original.rows["expirations"])
        // Together with the map of pages and the settings.
        try fixture.databaseFile.patch { $0.replaceSubrange(0..<3 * 4096, with: Data(repeating: 7, count: 3 * 4096)) }
        let without = try fixture.salvage()
        #expect(own.subtracting(without.intact) == [], "\(without.result.losses.filter { $0.documentID != nil })")
        // Without codes, what was changed in a page shows in ids, and nothing wrong is taken.
        for page in 4...30 { try fixture.damage(pages: [page]) }
        try fixture.salvage()
    }

    @Test(
        "A salvage without inner pages, without indexes, and without the table of documents, brings all")
    func leavesAlone() throws {
        let fixture = try SalvageFixture(documentCount: 400, hasForeignRevisions: true)
        let source = try fixture.source()
        var (interior, derived) = ([Int](), [Int]())
        let roots = try self.roots(source)
        for number in 2...UInt32(source.pageCount) {
            guard let page = try source.page(number), try source.use(of: number) != .map,
                let tree = TreePage(page, number: number)
            else { continue }
            if !tree.kind.isLeaf { interior.append(Int(number)) }
            let name = try root(of: number, source).flatMap { roots[$0] } ?? ""
            if ["documents", "later_revisions", "leaves", "attachment_uses", "expirations_by_time"].contains(name) {
                derived.append(Int(number))
            }
        }
        #expect(interior.count > 3)
        #expect(derived.count > 10)
        // Page 1 says which is which, and is tried alone elsewhere.
        try fixture.damage(pages: Set(interior + derived))
        let outcome = try fixture.salvage()
        #expect(outcome.result.losses.map(\.description) == [])
        #expect(outcome.result.harmless.count == Set(interior + derived).count)
        #expect(fixture.isAll(outcome.contents) == nil)
    }

    @Test(
        "Salvage names the document of a row that lost a part, though every index and list that names it is lost, too")
    func tornRow() throws {
        let fixture = try SalvageFixture(documentCount: 12, hasForeignRevisions: false)
        let source = try fixture.source()
        let roots = try self.roots(source)
        // All that names document 7 beside its own row, and all that is not on that row's first page.
        var damaged: Set<Int> = []
        for number in 2...UInt32(source.pageCount) {
            if case .overflow = try source.use(of: number) { damaged.insert(Int(number)) }
            let name = try root(of: number, source).flatMap { roots[$0] } ?? ""
            if ["documents", "later_revisions", "leaves"].contains(name) { damaged.insert(Int(number)) }
        }
        try fixture.damage(pages: damaged)
        let outcome = try fixture.salvage()
        let id = SalvageFixture.id(7)
        #expect(!outcome.intact.contains(id))
        let loss = outcome.result.losses.first { $0.documentID == id }
        #expect(loss?.description.contains("a part of it can't be read") == true, "\(outcome.result.losses)")
        // Whole rows vouch for themselves.
        #expect(outcome.intact.contains(SalvageFixture.id(8)))
    }

    private func roots(_ source: PageSource) throws -> [UInt32: String] {
        var roots: [UInt32: String] = [:]
        let page = try #require(try source.page(1))
        for cell in try #require(TreePage(page, number: 1)).cells {
            guard let record = Record(Array(page[cell.local])), let root = record.integer(3) else { continue }
            roots[UInt32(root)] = record.text(1)
        }
        #expect(roots.count >= 13)
        return roots
    }

    private func root(of number: UInt32, _ source: PageSource) throws -> UInt32? {
        var number = number
        while case .tree(let parent) = try source.use(of: number) { number = parent }
        return try source.use(of: number) == .root ? number : nil
    }

    @Test("A salvage does not bring back what was deleted, though it stands on pages that nobody uses")
    func free() throws {
        var before = Data()
        let fixture = try SalvageFixture { database in
            let file = URL(filePath: database.storage.databaseFile.path)
            for number in 0..<200 { try database.save(json: Data(#"{"n":\#(number)}"#.utf8), withID: "kept-\(number)") }
            try database.inTransaction {
                for number in 0..<200 {
                    let text = SalvageFixture.text(number, count: 40)
                    try database.save(json: Data(#"{"t":"\#(text)"}"#.utf8), withID: "purged-\(number)")
                }
            }
            try SalvageFixture.emptyLog(of: database)
            before = try Data(contentsOf: file)
            try database.inTransaction {
                for number in 0..<200 { try database.document(withID: "purged-\(number)").purge() }
            }
        }
        let source = try fixture.source()
        var free: [Int] = []
        for number in 2...UInt32(source.pageCount) where try source.use(of: number) == .free {
            free.append(Int(number))
        }
        // Where SQLite overwrites what it deletes, the pages are put there as they were: other builds leave them. Not in the
        // place of the lists.
        try fixture.databaseFile.patch { data in
            for number in free {
                let range = (number - 1) * 4096..<number * 4096
                let page = try source.page(UInt32(number))
                let isList = page.map { $0[0] == 0 && $0.bigEndian(4, at: 4) > 0 } ?? false
                if !isList && range.upperBound <= before.count { data.replaceSubrange(range, with: before[range]) }
            }
        }
        let stale = try fixture.source()
        let rows = try free.flatMap { number in
            try stale.page(UInt32(number)).flatMap { TreePage($0, number: UInt32(number)) }?.cells ?? []
        }
        #expect(rows.count > 100, "no free page has rows on it")
        #expect(try fixture.salvage().result.isComplete)
        // Where the map of pages is lost, the lists of free pages say it. Those have to be as they are.
        try fixture.damage(pages: [2])
        let outcome = try fixture.salvage()
        #expect(outcome.intact.count == 200)
        #expect(outcome.contents.rows["documents"]?.count == 200)
        // A damaged page that nobody uses is no loss.
        try fixture.damage(pages: [2])
        try fixture.damage(pages: free)
        #expect(try fixture.salvage().result.isComplete)
    }

    @Test("A salvage brings what indexes and views there are, and their entries are made anew")
    func indexes() throws {
        let fixture = try SalvageFixture { database in
            try database.inTransaction {
                for number in 0..<300 {
                    try database.save(json: Data(#"{"n":\#(number % 7),"t":"\#(number)"}"#.utf8), withID: "d\(number)")
                }
            }
            try database.createIndex(named: "by n", on: "n")
            try database.createIndex(named: "by t", on: "t")
            try database.view(named: "all").setMap(version: "1") { revision, emit in
                emit(revision.document.documentID, JSONValue.null)
            }
            _ = try database.view(named: "all").updateIndex()
        }
        let source = try fixture.source()
        let roots = try self.roots(source)
        var entries: [Int] = []
        for number in 2...UInt32(source.pageCount) {
            guard let root = try root(of: number, source), let name = roots[root] else { continue }
            if name == "index_entries" || name.hasPrefix("entries_") { entries.append(Int(number)) }
        }
        #expect(entries.count > 5)
        for damaged in [[], entries] {
            try fixture.damage(pages: damaged)
            let outcome = try fixture.salvage()
            #expect(outcome.result.isComplete)
            #expect(outcome.result.harmless.count == damaged.count)
            let database = try fixture.stores.open("out")
            #expect(try database.indexes.map { $0.name } == ["by n", "by t"])
            #expect(try database.viewNames == ["all"])
            #expect(try database.documents(DocumentQuery(where: Property("n") == 3)).all.count == 43)
            try database.close()
        }
    }

    @Test("A salvage without a database file, or with an empty or a foreign one, says so")
    func noFile() throws {
        let fixture = try SalvageFixture(documentCount: 4)
        let file = try fixture.databaseFile
        let attachments = fixture.original.contents.count
        #expect(attachments == 1)
        try Data().write(to: file)
        #expect(try fixture.salvage().result.losses.first?.kind == .structure)
        try FileManager.default.removeItem(at: file)
        let outcome = try fixture.salvage()
        #expect(outcome.result.documentCount == 1)
        // What nothing names any more has a document of its own.
        let found = try #require(outcome.contents.documents["salvaged-attachments"]?.attachments)
        #expect(Set(found.values) == Set(fixture.original.contents.values))
        try FileManager.default.createSymbolicLink(at: file, withDestinationURL: URL(filePath: "/etc/passwd"))
        #expect(try fixture.salvage().result.losses.first?.kind == .structure)
        try FileManager.default.removeItem(at: file)
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
        #expect(try fixture.salvage().result.losses.first?.kind == .structure)

        let plain = try SalvageFixture(key: nil, documentCount: 2)
        _ = try plain.stores.open("other", key: nil).close()
        try FileManager.default.removeItem(at: plain.databaseFile)
        try FileManager.default.copyItem(at: plain.stores.databaseFile("other"), to: plain.databaseFile)
        let error = thrown { try plain.stores.manager.salvageDatabase(named: "db", to: plain.stores.url("out")) }
        #expect(error?.code == .damaged)
        #expect(!FileManager.default.fileExists(atPath: plain.stores.url("out").path))
    }

    @Test("A salvage needs its key and a whole MANIFEST, and a place where nothing is; nothing is made otherwise")
    func refused() throws {
        let fixture = try SalvageFixture(documentCount: 2)
        let (stores, manager) = (fixture.stores, fixture.stores.manager)
        let before = try stores.snapshot()
        func code(_ key: SymmetricKey?, _ url: URL, _ name: String = "db") -> CofferError.Code? {
            thrown { try manager.salvageDatabase(named: name, encryptionKey: key, to: url) }?.code
        }
        let out = stores.url("out")
        #expect(code(testKey(9), out) == .wrongKey)
        #expect(code(nil, out) == .keyRequired)
        #expect(code(TestStores.key, out, "missing") == .databaseNotFound)
        #expect(code(TestStores.key, stores.url()) == .databaseExists)
        #expect(code(TestStores.key, stores.url().appending(path: "out.coffer")) == .invalidArgument)
        #expect(code(TestStores.key, try stores.generation().appending(path: "out.coffer")) == .invalidArgument)
        #expect(code(TestStores.key, stores.directory.appending(path: "no/out.coffer")) == .ioFailed)
        #expect(code(TestStores.key, try #require(URL(string: "https://example.org/out.coffer"))) == .invalidArgument)
        let open = try stores.open()
        #expect(code(TestStores.key, out) == .databaseOpen)
        try open.close()
        #expect(try stores.snapshot() == before)
        let manifest = stores.url().appending(path: "MANIFEST")
        try manifest.patch { $0[100] ^= 1 }
        #expect(code(TestStores.key, out) == .damaged)
        try manifest.patch { $0[100] ^= 1 }
        try FileManager.default.removeItem(at: stores.generation())
        #expect(code(TestStores.key, out) == .damaged)
        #expect(!FileManager.default.fileExists(atPath: out.path))
    }

    @Test("A salvage ends with its task, and leaves nothing")
    func cancelled() async throws {
        let fixture = try SalvageFixture(documentCount: 300)
        let (manager, out) = (fixture.stores.manager, fixture.stores.url("out"))
        let before = try fixture.stores.snapshot()
        let task = Task { try await manager.salvageDatabase(named: "db", encryptionKey: TestStores.key, to: out) }
        task.cancel()
        await #expect(throws: CofferError.self) { try await task.value }
        #expect(try fixture.stores.snapshot() == before)
        let phases = Shared<Set<String>>([])
        try await manager.salvageDatabase(named: "db", encryptionKey: TestStores.key, to: out) { progress in
            phases.value.insert("\(progress.phase)")
        }
        #expect(!phases.value.isEmpty && phases.value.isSubset(of: ["database", "attachments"]))
    }
}
