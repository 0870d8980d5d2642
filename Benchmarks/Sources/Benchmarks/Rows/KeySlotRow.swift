internal import CByHand
internal import Coffer
internal import Foundation

/// Giving a store another key, against the stretching of a password alone.
struct KeySlotRow {
    private let bench: Bench

    init(_ bench: Bench) { self.bench = bench }

    func row() throws -> Row {
        bench.say("another key …")
        let database = try bench.newStore()
        defer { try? database.close() }
        let comparison = try Comparison.run(roundCount: bench.settings.roundCount) {
            var key = [UInt8](repeating: 0, count: 32)
            return try measure { try expect(unsafe by_hand_derive("password123456", &key), "scrypt by hand failed") }
        } own: {
            var added: DatabaseKey?
            let cost = try measure { added = try database.addKey(SymmetricKey(password: "password123456")) }
            try added.map { try database.removeKey($0.id) }
            return cost
        }
        return Row(
            "another key by a password", time: comparison, atMost: 1.5,
            explanation: """
                addKey with a password for a store that a raw key opened, durable; by hand: one scrypt of the same cost, and \
                nothing written. Nothing is encrypted again
                """)
    }
}
