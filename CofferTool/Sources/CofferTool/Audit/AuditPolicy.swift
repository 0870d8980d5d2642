internal import ArgumentParser
internal import Coffer
internal import Foundation

/// What an operator asks of stores.
struct AuditPolicy {
    /// In what a store is not as it is asked for.
    enum Violation: String, CaseIterable {
        case notEncrypted
        /// Its data key is older than it may be.
        case tooOld
        /// A password opens it whose derivation costs less than it should.
        case tooWeak

        var text: String {
            switch self {
            case .notEncrypted: "it is not encrypted"
            case .tooOld: "its data key is older than it may be"
            case .tooWeak: "it has a password whose key derivation is too cheap to withstand guesses"
            }
        }
    }

    var mustBeEncrypted = false
    var oldest: Age?
    var weakest: [DerivationCost] = []

    func violations(of store: StoreAudit, at now: Date) -> [Violation] {
        var violations: [Violation] = []
        if mustBeEncrypted, !store.info.isEncrypted { violations.append(.notEncrypted) }
        if let oldest, let age = store.info.dataKeyAge(at: now), age > oldest.duration { violations.append(.tooOld) }
        if store.info.keySlots.contains(where: { slot in weakest.contains { $0.isAbove(slot.kind) } }) {
            violations.append(.tooWeak)
        }
        return violations
    }
}

/// How old something may be, such as `90d`: a number with d for days, h for hours, w for weeks.
struct Age: ExpressibleByArgument {
    let duration: Duration

    init?(argument: String) {
        let units: [Character: Int64] = ["h": 3_600, "d": 86_400, "w": 604_800]
        guard let unit = argument.last.flatMap({ units[$0] }), let number = Int64(argument.dropLast()),
            (0...36_500).contains(number)
        else { return nil }
        duration = .seconds(number * unit)
    }
}

/// What trying a password costs, such as `scrypt:131072:8:1` (N, r, p) or `pbkdf2:600000` (iterations).
enum DerivationCost: ExpressibleByArgument {
    case scrypt(n: Int, r: Int, p: Int)
    case pbkdf2(iterations: Int)

    init?(argument: String) {
        let words = argument.split(separator: ":", omittingEmptySubsequences: false)
        let numbers = words.dropFirst().compactMap { Int($0) }
        guard numbers.count == words.count - 1, numbers.allSatisfy({ (1...(1 << 31)).contains($0) }) else { return nil }
        switch (words.first, numbers.count) {
        case ("scrypt", 3): self = .scrypt(n: numbers[0], r: numbers[1], p: numbers[2])
        case ("pbkdf2", 1): self = .pbkdf2(iterations: numbers[0])
        default: return nil
        }
    }

    /// Whether a key of that kind costs less to try. One of 32 bytes can't be tried, and what PBKDF2 derives costs less than what
    /// scrypt does, which takes memory, too.
    func isAbove(_ kind: StoreInfo.KeySlot.Kind) -> Bool {
        switch (self, kind) {
        case (_, .bytes), (.pbkdf2, .scryptPassword): false
        case (.scrypt(let n, let r, let p), .scryptPassword(let otherN, let otherR, let otherP)):
            Double(otherN) * Double(otherR) * Double(otherP) < Double(n) * Double(r) * Double(p)
        case (.scrypt, .pbkdf2Password): true
        case (.pbkdf2(let iterations), .pbkdf2Password(let others)): others < iterations
        }
    }
}
