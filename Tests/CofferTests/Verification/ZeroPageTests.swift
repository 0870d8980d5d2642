import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferVault

/// A page of zeros in an encrypted store was never written. SQLCipher 3.4.1 takes one for a page behind the file's end, whose
/// code it doesn't check.
@Suite("Verifying a store that has pages of zeros")
struct ZeroPageTests {
    private let stores = TestStores()
    private static let meaning = "it is all zeros, which an encrypted page never is: it was never written, or was lost"
    private static let meaningWhereUsed =
        "it is all zeros, which a page in use never is: it was never written, or was lost"

    /// A closed store, and what its file holds.
    private func make(_ name: String = "db", key: SymmetricKey? = TestStores.key, count: Int = 60) throws -> Data {
        let database = try stores.open(name, key: key) { $0.compactsInBackground = false }
        try database.inTransaction {
            for number in 0..<count {
                try database.save(json: json(number, byteCount: number % 9 == 4 ? 9_000 : 300), withID: "d\(number)")
            }
        }
        try database.close()
        return try Data(contentsOf: stores.databaseFile(name))
    }

    private func findings(
        in name: String = "db", key: SymmetricKey? = TestStores.key, _ level: VerificationLevel = .pages
    ) throws -> [VerificationFinding] {
        try stores.manager.verifyDatabase(named: name, encryptionKey: key, level: level).findings
    }

    private func zero(_ pages: [Int], of whole: Data, in name: String = "db") throws {
        var data = whole
        for page in pages { data.resetBytes(in: (page - 1) * 4096..<page * 4096) }
        try data.write(to: stores.databaseFile(name))
    }

    @Test("Verification names each page of an encrypted store that is all zeros, and says what that means")
    func encrypted() throws {
        let whole = try make()
        let count = whole.count / 4096
        #expect(count > 15)
        for pages in (1...count).map({ [$0] }) + [[2, 3, 4], [7, count], [1, 5, 6]] {
            try zero(pages, of: whole)
            let found = try findings()
            #expect(found.map(\.page) == pages)
            #expect(found.map(\.subject) == pages.map { "page \($0) of db.sqlite3" })
            #expect(found.allSatisfy { $0.kind == .page && $0.detail.hasPrefix(Self.meaning) })
            // All of SQLCipher's codes depend on the salt, in page 1.
            #expect(
                found.filter { $0.detail.contains("The salt is lost") }.map(\.page)
                    == pages.filter { $0 == 1 && TestStores.isSQLCipher })
        }
        // A page with any other byte was written.
        var data = whole
        data.resetBytes(in: 4 * 4096..<5 * 4096)
        data[5 * 4096 - 1] = 1
        try data.write(to: stores.databaseFile())
        #expect(try findings().map(\.detail) == ["its MAC doesn't match its bytes"])
        try whole.write(to: stores.databaseFile())
        #expect(try findings(.everything).isEmpty)
    }

    @Test(
        "Verification names a page of zeros in the write-ahead log, and a frame of zeros at which the log ends too early",
        .enabled(if: TestStores.isSQLCipher, "the checksums of a sealed log are sealed with it"))
    func log() throws {
        let database = try stores.open { $0.compactsInBackground = false }
        for number in 0..<20 { try database.save(json: json(number, byteCount: 300), withID: "d\(number)") }
        try FileManager.default.copyItem(at: stores.url(), to: stores.url("crashed"))
        let url = try stores.generation("crashed").appending(path: "db.sqlite3-wal")
        let log = try Data(contentsOf: url)
        let frame = 32 + 9 * (24 + 4096)
        let page = log[frame..<frame + 4].reduce(0) { $0 << 8 | Int($1) }
        try url.patch {
            $0.resetBytes(in: frame + 24..<frame + 24 + 4096)
            VerificationTests.repairChecksums(&$0)
        }
        let found = try findings(in: "crashed")
        #expect(found.map(\.subject) == ["page \(page) in db.sqlite3-wal"])
        #expect(found.first?.detail.hasPrefix(Self.meaning) == true)
        // Of a log that a crash left, nobody knows that it went on behind a frame that was never written.
        try log.write(to: url)
        try url.patch { $0.resetBytes(in: frame..<frame + 24 + 4096) }
        #expect(try findings(in: "crashed").isEmpty)
        // Of one that is open, its writer knows.
        let open = try FileHandle(forUpdating: stores.generation().appending(path: "db.sqlite3-wal"))
        defer { try? open.close() }
        try open.seek(toOffset: UInt64(frame))
        try open.write(contentsOf: Data(count: 24 + 4096))
        let live = try database.verify(.pages).findings.filter { $0.kind == .structure }
        #expect(live.map(\.subject) == ["db.sqlite3-wal"])
        #expect(live.first?.detail.hasSuffix("Frame 10 is all zeros, so it was never written") == true)
        try open.seek(toOffset: UInt64(frame))
        try open.write(contentsOf: log[frame..<frame + 24 + 4096])
        #expect(try database.verify().isSound)
    }

    @Test("Verification names a page of zeros that an unencrypted store uses, and takes one that is free for sound")
    func unencrypted() throws {
        let whole = try make(key: nil)
        let stores = stores
        let source = try Self.source(stores)
        let places = try RowPlaces(source)
        let count = whole.count / 4096
        for page in 1...count {
            try zero([page], of: whole)
            let found = try findings(key: nil)
            let isNamed = page == 2 || places.trees.contains(page)
            // The end of a long row may hold anything; whether it is the row's, the row's own digest says.
            let isOverflow = if case .overflow = try source.use(of: UInt32(page)) { true } else { false }
            #expect(isNamed != isOverflow)
            #expect(found.map(\.page) == (isNamed ? [page] : []), "page \(page)")
            #expect(found.allSatisfy { $0.kind == .page && $0.detail.hasPrefix(Self.meaningWhereUsed) })
            #expect(try !findings(key: nil, .documents).isEmpty, "page \(page)")
        }
        try whole.write(to: stores.databaseFile())
        #expect(try findings(key: nil, .everything).isEmpty)
    }

    @Test(
        "Verification takes pages of zeros on the list of free pages for sound, in the file and while the log is in use"
    )
    func free() throws {
        _ = try make(key: nil, count: 200)
        let database = try stores.open(key: nil) { $0.compactsInBackground = false }
        try database.inTransaction {
            for number in 0..<150 { try database.document(withID: "d\(number)").purge() }
        }
        // The map of pages in the log says that they are free, and the one in the file doesn't. Open until the database is
        // closed: closing a file ends the locks that the process has on it.
        let file = try FileHandle(forUpdating: stores.databaseFile())
        let free = try Self.zeroFreePages(of: stores, file)
        #expect(free > 10)
        #expect(try database.verify().findings.map(\.description) == [])
        try database.close()
        try file.close()
        try Self.zeroFreePages(of: stores, FileHandle(forUpdating: stores.databaseFile()))
        #expect(try findings(key: nil, .everything).map(\.description) == [])
        let again = try stores.open(key: nil)
        #expect(try again.verify().isSound && again.documentCount == 50)
    }

    private static func source(_ stores: TestStores) throws -> PageSource {
        let store = try LockedStore.open(path: stores.url().path, access: .readOnly)
        defer { store.close() }
        let source = try PageSource(
            SystemFileSystem(), store.remains(of: store.readManifest().unlock(with: nil)), .none)
        try source.readLog(WorkMonitor())
        return source
    }

    /// Zeros the free pages that list no others.
    ///
    /// - Returns: how many.
    @discardableResult
    private static func zeroFreePages(of stores: TestStores, _ file: FileHandle) throws -> Int {
        let copy = TestStores()
        try FileManager.default.createDirectory(at: copy.directory, withIntermediateDirectories: true)
        try FileManager.default.copyItem(at: stores.url(), to: copy.url())
        let source = try source(copy)
        var count = 0
        for number in 3...UInt32(source.pageCount) where try source.use(of: number) == .free {
            // How many pages it lists.
            let listed = try #require(try source.page(number)).bigEndian(4, at: 4)
            if (1...1_022).contains(listed) { continue }
            try file.seek(toOffset: UInt64(number - 1) * 4096)
            try file.write(contentsOf: Data(count: 4096))
            count += 1
        }
        return count
    }

    @Test("A page of zeros in an encrypted store is damage to whoever reads it, or nothing that is read stood there")
    func reading() throws {
        let original = try SmallStore()
        let copy = try original.copy()
        let whole = try Data(contentsOf: original.databaseFile)
        var outcomes: [String: Int] = [:]
        for page in 1...whole.count / 4096 {
            for readOnly in [true, false] {
                var data = whole
                data.resetBytes(in: (page - 1) * 4096..<page * 4096)
                try data.write(to: copy.databaseFile)
                let outcome = copy.outcome(readOnly: readOnly)
                #expect(outcome != "wrong", "page \(page)")
                outcomes[outcome, default: 0] += 1
                try copy.restore(from: original)
            }
        }
        #expect(outcomes["damaged", default: 0] > whole.count / 4096)
    }
}
