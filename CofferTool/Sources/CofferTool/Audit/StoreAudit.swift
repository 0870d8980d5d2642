internal import Coffer
internal import Foundation
internal import ArgumentParser

#if canImport(Glibc)
internal import Glibc
#else
internal import Darwin
#endif

/// What can be known of a store without a key, and without opening it.
struct StoreAudit {
    let path: String
    let info: StoreInfo
    let sizes: StoreSizes
    /// What key changes that were cut short have left; nil if somebody has the store open, and may be making it.
    let leftovers: [OldGeneration]?
    /// Whether this user may write to it.
    let isWritable: Bool
    let holders: [LockHolders.Holder]

    /// - Throws: what keeps MANIFEST from being read.
    init(_ argument: String, holders: LockHolders) throws {
        path = argument
        let store = try StorePath(argument)
        let manager = try Manager(directory: store.folder)
        info = try manager.storeInfo(named: store.databaseName)
        sizes = try StoreSizes(of: store, generation: info.generation)
        leftovers = try? manager.oldGenerations(ofDatabaseNamed: store.databaseName)
        isWritable = ["", "/MANIFEST"].allSatisfy { unsafe access(store.path + $0, W_OK) == 0 }
        self.holders = holders.holders(of: store.path)
    }
}

extension StoreAudit {
    private func days(at now: Date) -> Int? { info.dataKeyAge(at: now).map { Int($0 / .seconds(86_400)) } }

    /// One line for people, and one more for each thing that is to be seen to.
    func text(_ violations: [AuditPolicy.Violation], at now: Date) -> String {
        let state = !violations.isEmpty ? "violates a rule" : info.isEncrypted ? "encrypted" : "not encrypted"
        var parts = ["generation \(info.generation)"]
        if let days = days(at: now) { parts.append("data key at least \(days) day\(days == 1 ? "" : "s") old") }
        if info.storageType == .sealed { parts.append("sealed pages") }
        parts += info.keySlots.map(\.kind.text)
        parts.append("\(sizes.databaseByteCount + sizes.contentByteCount) bytes")
        if !isWritable { parts.append("not to be written") }
        var lines = ["\(state)  \(Console.printable(path))  \(parts.joined(separator: ", "))"]
        lines += violations.map { "    \($0.text)" }
        lines += holders.map {
            "    process \($0.process)\($0.command.map { " (\(Console.printable($0)))" } ?? "") has it open"
        }
        lines += (leftovers ?? []).map { left in
            "    \(Console.printable(left.path)): an old generation, \(left.byteCount) bytes"
                + (left.mayBeReadable ? ", which may be readable without a key" : "")
        }
        return lines.joined(separator: "\n")
    }

    func json(_ violations: [AuditPolicy.Violation], at now: Date) -> String {
        var line = JSONLine(type: "store")
        line.add("path", path)
        line.add("encrypted", info.isEncrypted)
        line.add("engine", info.engine)
        line.add("uuid", info.storeUUID.uuidString.lowercased())
        line.add("generation", info.generation)
        line.add("sequence", info.sequence)
        if let created = info.dataKeyCreated { line.add("dataKeyCreated", created.ISO8601Format()) }
        if let days = days(at: now) { line.add("dataKeyDays", days) }
        line.add("keys", json: "[" + info.keySlots.map(\.json).joined(separator: ",") + "]")
        line.add("databaseBytes", sizes.databaseByteCount)
        line.add("contents", sizes.contentCount)
        line.add("contentBytes", sizes.contentByteCount)
        line.add("oldGenerations", json: leftovers?.json ?? "null")
        line.add("writable", isWritable)
        let holders = self.holders.map { holder in
            var line = JSONLine()
            line.add("pid", Int(holder.process))
            if let command = holder.command { line.add("command", command) }
            return line.finished
        }
        line.add("openIn", json: "[" + holders.joined(separator: ",") + "]")
        line.add("violations", json: "[" + violations.map { JSONLine.quoted($0.rawValue) }.joined(separator: ",") + "]")
        return line.finished
    }
}

extension StoreInfo {
    /// How old the data key is at least; nil for a store that is not encrypted.
    func dataKeyAge(at now: Date) -> Duration? {
        dataKeyCreated.map { .seconds(max(0, Int64(now.timeIntervalSince($0)))) }
    }
}

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
