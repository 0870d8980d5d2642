import CofferFaults
import Foundation

@testable import Coffer
@testable import CofferVault

/// Bytes of a fixed content: `count` of them, others for each `seed`.
private func content(_ count: Int, _ seed: UInt64) -> Data { AttachmentTests.bytes(count, seed: seed) }

/// A document with an attachment, whose content is its own.
private func saveDocument(_ id: String, _ content: Data, in database: Database) throws {
    let draft = try database.document(withID: id).newRevision()
    draft["id"] = .string(id)
    draft.setAttachment(named: "content", contentType: "application/octet-stream", content: content)
    try draft.save()
}

/// Saves one attachment; then, as a second revision, another in its place, from a stream, and a blob.
struct SavingAttachments: StoreChange {
    let key: SymmetricKey?
    var keys: [SymmetricKey?] { [key] }

    func prepare(_ stores: TestStores) throws {
        let database = try stores.open(key: key)
        try saveDocument("before", content(20_000, 1), in: database)
        try database.close()
    }

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        let database = try stores.open(key: key)
        defer { try? database.close() }
        // More than is written at once, so that a file can be half written.
        try saveDocument("new", content(270_000, 2), in: database)
        try acknowledge()
        guard let draft = try database.document(withID: "new").currentRevision?.createRevision() else {
            throw CofferError(.documentNotFound)
        }
        try draft.setAttachment(
            named: "content", contentType: nil, contentsOf: InputStream(data: content(16_384, 3)))
        draft.setBlob(Blob(contentType: "image/png", data: content(5, 4)), forKey: "blob")
        try draft.save()
        try acknowledge()
    }
}

/// Saves so many in one transaction that one sync is made for all of them, and once more some of the same.
struct SavingManyAttachments: StoreChange {
    let key: SymmetricKey?
    var keys: [SymmetricKey?] { [key] }

    func prepare(_ stores: TestStores) throws { try SavingAttachments(key: key).prepare(stores) }

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        let database = try stores.open(key: key)
        defer { try? database.close() }
        try database.inTransaction {
            for number in 0..<9 {
                try saveDocument("new \(number)", content(number * 2_000, UInt64(10 + number)), in: database)
            }
            // A content that is there, and one that is on its way.
            try saveDocument("again", content(20_000, 1), in: database)
            try saveDocument("twice", content(8_000, 14), in: database)
        }
        try acknowledge()
    }
}

/// Saves so many in one transaction that some get their places before it ends, while nested ones save others and are rolled
/// back.
struct SavingBatches: StoreChange {
    let key: SymmetricKey?
    var keys: [SymmetricKey?] { [key] }

    func prepare(_ stores: TestStores) throws { try SavingAttachments(key: key).prepare(stores) }

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        let small = TestStores(
            sharing: stores.directory.path, fileSystem: stores.fileSystem, attachmentBatchCount: 8)
        let database = try small.open(key: key)
        defer { try? database.close() }
        func save(_ numbers: ClosedRange<Int>) throws {
            for number in numbers { try Self.save(number, in: database) }
        }
        try database.inTransaction {
            try save(1...5)
            do {
                try database.inTransaction {
                    try save(6...8)
                    throw CancellationError()
                }
            } catch is CancellationError {}
            // One that the other would have saved, one that is there, and one that is on its way.
            try save(8...10)
            try Self.save(9, as: "twice", in: database)
            try saveDocument("again", content(20_000, 1), in: database)
        }
        try acknowledge()
    }

    private static func save(_ number: Int, as id: String? = nil, in database: Database) throws {
        try saveDocument(id ?? "new \(number)", content(1_000 + number, UInt64(30 + number)), in: database)
    }
}

/// Removes bodies, rows and files of what was replaced and deleted.
struct Compacting: StoreChange {
    let key: SymmetricKey?
    var keys: [SymmetricKey?] { [key] }

    func prepare(_ stores: TestStores) throws {
        let database = try stores.open(key: key)
        for number in 0..<4 { try saveDocument("\(number)", content(3_000, UInt64(number)), in: database) }
        try saveDocument("shared", content(3_000, 2), in: database)
        guard let draft = try database.document(withID: "0").currentRevision?.createRevision() else {
            throw CofferError(.documentNotFound)
        }
        draft.setAttachment(named: "content", contentType: nil, content: content(100, 5))
        try draft.save()
        for id in ["1", "2"] { try database.document(withID: id).currentRevision?.deleteDocument() }
        try database.close()
    }

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        let database = try stores.open(key: key)
        defer { try? database.close() }
        let result = try database.compact()
        guard result == CompactionResult(revisionCount: 3, attachmentCount: 2, attachmentByteCount: 6_000) else {
            throw CofferError(.invalidArgument, "the compaction removed \(result)")
        }
        try acknowledge()
    }

    func mayLeaveFiles(acknowledged: Int) -> Bool { acknowledged == 0 }
}

/// Creates a store, and saves into it.
struct Creating: StoreChange {
    let key: SymmetricKey?
    var keys: [SymmetricKey?] { [key] }

    func prepare(_ stores: TestStores) throws {}

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        let database = try stores.open(key: key)
        defer { try? database.close() }
        try acknowledge()
        try saveDocument("first", content(100, 1), in: database)
        try acknowledge()
    }
}

/// Deletes a store that has something in it.
struct Deleting: StoreChange {
    let key: SymmetricKey?
    var keys: [SymmetricKey?] { [key] }

    func prepare(_ stores: TestStores) throws { try SavingAttachments(key: key).prepare(stores) }

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        let database = try stores.open(key: key) { $0.create = false }
        defer { try? database.close() }
        try database.delete()
        try acknowledge()
    }
}

/// Opens a store in which something of every kind was left behind: changes nothing of what it holds.
struct Recovering: StoreChange {
    let key: SymmetricKey?
    var keys: [SymmetricKey?] { [key] }

    func prepare(_ stores: TestStores) throws {
        let saving = SavingAttachments(key: key)
        try saving.prepare(stores)
        let generation = try stores.generation()
        // The content is announced and in its place, and its row is not there; what comes after has no effect.
        let steps = RecordingFileSystem()
        let rehearsal = try Sandbox()
        try saving.prepare(rehearsal.stores())
        try saving.run(rehearsal.stores(steps)) {}
        guard let placed = steps.stepNames.firstIndex(where: { $0.hasPrefix("rename ") }) else {
            throw CofferError(.ioFailed, "nothing was installed")
        }
        let stopped = TestStores(
            sharing: stores.directory.path, fileSystem: RecordingFileSystem(.stopBefore(placed + 2)))
        do { try saving.run(stopped) {} } catch let error as CofferError where error.code == .ioFailed {}

        for (name, folder) in [("incoming/0123456789abcdef", generation), ("MANIFEST.new", stores.url())] {
            try Data("half".utf8).write(to: folder.appending(path: name))
        }
        let listed = String(repeating: "0a", count: 20) + ".blob"
        try Data("no row".utf8).write(to: generation.appending(path: "attachments/\(listed)"))
        try Data(InstallIntentList.bytes(of: [listed], in: .sha1))
            .write(to: generation.appending(path: "incoming/fedcba9876543210.list"))
        let old = stores.url().appending(path: "g0000000000000000-00000000000000ff/attachments")
        try FileManager.default.createDirectory(at: old, withIntermediateDirectories: true)
        try Data("old".utf8).write(to: old.appending(path: "old.blob"))
    }

    func run(_ stores: TestStores, acknowledge: () throws -> Void) throws {
        let database = try stores.open(key: key) { $0.create = false }
        try acknowledge()
        try database.close()
    }
}
