import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords
@testable import CofferSQLite

/// Whatever happens to the bytes: with the right key it is damage, never a 401, and never other data than was written.
@Suite("Damage")
struct DamageTests {
    let stores = TestStores()
    var manifest: URL { stores.url().appending(path: "MANIFEST") }

    /// The documents of the store, and what they say.
    static let content: [String: String] = {
        var content = ["short": #"{"n":1}"#, "long": #"{"t":"\#(String(repeating: "long text ", count: 1300))"}"#]
        for number in 0..<12 {
            let id = "\(number)-" + String(repeating: "\(number % 10)", count: 897)
            content[id] = #"{"n":\#(number)}"#
        }
        return content
    }()

    /// Whether to take minutes: every bit and every byte instead of some.
    static let isExhaustive = ProcessInfo.processInfo.environment["COFFER_EXHAUSTIVE"] == "1"

    private func fill() throws {
        let database = try stores.open()
        try database.inTransaction {
            for (id, json) in Self.content { try database.save(json: Data(json.utf8), withID: id) }
        }
        try database.close()
    }

    @Test("Damage of MANIFEST, cut at any length or lengthened, is noticed")
    func manifestLength() throws {
        try fill()
        let whole = try Data(contentsOf: manifest)
        for count in 0..<whole.count {
            try whole.prefix(count).write(to: manifest)
            #expect(thrown { try stores.open { $0.create = false } }?.code == .damaged, "\(count) bytes")
        }
        try (whole + [0]).write(to: manifest)
        #expect(thrown { try stores.open() }?.code == .damaged)
        try whole.write(to: manifest)
        #expect(try stores.open().documentCount == Self.content.count)
    }

    @Test("Damage of MANIFEST, in any bit, is noticed, whatever key is given")
    func manifestBits() throws {
        try fill()
        let whole = try Data(contentsOf: manifest)
        for offset in whole.indices {
            for bit in Self.isExhaustive ? Array(0..<8) : [offset % 8] {
                var changed = whole
                changed[offset] ^= 1 << bit
                try changed.write(to: manifest)
                #expect(
                    thrown { try stores.open { $0.readOnly = true } }?.code == .damaged, "bit \(bit) of byte \(offset)")
            }
            // The authentication code at the end can be checked only with the key.
            #expect(thrown { try stores.open(key: nil) }?.code == (offset < 992 ? .damaged : .keyRequired))
        }
        try whole.write(to: manifest)
        #expect(try stores.open().documentCount == Self.content.count)
    }

    @Test("Damage of the database, emptied, cut or missing, is noticed, and leaves every file as it was")
    func databaseLength() throws {
        try fill()
        let file = try stores.databaseFile()
        let whole = try Data(contentsOf: file)
        for count in [0, 1, 15, 16, 100, 1023, 4095, 4096, 8192, whole.count - 4096, whole.count - 1] {
            try whole.prefix(count).write(to: file)
            let before = try stores.snapshot()
            // Past the first pages it may open; then reading is where it shows, unless the end is not needed for it.
            let error = thrown { try checkContent(count) }
            if error != nil || count <= 8192 { #expect(error?.code == .damaged, "\(count) bytes") }
            #expect(try stores.snapshot() == before)
        }
        try FileManager.default.removeItem(at: file)
        #expect(thrown { try stores.open() }?.code == .damaged)
        #expect(!FileManager.default.fileExists(atPath: file.path))
    }

    @Test("Damage of the database's first page is never taken for a wrong key", arguments: [false, true])
    func firstPage(readOnly: Bool) throws {
        try fill()
        let file = try stores.databaseFile()
        let whole = try Data(contentsOf: file)
        for offset in stride(from: 0, to: 4096, by: 61) {
            var changed = whole
            changed[offset] ^= 0x10
            try changed.write(to: file)
            let before = try stores.snapshot()
            let error = thrown { try stores.open { $0.readOnly = readOnly } }
            // The last 12 bytes of a page's reserve are random padding, and nobody's.
            if error != nil || offset < 4084 {
                #expect(error?.code == .damaged, "byte \(offset)")
                #expect(try stores.snapshot() == before)
            }
        }
    }

    private func checkContent(_ offset: Int) throws {
        let database = try stores.open { $0.readOnly = true }
        var failure: CofferError?
        for (id, json) in Self.content {
            do throws(CofferError) {
                let revision = try database[id]?.currentRevision
                #expect(try revision?.json == Data(json.utf8), "byte \(offset) changed what was read")
            } catch {
                failure = error
            }
        }
        do throws(CofferError) {
            #expect(try database.documentIDs().count == Self.content.count, "byte \(offset) made documents vanish")
        } catch {
            failure = error
        }
        if let failure { throw failure }
    }

    @Test("Damage of the last overflow page of a long document is noticed, where SQLCipher alone returns zeros")
    func lastOverflowPage() throws {
        try fill()
        let file = try stores.databaseFile()
        let whole = try Data(contentsOf: file)
        // Which page it is can't be seen from outside, so each is tried: one of them is.
        var harmed = 0
        for page in 1..<(whole.count / 4096) {
            var changed = whole
            changed[page * 4096 + 2000] ^= 1
            try changed.write(to: file)
            let error = thrown {
                let database = try stores.open { $0.readOnly = true }
                #expect(try database["long"]?.currentRevision?.json == Data(Self.content["long"]!.utf8))
            }
            if let error {
                #expect(error.code == .damaged)
                harmed += 1
            }
        }
        // The document's own: four overflow pages, and those on the way to it.
        #expect(harmed >= 4)
    }

    /// Zeros are no JSON, so that whatever reads the body notices them. An older page is: the digest alone tells.
    @Test("Damage of the last overflow page of a long document is noticed, where an older page makes other JSON of it")
    func olderOverflowPage() throws {
        let bodies = ["older", "newer"].map { #"{"t":"\#(String(repeating: $0 + " text ", count: 1_200))"}"# }
        var states: [Data] = []
        for body in bodies {
            let database = try stores.open { $0.compactsInBackground = false }
            if try database["long"] != nil { try database.document(withID: "long").purge() }
            try database.save(json: Data(body.utf8), withID: "long")
            try database.close()
            states.append(try Data(contentsOf: stores.databaseFile()))
        }
        let pages = (0..<states[1].count / 4096).map { $0 * 4096..<$0 * 4096 + 4096 }
        var refusals = 0
        for page in pages where page.upperBound <= states[0].count && states[0][page] != states[1][page] {
            var changed = states[1]
            changed.replaceSubrange(page, with: states[0][page])
            try changed.write(to: stores.databaseFile())
            let error = thrown {
                let database = try stores.open { $0.readOnly = true }
                let json = try database["long"]?.currentRevision?.json
                #expect(json == nil || json == Data(bodies[1].utf8), "page \(page.lowerBound / 4096 + 1)")
            }
            #expect(error == nil || error?.code == .damaged)
            if error?.description.contains("the body of revision") == true { refusals += 1 }
        }
        #expect(refusals >= 2, "the first and the last overflow page at least are other ones")
    }

    @Test("Damage that makes one document's row name another's revision is noticed")
    func exchangedRevisions() throws {
        let database = try stores.open("plain", key: nil)
        try database.save(json: Data(#"{"who":"mine"}"#.utf8), withID: "mine")
        let other = try database.save(json: Data(#"{"who":"other"}"#.utf8), withID: "other")
        try database.close()
        // What an older page, put back where it was, can say. An unencrypted store lets the test write it.
        let connection = try DatabaseFile(path: stores.databaseFile("plain").path, subject: "test")
            .connect(.readWrite, cacheByteCount: 1 << 20)
        let change = Statement(connection, "UPDATE documents SET winner = ?1, number = ?1 WHERE id = 'mine'")
        try change.bind(1, Int64(other.sequence))
        try change.run()
        try connection.close()
        let again = try stores.open("plain", key: nil)
        #expect(thrown { try again["mine"] }?.code == .damaged)
        #expect(thrown { try again.document(withID: "mine").revision(withID: other.revisionID) }?.code == .damaged)
        #expect(try again["other"]?["who"] == "other")
    }

    @Test("Damage of one document does not keep the others from being read")
    func others() throws {
        try fill()
        let file = try stores.databaseFile()
        let whole = try Data(contentsOf: file)
        var partly = 0
        for page in 1..<(whole.count / 4096) {
            var changed = whole
            changed[page * 4096 + 2000] ^= 1
            try changed.write(to: file)
            guard let database = try? stores.open("db", key: TestStores.key, { $0.readOnly = true }) else { continue }
            let readable = Self.content.keys.filter { (try? database[$0]?.properties) != nil }
            if !readable.isEmpty && readable.count < Self.content.count { partly += 1 }
        }
        #expect(partly > 0)
    }

    @Test("Damage that swaps in another store's files is noticed")
    func otherStore() throws {
        try fill()
        let other = try stores.open("other")
        try other.save(json: Data("{}".utf8), withID: "x")
        try other.close()

        // Same key, same content: another master key, so the first page does not verify.
        try Data(contentsOf: stores.databaseFile("other")).write(to: stores.databaseFile())
        #expect(thrown { try stores.open() }?.code == .damaged)

        // A whole generation under the name that the manifest gives.
        let generation = try stores.generation()
        try FileManager.default.removeItem(at: generation)
        try FileManager.default.copyItem(at: stores.generation("other"), to: generation)
        #expect(thrown { try stores.open() }?.code == .damaged)

        // Without keys only the database's own word says which store it is of.
        for name in ["plain", "another"] { try stores.open(name, key: nil).close() }
        try Data(contentsOf: stores.databaseFile("another")).write(to: stores.databaseFile("plain"))
        #expect(thrown { try stores.open("plain", key: nil) }?.code == .damaged)
    }

    @Test("Damage in an unencrypted store's binding is noticed too")
    func unencrypted() throws {
        try stores.open("one", key: nil).close()
        try stores.open("two", key: nil).close()
        try Data(contentsOf: stores.databaseFile("two")).write(to: stores.databaseFile("one"))
        #expect(thrown { try stores.open("one", key: nil) }?.code == .damaged)
        try Data().write(to: stores.databaseFile("one"))
        #expect(thrown { try stores.open("one", key: nil) }?.code == .damaged)
    }

    @Test("Damage of a newer format or schema is a 501")
    func newer() throws {
        try stores.open("db", key: nil).close()
        let connection = try DatabaseFile(path: stores.databaseFile().path, subject: "test")
            .connect(.readWrite, cacheByteCount: 1 << 20)
        try connection.execute("PRAGMA user_version = 2")
        try connection.close()
        #expect(thrown { try stores.open(key: nil) }?.code == .unsupportedFormat)
    }

    @Test("Damage that a symbolic link inside the store could do is refused")
    func links() throws {
        try fill()
        let file = try stores.databaseFile()
        let elsewhere = stores.directory.appending(path: "elsewhere")
        try FileManager.default.moveItem(at: file, to: elsewhere)
        try FileManager.default.createSymbolicLink(at: file, withDestinationURL: elsewhere)
        #expect(thrown { try stores.open() }?.code == .damaged)
    }

    /// SQLite plays back a journal that it finds beside a database, also one in WAL mode. The journal's checksums need no
    /// key, so whoever kept older pages could have an opening with the right key write them over the newer ones.
    @Test(
        "Damage that a journal beside the database would do is refused, and the newest state stays",
        arguments: [true, false])
    func journal(isEncrypted: Bool) throws {
        let key = isEncrypted ? TestStores.key : nil
        func save(_ json: String) throws {
            let database = try stores.open(key: key)
            try database.saveDocument(
                MutableDocument(id: "a", ["n": .string(json)]), concurrencyControl: .lastWriteWins)
            try database.close()
        }
        try save("older")
        let older = try Data(contentsOf: stores.databaseFile())
        try save("newer")
        let journal = URL(filePath: try stores.databaseFile().path + "-journal")
        for content in [Self.journal(of: older), Data(), Data("nothing".utf8)] {
            try content.write(to: journal)
            let before = try stores.snapshot()
            for readOnly in [true, false] {
                #expect(thrown { try stores.open(key: key) { $0.readOnly = readOnly } }?.code == .damaged)
            }
            #expect(thrown { try stores.open(key: testKey(8)) }?.status == 401)
            #expect(try stores.snapshot() == before)
        }
        try FileManager.default.removeItem(at: journal)
        #expect(try stores.open(key: key)["a"]?["n"] == "newer")
    }

    /// A hot rollback journal that restores `file`: sqlite.org/fileformat2.html, section 3.
    private static func journal(of file: Data) -> Data {
        func word(_ value: Int) -> [UInt8] { (0..<4).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
        let pages = stride(from: 0, to: file.count, by: 4096).map { [UInt8](file[$0..<$0 + 4096]) }
        var journal: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
        for value in [pages.count, 5, pages.count, 512, 4096] { journal += word(value) }
        journal += [UInt8](repeating: 0, count: 512 - journal.count)
        for (index, page) in pages.enumerated() {
            let sum = stride(from: 4096 - 200, to: 0, by: -200).reduce(5) { $0 + Int(page[$1]) }
            journal += word(index + 1) + page + word(sum)
        }
        return Data(journal)
    }
}
