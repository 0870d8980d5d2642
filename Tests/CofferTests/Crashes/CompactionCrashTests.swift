import Foundation
import Testing

@testable import Coffer
@testable import CofferRecords

/// Real processes, really killed in the middle of compactions, their own and those by themselves, of purges and of saves of
/// local documents.
@Suite("A process killed while it compacts", .serialized, .timeLimit(.minutes(30)))
struct CompactionCrashTests {
    let stores = TestStores()
    private var journal: Journal { Journal(path: stores.directory.path + "/journal") }

    static let times = DamageTests.isExhaustive ? (1...40).map { Double($0) * 0.05 } : [0.3, 0.7, 1.3]

    private static func open(_ stores: TestStores, compactsInBackground: Bool) throws -> Database {
        try stores.open {
            $0.compactsInBackground = compactsInBackground
            $0.compactionPolicy.leastByteCount = 100_000
        }
    }

    /// Each document has one attachment, whose content says which revision it is of; the local document says which round has
    /// been saved.
    private static func work(_ stores: TestStores, compactsInBackground: Bool, _ journal: Journal) throws {
        let database = try open(stores, compactsInBackground: compactsInBackground)
        for round in 1... {
            try database.inTransaction {
                for number in 0..<12 {
                    let draft = try database.document(withID: "d\(number)").newRevision()
                    draft["round"] = .number(.init(Int64(round)))
                    draft["t"] = .string(String(repeating: "t", count: 3_000))
                    draft.setAttachment(named: "x", contentType: nil, content: content(round, number))
                    try draft.save()
                }
                try database.saveLocalDocument(["round": .number(.init(Int64(round)))], withID: "checkpoint")
            }
            try journal.note("\(round)")
            try database.save(json: json(round), withID: "gone\(round)")
            try database.document(withID: "gone\(round)").setExpirationDate(.distantPast)
            if !compactsInBackground { try database.compact() }
        }
    }

    private static func content(_ round: Int, _ number: Int) -> Data {
        Data(String(repeating: "\(round) \(number) ", count: 3_000).utf8)
    }

    @Test(
        "A process killed while it compacts has lost nothing, and the next compaction finds all that it left",
        arguments: [true, false], times)
    func killed(compactsInBackground: Bool, seconds: Double) async throws {
        _ = try stores.open()
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [
                path = stores.directory.path as String, isInBackground = compactsInBackground as Bool,
                seconds = seconds as Double, journal = journal.path as String
            ] in
            killOneself(after: .seconds(seconds))
            try Self.work(TestStores(sharing: path), compactsInBackground: isInBackground, Journal(path: journal))
        }
        let acknowledged = journal.lines.compactMap { Int($0) }.last ?? 0
        let database = try stores.open { $0.compactsInBackground = false }
        let round: Int = try database.localDocument(withID: "checkpoint")?["round"] ?? 0
        #expect(round == acknowledged || round == acknowledged + 1)
        func check() throws {
            for number in 0..<12 where round > 0 {
                let current = try #require(try database.document(withID: "d\(number)").currentRevision)
                #expect(try current["round"] == round)
                #expect(try current.attachment(named: "x")?.content == Self.content(round, number))
            }
        }
        try check()
        try await database.compact()
        try check()
        let rows = try database.storage.read { (tables) throws(CofferError) in
            try tables.attachments.attachmentCount()
        }
        #expect(rows == (round > 0 ? 12 : 0))
        let files = try stores.generation().appending(path: "attachments")
        #expect(try FileManager.default.contentsOfDirectory(atPath: files.path).count == rows)
        // What had expired is gone, whatever was done of it.
        for id in try database.documentIDs() where id.hasPrefix("gone") {
            #expect(try database.document(withID: id).expirationDate == nil)
        }
        #expect(try database.documentCount == database.documentIDs().count)
        try await database.close()
    }
}
