import Foundation
import Testing

@testable import Coffer

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A store in memory, where the system has that, with some of everything a database holds: short and long rows, a
/// conflict, a deletion, a local document, an expiration, and a content in three chunks.
final class SmallStore: Sendable {
    static let photo = AttachmentTests.bytes(2 * 16_384 + 100)
    static let long = #"{"t":"\#(String(repeating: "long text ", count: 900))"}"#

    let stores: TestStores
    let databaseFile: URL

    convenience init() throws {
        try self.init { stores in
            let database = try stores.open()
            try database.inTransaction {
                try database.save(json: Data(#"{"n":1}"#.utf8), withID: "short")
                try database.save(json: Data(Self.long.utf8), withID: "long")
                try database.save(json: Data(#"{"n":2}"#.utf8), withID: "gone")
                try database.document(withID: "gone").delete()
                let history = ["2-b", "1-a"].compactMap(RevisionID.init(_:))
                try database.putExistingRevision(["n": 3], withID: "torn", history: history)
                let other = ["2-c", "1-a"].compactMap(RevisionID.init(_:))
                try database.putExistingRevision(["n": 4], withID: "torn", history: other)
                try database.document(withID: "short").setExpirationDate(Date(timeIntervalSinceNow: 1e9))
                let draft = try database.document(withID: "photo").newRevision()
                draft.setAttachment(named: "photo", contentType: nil, content: Self.photo)
                try draft.save()
            }
            try database.saveLocalDocument(["l": .string(Self.long)], withID: "local")
            try database.close()
        }
    }

    private init(_ fill: (TestStores) throws -> Void) throws {
        let memory = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
        let place = access(memory.path, W_OK) == 0 ? memory : URL.temporaryDirectory
        let directory = place.appending(path: "coffer-small-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        stores = TestStores(sharing: directory.path)
        try fill(stores)
        databaseFile = try stores.databaseFile()
    }

    deinit { try? FileManager.default.removeItem(at: stores.directory) }

    func copy() throws -> SmallStore {
        try SmallStore { try FileManager.default.copyItem(at: self.stores.url(), to: $0.url()) }
    }

    /// Has every file as it is in `original` again.
    func restore(from original: SmallStore) throws {
        try FileManager.default.removeItem(at: stores.url())
        try FileManager.default.copyItem(at: original.stores.url(), to: stores.url())
    }

    func open(readOnly: Bool) throws -> Database {
        try stores.open {
            $0.create = false
            $0.readOnly = readOnly
        }
    }

    func contentFile() throws -> URL {
        let folder = try stores.generation().appending(path: "attachments")
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder.path).first)
        return folder.appending(path: name)
    }

    /// Reads everything in every way: `right`, or `damaged`, or `wrong` where something else was read than was written, or
    /// the error is not damage.
    func outcome(readOnly: Bool) -> String {
        var database: Database?
        let opening = Self.outcome {
            database = try open(readOnly: readOnly)
            return true
        }
        guard let database else { return opening }
        var outcomes = Set(Self.readings.map { read in Self.outcome { try read(database) } })
        outcomes.insert(
            Self.outcome {
                try database.close()
                return true
            })
        return ["wrong", "damaged"].first { outcomes.contains($0) } ?? "right"
    }

    private static func outcome(_ isRight: () throws -> Bool) -> String {
        do {
            return try isRight() ? "right" : "wrong"
        } catch {
            return (error as? CofferError)?.code == .damaged ? "damaged" : "wrong"
        }
    }

    private static let readings: [@Sendable (Database) throws -> Bool] = [
        { try $0["short"]?.currentRevision?.json == Data(#"{"n":1}"#.utf8) },
        { try $0["long"]?.currentRevision?.json == Data(long.utf8) },
        { try $0["torn"]?.currentRevision?.json == Data(#"{"n":4}"#.utf8) },
        { try $0["gone"] == nil },
        { try $0.document(withID: "gone").isDeleted },
        { try $0.document(withID: "torn").conflictingRevisions.count == 2 },
        { try $0["photo"]?.currentRevision?.attachment(named: "photo")?.content == photo },
        { try $0.allDocuments().all.map(\.document.documentID) == ["long", "photo", "short", "torn"] },
        { try $0.changes(since: 0).all.count == 5 },
        { try $0.documentCount == 4 },
        { try $0.document(withID: "short").expirationDate != nil },
        { try $0.localDocument(withID: "local") == ["l": .string(long)] },
    ]
}
