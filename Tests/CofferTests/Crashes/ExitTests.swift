import Foundation
import Testing

@testable import Coffer

/// As a process exits, OpenSSL frees all that it has, unless it was told not to, while other threads go on until the very
/// end. One that saved crashed in it.
@Suite("A process that exits while another thread saves", .serialized, .timeLimit(.minutes(10)))
struct ExitTests {
    private let stores = TestStores()
    private var journal: Journal { Journal(path: stores.directory.path + "/journal") }

    private static let roundCount = DamageTests.isExhaustive ? 200 : 10

    /// Saves and compacts without end, and notes what was acknowledged.
    private static func saveForever(_ database: Database, round: Int, _ journal: Journal) {
        for number in 0... {
            let id = "\(round)-\(number)"
            do {
                try database.inTransaction {
                    for part in 0..<4 {
                        try database.save(json: json(number, byteCount: 8_000), withID: "\(id)-\(part)")
                    }
                }
                try journal.note(id)
                if number % 8 == 7 { try database.compact() }
            } catch {
                // Whatever it meets, it goes on as long as the process lets it.
            }
        }
    }

    private func check(_ round: Int) throws {
        let database = try stores.open()
        #expect(try database.verify().findings == [], "round \(round)")
        for id in journal.lines where id.hasPrefix("\(round)-") {
            for part in 0..<4 { #expect(try database["\(id)-\(part)"] != nil, "\(id)") }
        }
        try database.close()
    }

    @Test("A store is whole, and has what was acknowledged, after its process exited in the middle of saves")
    func exits() async throws {
        _ = try stores.open()
        for round in 0..<Self.roundCount {
            await #expect(processExitsWith: .success, "round \(round)") {
                [path = stores.directory.path as String, journal = journal.path as String, round = round as Int] in
                // Registered first, it comes last: others of the app's do their work as long.
                atexit { usleep(100_000) }
                let database = try TestStores(sharing: path).open { $0.checkpointFrameCount = 64 }
                Thread {
                    Self.saveForever(database, round: round, Journal(path: journal))
                }.start()
                usleep(UInt32(30_000 + round % 20 * 3_000))
                exit(0)
            }
            try check(round)
        }
        #expect(journal.lines.count > Self.roundCount)
    }
}
