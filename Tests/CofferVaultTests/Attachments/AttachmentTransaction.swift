import CofferFaults
import CofferSealing
import CofferVault
import Foundation
import Testing

/// A transaction that saves some attachments, with a file beside the store in the place of their rows.
struct AttachmentTransaction: Codable, SteppedChange, CustomStringConvertible {
    var isEncrypted = true
    var count = 1
    var ending = Ending.commit

    enum Ending: String, Codable {
        case commit, rollBack
    }

    /// What the layer above keeps of an attachment.
    struct Row: Codable {
        let name: String
        let sha1, sha256, header: [UInt8]
        let byteCount: Int
        let seed: UInt64

        init(_ staged: StagedAttachment, _ attachments: AttachmentStore, seed: UInt64) throws {
            name = try attachments.naming.name(of: staged.digest.sha1)
            sha1 = staged.digest.sha1
            sha256 = staged.digest.sha256
            header = staged.header
            byteCount = staged.digest.byteCount
            self.seed = seed
        }
    }

    var description: String { "\(isEncrypted ? "encrypted" : "plain"), \(count), \(ending)" }

    private var key: SymmetricKey? { isEncrypted ? rawKey() : nil }

    /// Longer than what is written at once, so that a file can be half written.
    static func bytes(seed: UInt64) -> [UInt8] { content(seed == 1 ? 270_000 : 100, seed: seed) }

    /// Makes the store, with one attachment that has nothing to do with the transaction.
    func prepare(_ path: String) throws {
        try makeStore(at: path, key: key)
        try saveFirst(path)
    }

    func saveFirst(_ path: String) throws { try run(path, SystemFileSystem(), seeds: [100], ending: .commit) }

    func run(_ path: String, _ fileSystem: any FileSystem) throws {
        try run(path, fileSystem, seeds: Array(1...UInt64(count)), ending: ending)
    }

    /// Between which of the steps the commit is, which is none of them: how many come before it.
    static func commit(in steps: [String]) -> Int? { steps.lastIndex(of: "fsync directory attachments").map { $0 + 1 } }

    /// Expects that of kills in the order of steps none before the commit saved anything, and each from it on all `count`.
    ///
    /// - Returns: how many had committed.
    static func expectAllOrNone(_ saved: [Int], count: Int, _ ending: Ending) -> Int {
        let turn = saved.firstIndex { $0 != 0 } ?? saved.count
        #expect(saved[turn...].allSatisfy { $0 == count })
        #expect((turn < saved.count) == (ending == .commit))
        return saved.count - turn
    }

    private func run(
        _ path: String, _ fileSystem: any FileSystem, seeds: [UInt64], ending: Ending
    ) throws {
        let (store, attachments) = try openAttachments(at: path, key: key, fileSystem: fileSystem)
        defer { store.close() }
        let staged = try seeds.map { try attachments.stage(Self.bytes(seed: $0), pieces: 100_000) }
        var rows = try Self.rows(of: path)
        rows += try zip(staged, seeds).map { try Row($0, attachments, seed: $1) }
        try attachments.install(staged)
        switch ending {
        case .commit:
            try Self.write(rows, of: path)
            attachments.didCommit(staged)
        case .rollBack: attachments.didRollBack(staged)
        }
    }

    /// In one step, as a database does.
    static func write(_ rows: [Row], of path: String) throws {
        try JSONEncoder().encode(rows).write(to: rowsFile(of: path), options: .atomic)
    }

    private static func rowsFile(of path: String) -> URL { URL(fileURLWithPath: path + ".rows") }

    static func rows(of path: String) throws -> [Row] {
        guard let data = try? Data(contentsOf: rowsFile(of: path)) else { return [] }
        return try JSONDecoder().decode([Row].self, from: data)
    }

    /// Opens the store after whatever happened, and checks that the attachments with a row are there and no others, and
    /// that nothing is on its way. Returns how many of the transaction's have a row.
    func check(_ path: String, _ comment: Comment) throws -> Int {
        let rows = try Self.rows(of: path)
        let key = self.key
        try recover(path, key: key) { name in rows.contains { $0.name == name } }
        #expect(try names(in: attachmentsPath(ofStoreAt: path)) == rows.map(\.name).sorted(), comment)
        #expect(try isTidy(path), comment)

        let (store, attachments) = try openAttachments(at: path, key: key)
        defer { store.close() }
        for row in rows {
            let digest = ContentDigest(sha1: row.sha1, sha256: row.sha256, byteCount: row.byteCount)
            let reader = try attachments.open(digest, header: row.header, subject: row.name)
            #expect(try reader.wholeContent() == Self.bytes(seed: row.seed), comment)
        }
        return rows.count - 1
    }
}

/// Recovers the store at `path` if it needs it, and expects that it doesn't after that.
func recover(
    _ path: String, key: SymmetricKey? = rawKey(), fileSystem: any FileSystem = SystemFileSystem(),
    attachmentHasRow: (String) -> Bool
) throws(CofferError) {
    for isFirst in [true, false] {
        let store = try LockedStore.open(path: path, access: .readWrite, fileSystem: fileSystem)
        defer { store.close() }
        let unlocked = try store.readManifest().unlock(with: key)
        let database = try store.generation(of: unlocked).databasePath
        guard let sequence = readBinding(at: database) else { throw CofferError(.damaged, of: database) }
        guard try store.isStale(unlocked, bindingSequence: sequence) else { return }
        #expect(isFirst, "recovery left something to recover")
        _ = try store.recover(unlocked, attachmentHasRow: { attachmentHasRow($0) }) { writeBinding($0, at: database) }
    }
}
