import CofferFaults
import Foundation
import Testing

@testable import Coffer
@testable import CofferVault

/// A database file with holes of terabytes was read byte by byte, and each page in a hole was a finding of its own: billions.
@Suite("Verifying a store whose database file is sparse")
struct SparseFileTests {
    private let files = RecordingFileSystem()
    private let stores: TestStores

    init() { stores = TestStores(fileSystem: files) }

    /// A closed store, and what its file holds.
    private func make(key: SymmetricKey?) throws -> Data {
        let database = try stores.open(key: key) { $0.compactsInBackground = false }
        try database.inTransaction {
            for number in 0..<60 {
                try database.save(json: json(number, byteCount: number % 9 == 4 ? 9_000 : 300), withID: "d\(number)")
            }
        }
        try database.close()
        return try Data(contentsOf: stores.databaseFile())
    }

    private func verify(key: SymmetricKey?, _ level: VerificationLevel = .pages) throws -> Verification {
        files.forgetReads()
        return try stores.manager.verifyDatabase(named: "db", encryptionKey: key, level: level)
    }

    /// Writes `whole` with `pages` as holes, up to `byteCount`.
    private func write(_ whole: Data, holes pages: ClosedRange<Int>?, byteCount: Int? = nil) throws {
        let file = open(try stores.databaseFile().path, O_WRONLY | O_TRUNC)
        try #require(file >= 0)
        defer { close(file) }
        let bytes = [UInt8](whole)
        try #require(ftruncate(file, off_t(byteCount ?? whole.count)) == 0)
        for page in 1...whole.count / 4096 where pages?.contains(page) != true {
            let offset = (page - 1) * 4096
            try #require(
                bytes[offset..<offset + 4096].withUnsafeBytes { pwrite(file, $0.baseAddress, 4096, off_t(offset)) }
                    == 4096)
        }
    }

    @Test("Pages in a hole are found as pages of zeros are, one by one", arguments: [TestStores.key, nil])
    func fewPages(key: SymmetricKey?) throws {
        let whole = try make(key: key)
        let count = whole.count / 4096
        #expect(count > 20)
        for pages in [1...1, 2...2, 1...2, 3...3, 5...9, 2...12, count...count, (count - 4)...count] {
            var zeroed = whole
            zeroed.resetBytes(in: (pages.lowerBound - 1) * 4096..<pages.upperBound * 4096)
            try zeroed.write(to: stores.databaseFile())
            let expected = try verify(key: key)
            try write(whole, holes: pages)
            let found = try verify(key: key)
            #expect(found.findings == expected.findings, "\(pages)")
            #expect(found.pageCount == count)
            if key != nil { #expect(found.findings.map(\.page) == pages.map(\.self)) }
        }
        try write(whole, holes: nil)
        #expect(try verify(key: key, .everything).isSound)
    }

    @Test("Many pages in one hole of an encrypted store are one finding", .enabled(if: isSparseTold, "needs holes"))
    func manyPages() throws {
        let whole = try make(key: TestStores.key)
        try write(whole, holes: 3...19)
        let findings = try verify(key: TestStores.key).findings
        #expect(findings.map(\.subject) == ["pages 3 to 19 of db.sqlite3"])
        #expect(findings.map(\.page) == [3])
        #expect(findings.first?.detail.hasPrefix("they are all zeros, which an encrypted page never is") == true)
    }

    @Test(
        "Of a sparse database file with terabytes of holes only the data are read, and the holes are one finding",
        .enabled(if: isSparseTold, "needs holes"), arguments: [TestStores.key, nil])
    func terabytes(key: SymmetricKey?) throws {
        let whole = try make(key: key)
        let count = whole.count / 4096
        try write(whole, holes: nil, byteCount: 2 << 40)
        let result = try verify(key: key)
        #expect(result.pageCount == (2 << 40) / 4096)
        // Beside the data, some pages in the hole are looked at whose map is there.
        #expect(files.reads.reduce(0) { $0 + $1.count } < 16 << 20)
        let finding = try #require(result.findings.first)
        #expect(result.findings.count <= 2)
        if key == nil {
            #expect(finding.detail.hasPrefix("they are all zeros, which the maps of pages among them never are"))
        } else {
            // SQLite's page for locks is never written.
            #expect(
                result.findings.map(\.subject) == [
                    "pages \(count + 1) to 262144 of db.sqlite3", "pages 262146 to 536870912 of db.sqlite3",
                ])
        }
    }

    @Test("An entry of a store that is neither a file nor a folder is said to be skipped, and is no damage")
    func skipped() throws {
        _ = try make(key: TestStores.key)
        let store = stores.url().path
        #expect(mkfifo(store + "/fifo", 0o600) == 0)
        #expect(symlink("nowhere", store + "/link") == 0)
        #expect(mknod(try stores.generation().path + "/attachments/socket", S_IFSOCK | 0o600, 0) == 0)
        let result = try verify(key: TestStores.key, .everything)
        #expect(result.isSound)
        #expect(Set(result.skipped.map(\.reason)) == ["a FIFO", "a symbolic link", "a socket"])
        #expect(result.skipped.contains { $0.path.hasSuffix("/attachments/socket") })
        #expect(try verify(key: TestStores.key, .keys).skipped.isEmpty)
    }
}

/// Whether the file system of tests' files has holes in files.
private let isSparseTold: Bool = {
    let path = URL.temporaryDirectory.appending(path: "coffer-sparse-\(UUID())").path
    let file = open(path, O_CREAT | O_RDWR, 0o600)
    guard file >= 0 else { return false }
    defer { close(file) }
    unlink(path)
    var status = stat()
    return ftruncate(file, 2 << 40) == 0 && fstat(file, &status) == 0 && status.st_blocks < 100
}()
