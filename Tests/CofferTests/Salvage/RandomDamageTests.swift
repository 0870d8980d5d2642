import Foundation
import TestSupport
import Testing

@testable import Coffer
@testable import CofferVault

/// Bytes that are flipped, zeroed, cut off or put elsewhere at random, always the same.
@Suite("Salvaging a store with random damage", .timeLimit(.minutes(30)))
struct RandomDamageTests {
    @Test(
        "A salvage after random damage brings every document whose pages are untouched, and nothing that is wrong",
        arguments: [true, false])
    func random(isEncrypted: Bool) throws {
        let fixture = try SalvageFixture(
            key: isEncrypted ? TestStores.key : nil, documentCount: 240, hasForeignRevisions: false)
        let places = try RowPlaces(fixture.source())
        let pages = places.revisions.filter { fixture.original.documents[$0.key] != nil }
        #expect(pages.count == fixture.original.documents.count)
        #expect(pages.values.contains { $0.count > 4 })
        let file = try fixture.databaseFile
        let whole = try Data(contentsOf: file)
        var random = SeededNumbers(seed: isEncrypted ? 11 : 12)
        var lossCount = 0
        for round in 0..<25 {
            var data = whole
            var touched: Set<Int> = []
            for _ in 0..<1 + Int.random(in: 0..<12, using: &random) {
                touched.formUnion(Self.damage(&data, &random))
            }
            let isSaltLost = isEncrypted && round % 8 == 7
            if isSaltLost {
                data[Int.random(in: 0..<16, using: &random)] ^= 1
                touched.insert(1)
            }
            try data.write(to: file)
            let outcome = try fixture.salvage()
            for (id, own) in pages {
                // Without codes, two tables have to say which document a revision is of.
                let needed = isEncrypted && !isSaltLost ? own : own.union(places.documents[id] ?? [])
                guard needed.isDisjoint(with: touched) else { continue }
                #expect(
                    outcome.intact.contains(id),
                    "round \(round): \(id), pages \(needed.sorted()), damaged \(touched.sorted())")
            }
            lossCount += fixture.original.documents.count - outcome.intact.count
        }
        #expect(lossCount > 60)
    }

    /// Changes a part of the file.
    ///
    /// - Returns: the pages that it is in.
    private static func damage(_ data: inout Data, _ random: inout SeededNumbers) -> Set<Int> {
        guard data.count > 8192 else { return [] }
        let start = Int.random(in: 0..<data.count, using: &random)
        var end = start + 1
        switch Int.random(in: 0..<8, using: &random) {
        case 0, 1, 2:
            data[start] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 3, 4:
            end = min(data.count, start + Int.random(in: 1..<6000, using: &random))
            data.resetBytes(in: start..<end)
        case 5:
            end = min(data.count, start + Int.random(in: 1..<300, using: &random))
            for index in start..<end { data[index] = .random(in: .min ... .max, using: &random) }
        case 6:
            // A page in another's place.
            let page = start / 4096 * 4096
            let other = Int.random(in: 0..<data.count / 4096, using: &random) * 4096
            data.replaceSubrange(page..<page + 4096, with: Data(data[other..<other + 4096]))
            return other == page ? [] : [page / 4096 + 1]
        default:
            // The end.
            let kept = data.count - Int.random(in: 1..<5 * 4096, using: &random)
            let last = data.count / 4096
            data = data.prefix(kept)
            return Set(kept / 4096 + 1...last + 1)
        }
        return Set(start / 4096 + 1...(end - 1) / 4096 + 1)
    }
}
