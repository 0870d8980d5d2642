import Foundation
import Testing

@testable import Coffer
@testable import CofferVault

@Suite("Salvaging a database with a log")
struct DamagedLogTests {
    /// A store that a crash left with most of it in its log, and how many documents each commit of it added.
    private func crashed(_ key: SymmetricKey?) throws -> SalvageFixture {
        var open: Database?
        let fixture = try SalvageFixture(key: key) { database in
            try SalvageFixture.fill(database, 20, hasForeignRevisions: true)
            open = database
            // What is on the disk while nothing runs is what a kill leaves.
            let url = database.manager.directory
            try FileManager.default.copyItem(
                at: url.appending(path: "db.coffer"), to: url.appending(path: "crashed.coffer"))
        }
        #expect(open != nil)
        return fixture
    }

    private func stored(_ fixture: SalvageFixture) throws -> StoredLog {
        try StoredLog(of: fixture.stores, "crashed", key: fixture.key)
    }

    private func log(_ fixture: SalvageFixture) throws -> URL {
        try fixture.stores.generation("crashed").appending(path: "db.sqlite3-wal")
    }

    @Test("A salvage brings what is in the WAL though the file was cut far before it", arguments: [true, false])
    func cutFile(isEncrypted: Bool) throws {
        var open: Database?
        let fixture = try SalvageFixture(key: isEncrypted ? TestStores.key : nil) { database in
            try database.inTransaction {
                for number in 0..<600 {
                    let text = String(repeating: "text ", count: 100)
                    try database.save(json: Data(#"{"t":"\#(text)"}"#.utf8), withID: "old-\(number)")
                }
            }
            try SalvageFixture.emptyLog(of: database)
            try database.save(json: Data(#"{"n":1}"#.utf8), withID: "zz-late")
            open = database
            let url = database.manager.directory
            try FileManager.default.copyItem(
                at: url.appending(path: "db.coffer"), to: url.appending(path: "crashed.coffer"))
        }
        #expect(open != nil)
        let file = try fixture.stores.generation("crashed").appending(path: "db.sqlite3")
        let whole = try Data(contentsOf: file)
        #expect(whole.count > 60 * 4096)
        try whole.prefix(8 * 4096).write(to: file)
        let salvage = try fixture.stores.manager.salvageDatabase(
            named: "crashed", encryptionKey: fixture.key, to: fixture.stores.url("out"))
        #expect(!salvage.isComplete)
        #expect(try fixture.stores.open("out", key: fixture.key)["zz-late"]?["n"] == 1)
    }

    @Test("A salvage brings what is in the WAL", arguments: [true, false])
    func sound(isEncrypted: Bool) throws {
        let fixture = try crashed(isEncrypted ? TestStores.key : nil)
        let stored = try stored(fixture)
        #expect(stored.frames.count > 19)
        #expect(try fixture.salvage("crashed").result.isComplete)
        // Frames of a transaction that did not end, as a kill leaves them, and the rest of one.
        try log(fixture).patch { $0 += $0[stored.bytes(ofFrame: 0)] + Data(repeating: 3, count: 1000) }
        #expect(try fixture.salvage("crashed").result.isComplete)
    }

    @Test(
        "A salvage of a WAL of which one page is damaged brings all that is not on it, and what was saved later",
        arguments: [true, false])
    func anyFrame(isEncrypted: Bool) throws {
        let fixture = try crashed(isEncrypted ? TestStores.key : nil)
        let log = try log(fixture)
        let whole = try Data(contentsOf: log)
        let stored = try stored(fixture)
        let (frameCount, commits) = (stored.frames.count, stored.commits)
        let last = try #require(commits.last)
        var lossCount = 0
        for frame in stride(from: 0, to: frameCount, by: 3) {
            try whole.write(to: log)
            let page = stored.bytes(ofFrame: frame).dropFirst(24)
            try log.patch { $0.replaceSubrange(page, with: repeatElement(0x99, count: page.count)) }
            // A transaction that doesn't end is none, as after a crash.
            let lastButOne = commits.dropLast().last ?? -1
            let outcome = try fixture.salvage("crashed", logMayEnd: frame > lastButOne && frame <= last)
            lossCount += outcome.result.isComplete ? 0 : 1
            // The last commits come after most frames: local documents and expirations.
            if frame < frameCount / 2 {
                #expect(outcome.contents.rows["local_documents"]?.isEmpty == false, "frame \(frame) of \(frameCount)")
            }
        }
        #expect(lossCount > frameCount / 8)
    }

    @Test(
        "Salvage of a log in which one frame was never written brings what follows, and says that a page is missing",
        arguments: [true, false])
    func holedLog(isEncrypted: Bool) throws {
        let fixture = try crashed(isEncrypted ? TestStores.key : nil)
        let log = try log(fixture)
        let whole = try Data(contentsOf: log)
        let stored = try stored(fixture)
        let (frameCount, commits) = (stored.frames.count, stored.commits)
        try #require(commits.count > 6)
        // A frame behind one that was never written has no checksum that goes on from it, so that a commit of its own counts
        // only together with one that follows.
        for frame in stride(from: 0, to: commits[commits.count - 3], by: 2) {
            try whole.write(to: log)
            try log.patch { $0.resetBytes(in: stored.bytes(ofFrame: frame)) }
            let outcome = try fixture.salvage("crashed")
            #expect(
                outcome.result.losses.contains { $0.kind == .structure && $0.subject == "db.sqlite3-wal" },
                "frame \(frame) of \(frameCount)")
            #expect(!outcome.result.isComplete)
            #expect(outcome.contents.rows["local_documents"]?.isEmpty == false, "frame \(frame) of \(frameCount)")
        }
    }

    @Test(
        "A salvage of a WAL with a damaged header brings what MACs vouch for; without a WAL, what the file has"
    )
    func header() throws {
        let fixture = try crashed(TestStores.key)
        let stored = try stored(fixture)
        let log = try log(fixture)
        let whole = try Data(contentsOf: log)
        for range in [0..<32, 0..<12, 16..<24, 24..<32] {
            try whole.write(to: log)
            try log.patch { $0.replaceSubrange(range, with: repeatElement(1, count: range.count)) }
            let outcome = try fixture.salvage("crashed")
            #expect(fixture.isAll(outcome.contents) == nil, "\(range)")
        }
        // The header of a frame: its page has a code of its own.
        for field in [0..<4, 4..<8, 8..<16, 16..<24] {
            try whole.write(to: log)
            let start = stored.bytes(ofFrame: 5).lowerBound
            try log.patch {
                $0.replaceSubrange(
                    start + field.lowerBound..<start + field.upperBound, with: repeatElement(1, count: field.count))
            }
            try fixture.salvage("crashed")
        }
        for length in [0, 31, 32 + 24, whole.count / 2, whole.count - 1] {
            try whole.prefix(length).write(to: log)
            try fixture.salvage("crashed", logMayEnd: true)
        }
        try FileManager.default.removeItem(at: log)
        #expect(try fixture.salvage("crashed", logMayEnd: true).result.documentCount < fixture.original.documents.count)
        // And the first page is only in the log.
        try whole.write(to: log)
        let file = try fixture.stores.databaseFile("crashed")
        try file.patch { $0.replaceSubrange(0..<4096, with: repeatElement(0, count: min(4096, $0.count))) }
        let outcome = try fixture.salvage("crashed")
        #expect(fixture.isAll(outcome.contents) == nil)
    }

    @Test(
        "A salvage takes a page from before where the WAL's version is damaged",
        .enabled(if: TestStores.isSQLCipher, "the checksums of a sealed log can't be made right without its key"))
    func older() throws {
        let fixture = try SalvageFixture { database in
            try database.inTransaction {
                for number in 0..<40 { try database.save(json: Data(#"{"n":\#(number)}"#.utf8), withID: "d\(number)") }
            }
            try SalvageFixture.emptyLog(of: database)
            try database.save(json: Data(#"{"n":40}"#.utf8), withID: "d40")
            let url = database.manager.directory
            try FileManager.default.copyItem(
                at: url.appending(path: "db.coffer"), to: url.appending(path: "crashed.coffer"))
        }
        let whole = try Data(contentsOf: log(fixture))
        // Every page in it, its checksums made right.
        try log(fixture).patch { log in
            for start in stride(from: 32, to: log.count, by: 24 + 4096) { log[start + 24 + 3000] ^= 1 }
            VerificationTests.repairChecksums(&log)
        }
        let outcome = try fixture.salvage("crashed")
        #expect(whole.count > 32 + 24 + 4096)
        #expect(outcome.intact == Set((0..<40).map { "d\($0)" }))
        #expect(!outcome.result.isComplete)
    }
}
